// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/telemetry/json_archive.h"
#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"
#include "control/telemetry/table.h"

namespace gradplane::telemetry {
namespace {

constexpr std::size_t kTensorColumns = 48;
constexpr std::size_t kNodeColumns = 20;
constexpr std::size_t kLabelColumns = 40;
/// The most sources or tensors in a row of the table, and the most roots below it.
constexpr std::size_t kMaxNamed = 3;
/// The most ranks of a node.
constexpr std::size_t kMaxRanksNamed = 8;
constexpr double kNsPerMs = 1e6;

std::string name_of(const RoundSource& source) {
  return source_text(clipped(printable(source.node), kNodeColumns), source.ranks);
}

std::string name_of(const RoundTensor& tensor) {
  if (tensor.name.empty()) return fmt::format("tensor {}", tensor.index);
  return clipped(printable(tensor.name), kTensorColumns);
}

/// "w2 (rank 1): 12, w3: 4, 2 others: 3"; "-" if there are none.
template <typename Entry>
std::string named_text(const std::vector<Entry>& entries, std::uint64_t others,
                       std::uint64_t others_missing, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i >= most) {
      ++others;
      others_missing += entries[i].missing_blocks;
      continue;
    }
    text +=
        fmt::format("{}{}: {}", i == 0 ? "" : ", ", name_of(entries[i]), entries[i].missing_blocks);
  }
  if (others > 0) {
    text += fmt::format("{}{} others: {}", text.empty() ? "" : ", ", others, others_missing);
  }
  return text.empty() ? "-" : text;
}

std::string sources_text(const RoundEntry& round, std::size_t most) {
  return named_text(round.sources, round.other_sources, round.other_sources_missing_blocks, most);
}

std::string tensors_text(const RoundEntry& round, std::size_t most) {
  return named_text(round.tensors, round.other_tensors, round.other_tensors_missing_blocks, most);
}

/// The table of rounds. Rows that come later must fit below the same headings, so the headings are
/// as wide as usual cells.
std::string rounds_table(const RoundsPage& page) {
  Table table({{"     ROUND", Align::kRight},
               {"     EPOCH", Align::kRight},
               {"BUCKET", Align::kRight},
               {"REASON  ", Align::kLeft},
               {"       MS", Align::kRight},
               {" MISSING", Align::kRight},
               {"OF WHOM, BLOCKS         ", Align::kLeft},
               {"OF WHICH TENSORS, BLOCKS", Align::kLeft}});
  for (const RoundEntry& round : page.rounds) {
    table.add({fmt::to_string(round.round), fmt::to_string(round.epoch),
               fmt::to_string(round.bucket), printable(round.reason),
               fmt::format("{:.2f}", static_cast<double>(round.duration_ns) / kNsPerMs),
               percent_text(round.missing_blocks, round.expected_blocks),
               sources_text(round, kMaxNamed), tensors_text(round, kMaxNamed)});
  }
  return table.text(2);
}

std::string roots_text(const RoundsPage& page) {
  std::string text;
  std::size_t named = 0;
  std::size_t others = page.roots_omitted;
  for (const std::string& root : page.roots) {
    if (root == page.node) continue;
    if (named == kMaxNamed) {
      ++others;
      continue;
    }
    text += fmt::format("{}{}", named++ == 0 ? "" : ", ", clipped(printable(root), kNodeColumns));
  }
  return others == 0 ? text : text + fmt::format(" and {} more", others);
}

std::string job_text(const RoundsPage& page) {
  std::string text = rounds_heading(page);
  if (page.buckets == 0) return text + "  no bounds: every round is gathered exactly\n";
  // A node that gathered under an earlier plan still has those rounds.
  if (!page.gathers)
    text += fmt::format("  nothing is gathered at this node; ask {}\n", roots_text(page));
  if (page.gathers && page.rounds.empty())
    text += "  no round has been gathered here under bounds yet\n";
  if (!page.rounds.empty()) {
    text += rounds_table(page);
    text += fmt::format("  {} of {} rounds that this node has closed; {} were not noted\n",
                        page.rounds.size(), page.closed, page.lost);
  }
  if (page.gathers && page.roots.size() + page.roots_omitted > 1) {
    text += fmt::format("  this is what this node roots of a sharded plan; for the rest ask {}\n",
                        roots_text(page));
  }
  return text;
}

}  // namespace

std::string source_text(const std::string& node, const std::vector<std::uint32_t>& ranks) {
  if (ranks.empty()) return node;
  std::string text = node + (ranks.size() == 1 ? " (rank" : " (ranks");
  for (std::size_t i = 0; i < std::min(ranks.size(), kMaxRanksNamed); ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ",", ranks[i]);
  }
  return text + (ranks.size() > kMaxRanksNamed ? ", ...)" : ")");
}

std::string round_line(const RoundEntry& round) {
  return fmt::format(
      "round {} (epoch {}) of bucket {} closed {} after {} without {} of {} blocks: {}; {}",
      round.round, round.epoch, round.bucket, round.reason, duration_text(round.duration_ns),
      round.missing_blocks, round.expected_blocks, sources_text(round, round.sources.size()),
      tensors_text(round, round.tensors.size()));
}

std::string rounds_heading(const RoundsPage& page) {
  return fmt::format("job {:08x} {}\n", page.job, clipped(printable(page.label), kLabelColumns));
}

std::string rounds_rows(const RoundsPage& page) {
  const std::string table = rounds_table(page);
  return table.substr(table.find('\n') + 1);
}

std::uint64_t missed_rounds(std::uint64_t after, const RoundsPage& page) {
  if (page.rounds.empty() || page.rounds.back().number <= after) return 0;
  const std::uint64_t closed = page.rounds.back().number - after;
  return closed - std::min<std::uint64_t>(closed, page.rounds.size());
}

std::string to_json(const RoundsPage& page) {
  return JsonWriter::text(page);
}

Result<RoundsPage> rounds_from_json(std::string_view text) {
  if (text.size() > kMaxStatusBytes) return Error{"rounds: longer than any daemon's"};
  return JsonReader::parse<RoundsPage>(text, "rounds");
}

std::string rounds_text(const std::vector<RoundsPage>& jobs) {
  std::string text;
  for (const RoundsPage& page : jobs) {
    if (page.job == 0) continue;
    if (!text.empty()) text += "\n";
    text += job_text(page);
  }
  return text.empty() ? "no jobs\n" : text;
}

std::string rounds_json(const std::vector<RoundsPage>& jobs) {
  std::string text = "[";
  for (const RoundsPage& page : jobs) {
    if (page.job == 0) continue;
    if (text.size() > 1) text += ",";
    text += to_json(page);
  }
  return text + "]\n";
}

}  // namespace gradplane::telemetry
