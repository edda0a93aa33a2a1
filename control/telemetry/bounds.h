// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/telemetry/status.h"
#include "dataplane/base/result.h"

/// The loss bounds in force at one daemon, and what has been missing under them. The daemon fills
/// these plain values page by page, and they are written as JSON or as text for a person. Control
/// thread only.
namespace gradplane::telemetry {

/// The most sources that a page names; others are only counted.
inline constexpr std::size_t kMaxSourcesNamed = 64;
/// The most tensors of one page, which must fit a message of the control socket.
inline constexpr std::size_t kMaxTensorsPerPage = 512;

/// Rounds that were summed here as root, by close reason.
struct CloseCounts {
  std::uint64_t full = 0;
  std::uint64_t early = 0;
  std::uint64_t deadline = 0;
  std::uint64_t absent = 0;
};

/// A node whose blocks are gathered here.
struct BoundsSource {
  std::string node;
  std::uint64_t missing_blocks = 0;
  std::uint64_t expected_blocks = 0;
  std::uint64_t threshold_ns = 0;  // the largest of all buckets; 0: not learned yet
};

struct BoundsTensor {
  std::uint32_t bucket = 0;
  std::string name;  // may be empty
  std::uint64_t elements = 0;
  std::uint64_t blocks = 0;
  double bound = 0;                  // 0: exact
  std::string why;                   // "exact", "pattern", "kind", "preset", "learned", "too_small"
  std::string rule;                  // the pattern, kind or preset
  std::string wire;                  // wire type: "fp32", "bf16", "fp16", "int8"; empty: none
  std::uint64_t missing_blocks = 0;  // of those expected here as root
  std::uint64_t expected_blocks = 0;  // from all sources
  std::uint64_t excluded_blocks = 0;  // pushed by this node, but not in the sum
};

/// The bounds of one job, from some tensor on.
struct BoundsPage {
  std::uint32_t version = kStatusVersion;
  std::string node;
  std::vector<std::uint32_t> jobs;  // ids of all jobs here
  std::uint32_t job = 0;            // the job of this page; 0: there is none
  std::string label;
  std::string compensation;
  std::uint32_t buckets = 0;  // those with bounds
  CloseCounts closes;
  std::vector<BoundsSource> sources;  // those that lack most come first
  std::uint32_t sources_omitted = 0;
  std::vector<BoundsTensor> tensors;
  bool more = false;  // more tensors follow, from the next two values on
  std::uint32_t next_bucket = 0;
  std::uint32_t next_tensor = 0;
};

/// One JSON object.
std::string to_json(const BoundsPage& page);
/// Reads a page from untrusted JSON; see from_json() of a status.
Result<BoundsPage> bounds_from_json(std::string_view text);

/// The pages of all jobs, one for each job, as text for a person and as one JSON list.
std::string bounds_text(const std::vector<BoundsPage>& jobs);
std::string bounds_json(const std::vector<BoundsPage>& jobs);

}  // namespace gradplane::telemetry
