// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/bounds.h"

#include <fmt/format.h>

#include "control/telemetry/json_archive.h"
#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"
#include "control/telemetry/table.h"

namespace gradplane::telemetry {
namespace {

constexpr std::size_t kTensorColumns = 48;
constexpr std::size_t kRuleColumns = 44;
constexpr std::size_t kNodeColumns = 20;
constexpr std::size_t kLabelColumns = 40;

/// The bound of a tensor. A learned bound is known only where the tensor is gathered.
std::string bound_text(const BoundsTensor& tensor, bool gathered_here) {
  if (!gathered_here && tensor.why == "learned") return "-";
  return tensor.bound > 0 ? percent_text(tensor.bound) : "exact";
}

std::string tensor_name(const BoundsTensor& tensor) {
  return tensor.name.empty() ? "-" : clipped(printable(tensor.name), kTensorColumns);
}

std::string wire_text(const BoundsTensor& tensor) {
  return tensor.wire.empty() ? "-" : printable(tensor.wire);
}

std::string tensor_table(const BoundsPage& page) {
  Table table({{"TENSOR", Align::kLeft},
               {"BUCKET", Align::kRight},
               {"ELEMENTS", Align::kRight},
               {"BLOCKS", Align::kRight},
               {"BOUND", Align::kRight},
               {"WHY", Align::kLeft},
               {"RULE", Align::kLeft},
               {"WIRE", Align::kLeft},
               {"MISSING", Align::kRight},
               {"NOT ENTERED", Align::kRight}});
  for (const BoundsTensor& tensor : page.tensors) {
    table.add({tensor_name(tensor), fmt::to_string(tensor.bucket), fmt::to_string(tensor.elements),
               fmt::to_string(tensor.blocks), bound_text(tensor, !page.sources.empty()),
               printable(tensor.why), clipped(printable(tensor.rule), kRuleColumns),
               wire_text(tensor), percent_text(tensor.missing_blocks, tensor.expected_blocks),
               fmt::to_string(tensor.excluded_blocks)});
  }
  return table.text(2);
}

std::string source_table(const BoundsPage& page) {
  Table table({{"SOURCE", Align::kLeft},
               {"MISSING", Align::kRight},
               {"BLOCKS", Align::kRight},
               {"OF", Align::kRight},
               {"THRESHOLD", Align::kRight}});
  for (const BoundsSource& source : page.sources) {
    table.add({clipped(printable(source.node), kNodeColumns),
               percent_text(source.missing_blocks, source.expected_blocks),
               fmt::to_string(source.missing_blocks), fmt::to_string(source.expected_blocks),
               source.threshold_ns == 0 ? "-" : duration_text(source.threshold_ns)});
  }
  std::string text = table.text(2);
  if (page.sources_omitted > 0) {
    text += fmt::format("  and {} more, left out here\n", page.sources_omitted);
  }
  return text;
}

std::string job_text(const BoundsPage& page) {
  std::string text =
      fmt::format("job {:08x} {}\n", page.job, clipped(printable(page.label), kLabelColumns));
  if (page.buckets == 0) return text + "  no bounds: every round is gathered exactly\n";
  text += fmt::format("  {} in {}; compensation {}\n", count_text(page.tensors.size(), "tensor"),
                      count_text(page.buckets, "bucket"), printable(page.compensation));
  text += tensor_table(page);
  const CloseCounts& closes = page.closes;
  text +=
      fmt::format("  rounds summed here: {} full, {} early, {} by deadline, {} without somebody\n",
                  closes.full, closes.early, closes.deadline, closes.absent);
  return page.sources.empty() ? text : text + source_table(page);
}

}  // namespace

std::string to_json(const BoundsPage& page) {
  return JsonWriter::text(page);
}

Result<BoundsPage> bounds_from_json(std::string_view text) {
  if (text.size() > kMaxStatusBytes) return Error{"bounds: longer than any daemon's"};
  return JsonReader::parse<BoundsPage>(text, "bounds");
}

std::string bounds_text(const std::vector<BoundsPage>& jobs) {
  std::string text;
  for (const BoundsPage& page : jobs) {
    if (page.job == 0) continue;
    if (!text.empty()) text += "\n";
    text += job_text(page);
  }
  return text.empty() ? "no jobs\n" : text;
}

std::string bounds_json(const std::vector<BoundsPage>& jobs) {
  std::string text = "[";
  for (const BoundsPage& page : jobs) {
    if (page.job == 0) continue;
    if (text.size() > 1) text += ",";
    text += to_json(page);
  }
  return text + "]\n";
}

}  // namespace gradplane::telemetry
