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

/// The loss bounds in force at one daemon, and what has been missing under them: plain values that
/// the daemon fills, page by page, and that go to JSON and to a person. Control thread only.
namespace gradplane::telemetry {

/// Sources that a page names; more are counted.
inline constexpr std::size_t kMaxSourcesNamed = 64;
/// Tensors of one page, which must fit a message of the control socket.
inline constexpr std::size_t kMaxTensorsPerPage = 512;

/// Rounds that were summed here as root, by why.
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
  std::uint64_t threshold_ns = 0;  // the largest of any bucket; 0: not learned yet
};

struct BoundsTensor {
  std::uint32_t bucket = 0;
  std::string name;  // may be empty
  std::uint64_t elements = 0;
  std::uint64_t blocks = 0;
  double bound = 0;                  // 0: exact
  std::string why;                   // "exact", "pattern", "kind", "preset", "learned", "too_small"
  std::string rule;                  // the pattern, the kind, the preset
  std::string wire;                  // how it goes: "fp32", "bf16", "fp16", "int8"; empty: as it is
  std::uint64_t missing_blocks = 0;  // of those expected here as root
  std::uint64_t expected_blocks = 0;  // from all sources
  std::uint64_t excluded_blocks = 0;  // of those that this node pushed, did not enter a sum
};

/// One job's bounds, from some tensor on.
struct BoundsPage {
  std::uint32_t version = kStatusVersion;
  std::string node;
  std::vector<std::uint32_t> jobs;  // all that are here, by id
  std::uint32_t job = 0;            // which of them this page is about; 0: there is none
  std::string label;
  std::string compensation;
  std::uint32_t buckets = 0;  // with bounds
  CloseCounts closes;
  std::vector<BoundsSource> sources;  // those that lack most first
  std::uint32_t sources_omitted = 0;
  std::vector<BoundsTensor> tensors;
  bool more = false;  // tensors follow; ask on with the next two
  std::uint32_t next_bucket = 0;
  std::uint32_t next_tensor = 0;
};

/// One JSON object.
std::string to_json(const BoundsPage& page);
/// The page in a JSON text that somebody else wrote; checked as a status is.
Result<BoundsPage> bounds_from_json(std::string_view text);

/// For a person, and as one JSON list: the pages of all jobs, each job's tensors in one page.
std::string bounds_text(const std::vector<BoundsPage>& jobs);
std::string bounds_json(const std::vector<BoundsPage>& jobs);

}  // namespace gradplane::telemetry
