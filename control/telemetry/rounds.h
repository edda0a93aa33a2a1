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

/// The last rounds that one daemon has gathered under loss bounds, one by one. The daemon fills
/// these plain values page by page, and they are written as JSON or as text for a person. Control
/// thread only.
namespace gradplane::telemetry {

/// The most rounds of a job that a daemon keeps.
inline constexpr std::size_t kKeptRounds = 128;
/// The most roots of a plan that a page names; others are only counted.
inline constexpr std::size_t kMaxRootsNamed = 64;

/// A node some of whose blocks did not come in time.
struct RoundSource {
  std::string node;
  std::vector<std::uint32_t> ranks;  // the ranks on it
  std::uint64_t missing_blocks = 0;
  std::uint64_t expected_blocks = 0;
};

/// A tensor some of whose blocks are missing. A block that two tensors share counts for both.
struct RoundTensor {
  std::uint32_t index = 0;            // in its bucket
  std::string name;                   // may be empty
  std::uint64_t missing_blocks = 0;   // of all sources
  std::uint64_t expected_blocks = 0;  // from all sources
};

/// A round that was summed here as root, or a tree's part of it.
struct RoundEntry {
  std::uint64_t number = 0;  // counts the rounds that this node has closed of the job, from 1 on
  std::uint32_t round = 0;
  std::uint32_t epoch = 0;  // of the plan that carried it
  std::uint32_t bucket = 0;
  std::uint32_t tree = 0;
  std::string reason;                 // "full", "early", "deadline", "absent"
  std::uint64_t duration_ns = 0;      // from the first block to the close
  std::uint64_t missing_blocks = 0;   // of all sources
  std::uint64_t expected_blocks = 0;  // from all sources
  std::vector<RoundSource> sources;   // only those that lack something; the worst come first
  std::uint32_t other_sources = 0;    // how many more lack something
  std::uint64_t other_sources_missing_blocks = 0;
  std::vector<RoundTensor> tensors;  // in the same way
  std::uint32_t other_tensors = 0;
  std::uint64_t other_tensors_missing_blocks = 0;
};

/// The rounds of one job, oldest first, from some round on.
struct RoundsPage {
  std::uint32_t version = kStatusVersion;
  std::string node;
  std::vector<std::uint32_t> jobs;  // ids of all jobs here
  std::uint32_t job = 0;            // the job of this page; 0: there is none
  std::uint32_t epoch = 0;  // of the plan with which the job came here; tells runs of it apart
  std::string label;
  std::uint32_t buckets = 0;       // those with bounds
  std::vector<std::string> roots;  // nodes that gather something of the job
  std::uint32_t roots_omitted = 0;
  bool gathers = false;      // whether this node is a root
  std::uint64_t closed = 0;  // how many rounds this node has closed: the number of the last
  std::uint64_t lost = 0;    // how many of them are not known, because they came too fast
  std::vector<RoundEntry> rounds;
  bool more = false;             // more rounds follow, after next_after
  std::uint64_t next_after = 0;  // number of the page's last round; without rounds, as requested
};

/// One JSON object.
std::string to_json(const RoundsPage& page);
/// Reads a page from untrusted JSON; see from_json() of a status.
Result<RoundsPage> rounds_from_json(std::string_view text);

/// How many rounds between `after` and the last of a page are not in the page, because their
/// reports were lost or were not kept until now. `after` is `next_after` of the page before, or 0
/// if that was of another job or epoch. Returns 0 for a page without rounds.
std::uint64_t missed_rounds(std::uint64_t after, const RoundsPage& page);

/// The pages of all jobs, one for each job, as text for a person and as one JSON list.
std::string rounds_text(const std::vector<RoundsPage>& jobs);
std::string rounds_json(const std::vector<RoundsPage>& jobs);

/// A line that names the job of a page, and the rows of its table without headings.
std::string rounds_heading(const RoundsPage& page);
std::string rounds_rows(const RoundsPage& page);

/// A round in one sentence, for a log.
std::string round_line(const RoundEntry& round);
/// "w2 (ranks 2, 3)".
std::string source_text(const std::string& node, const std::vector<std::uint32_t>& ranks);

}  // namespace gradplane::telemetry
