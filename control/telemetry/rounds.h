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

/// The last rounds that one daemon has gathered under loss bounds, one by one: plain values that
/// the daemon fills, page by page, and that go to JSON and to a person. Control thread only.
namespace gradplane::telemetry {

/// Rounds of a job that a daemon keeps.
inline constexpr std::size_t kKeptRounds = 128;
/// Roots of a plan that a page names; more are counted.
inline constexpr std::size_t kMaxRootsNamed = 64;

/// A node some of whose blocks did not come in time.
struct RoundSource {
  std::string node;
  std::vector<std::uint32_t> ranks;  // that it hosts
  std::uint64_t missing_blocks = 0;
  std::uint64_t expected_blocks = 0;
};

/// A block that two tensors share is missing of both.
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
  std::vector<RoundSource> sources;   // that lack something, those that lack most first
  std::uint32_t other_sources = 0;    // that lack something and are not named
  std::uint64_t other_sources_missing_blocks = 0;
  std::vector<RoundTensor> tensors;  // as sources
  std::uint32_t other_tensors = 0;
  std::uint64_t other_tensors_missing_blocks = 0;
};

/// One job's rounds, oldest first, from some round on.
struct RoundsPage {
  std::uint32_t version = kStatusVersion;
  std::string node;
  std::vector<std::uint32_t> jobs;  // all that are here, by id
  std::uint32_t job = 0;            // which of them this page is about; 0: there is none
  std::uint32_t epoch = 0;  // of the plan with which the job came to this node: which job it is
  std::string label;
  std::uint32_t buckets = 0;       // with bounds
  std::vector<std::string> roots;  // nodes that gather something of the job
  std::uint32_t roots_omitted = 0;
  bool gathers = false;      // this node is one of them
  std::uint64_t closed = 0;  // rounds that this node has closed: the number of the last
  std::uint64_t lost = 0;    // of them not noted, because they came too fast
  std::vector<RoundEntry> rounds;
  bool more = false;             // rounds follow; ask on after the next one
  std::uint64_t next_after = 0;  // the number of the last round of this page, or what was asked
};

/// One JSON object.
std::string to_json(const RoundsPage& page);
/// The page in a JSON text that somebody else wrote; checked as a status is.
Result<RoundsPage> rounds_from_json(std::string_view text);

/// How many rounds were closed between `after` and the last of a page and are not in it: they were
/// not noted, or not kept until somebody asked. `after` is `next_after` of the page before it, 0
/// where that was of another job or epoch. Of a page without rounds none is known.
std::uint64_t missed_rounds(std::uint64_t after, const RoundsPage& page);

/// For a person, and as one JSON list: the pages of all jobs, each job's rounds in one page.
std::string rounds_text(const std::vector<RoundsPage>& jobs);
std::string rounds_json(const std::vector<RoundsPage>& jobs);

/// A line that says which job a page is about, and the rows of its table alone, to follow it.
std::string rounds_heading(const RoundsPage& page);
std::string rounds_rows(const RoundsPage& page);

/// A round in one sentence, for a log.
std::string round_line(const RoundEntry& round);
/// "w2 (ranks 2, 3)".
std::string source_text(const std::string& node, const std::vector<std::uint32_t>& ranks);

}  // namespace gradplane::telemetry
