// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/links.h"

#include <fmt/format.h>

#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"

namespace gradplane::telemetry {
namespace {

constexpr std::size_t kNameColumns = 20;
constexpr double kMillion = 1e6;

std::string sure_text(std::uint32_t percent) {
  return percent == 0 ? "-" : fmt::format("{} %", percent);
}

std::string known_duration(bool known, std::uint64_t ns) {
  return known ? duration_text(ns) : "-";
}

std::string name_text(std::string_view name) {
  return clipped(printable(name), kNameColumns);
}

std::vector<Column> columns_after(std::vector<Column> columns) {
  for (const char* heading : {"RATE", "SURE", "AGE", "RTT", "AGE", "LOSS", "SURE", "AGE"}) {
    columns.push_back({heading, Align::kRight});
  }
  return columns;
}

std::vector<std::string> cells_after(std::vector<std::string> cells, const LinkStatus& link) {
  const bool rate = link.rate_confidence_percent > 0;
  const bool rtt = link.rtt_ns > 0;
  const bool loss = link.loss_confidence_percent > 0;
  for (std::string cell :
       {link_rate_text(link), sure_text(link.rate_confidence_percent),
        known_duration(rate, link.rate_age_ns), known_duration(rtt, link.rtt_ns),
        known_duration(rtt, link.rtt_age_ns), link_loss_text(link),
        sure_text(link.loss_confidence_percent), known_duration(loss, link.loss_age_ns)}) {
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace

std::string link_rate_text(const LinkStatus& link) {
  if (link.rate_confidence_percent == 0) return "-";
  const std::string rate = rate_text(link.rate_bits_per_second);
  return link.rate_is_lower_bound ? "at least " + rate : rate;
}

std::string link_loss_text(const LinkStatus& link) {
  if (link.loss_confidence_percent == 0) return "-";
  return fmt::format("{:.2f} %", link.loss_ppm * 100 / kMillion);
}

std::string link_label(const LinkStatus& link) {
  std::string text;
  const auto add = [&text](bool known, const std::string& what) {
    if (known) text += (text.empty() ? "" : ", ") + what;
  };
  add(link.rate_confidence_percent > 0, link_rate_text(link));
  add(link.rtt_ns > 0, duration_text(link.rtt_ns));
  add(link.loss_confidence_percent > 0, link_loss_text(link));
  return text;
}

std::string link_trust_text(const LinkStatus& link) {
  std::string text;
  const auto add = [&text](bool known, const std::string& what, std::uint64_t age_ns) {
    if (known)
      text += fmt::format("{}{}, {} old", text.empty() ? "" : "; ", what, duration_text(age_ns));
  };
  add(link.rate_confidence_percent > 0, "rate " + sure_text(link.rate_confidence_percent) + " sure",
      link.rate_age_ns);
  add(link.rtt_ns > 0, "round trip", link.rtt_age_ns);
  add(link.loss_confidence_percent > 0, "loss " + sure_text(link.loss_confidence_percent) + " sure",
      link.loss_age_ns);
  return text;
}

Table links_table(const std::vector<LinkStatus>& links) {
  Table table(columns_after({{"FROM", Align::kLeft}}));
  for (const LinkStatus& link : links) table.add(cells_after({name_text(link.node)}, link));
  return table;
}

Table uses_table(const std::vector<TopologyUse>& uses) {
  Table table({{"FROM", Align::kLeft},
               {"TO", Align::kLeft},
               {"PLANNED", Align::kRight},
               {"FILE", Align::kRight},
               {"MEASURED", Align::kRight},
               {"SURE", Align::kRight},
               {"AGE", Align::kRight}});
  for (const TopologyUse& use : uses) {
    const LinkStatus& link = use.measured;
    const bool is_configured = use.configured_bits_per_second > 0;
    table.add({name_text(use.from), name_text(use.to), rate_text(use.bits_per_second),
               is_configured ? rate_text(use.configured_bits_per_second) : "-",
               link_rate_text(link), sure_text(link.rate_confidence_percent),
               known_duration(link.rate_confidence_percent > 0, link.rate_age_ns)});
  }
  return table;
}

Table links_table(const std::vector<TopologyLink>& links) {
  Table table(columns_after({{"FROM", Align::kLeft}, {"TO", Align::kLeft}}));
  for (const TopologyLink& link : links) {
    table.add(cells_after({name_text(link.measured.node), name_text(link.to)}, link.measured));
  }
  return table;
}

}  // namespace gradplane::telemetry
