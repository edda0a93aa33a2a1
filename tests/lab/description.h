// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/lab/settings.h"

namespace gradplane::lab {

inline constexpr std::size_t kMaxHosts = 64;
inline constexpr std::size_t kMaxSites = 32;

struct HostDescription {
  std::string name;
  std::size_t site_index = 0;
  LinkSettings up;    // from the host
  LinkSettings down;  // to the host
};

struct SiteLinkDescription {
  std::string name;
  std::size_t ends[2] = {};  // indices of sites
  LinkSettings forward;      // from ends[0] to ends[1]
  LinkSettings backward;
};

/// Which directions of a link a change applies to: kFirst is up or forward, kSecond is down or
/// backward.
enum class Direction : std::uint8_t { kFirst, kSecond, kBoth };

/// Parses "up", "down", "forward", "backward" or "both"; no text means both. Returns nothing for
/// other words, and for words of the other kind of link.
std::optional<Direction> parse_direction(std::string_view text, bool is_host_link);

struct ScheduledChange {
  Duration at;  // from the start of the schedule
  std::string link;
  Direction direction = Direction::kBoth;
  SettingsChange change;
};

struct Description {
  std::vector<std::string> sites;
  std::vector<HostDescription> hosts;
  std::vector<SiteLinkDescription> site_links;
  std::vector<ScheduledChange> schedule;  // in the order of times
  std::uint64_t seed = 1;
};

/// Either a description, or the errors with their lines.
struct [[nodiscard]] ParsedDescription {
  std::optional<Description> description;
  std::vector<config::ConfigError> errors;
};

ParsedDescription parse_description(std::string_view yaml, const std::string& file_name);

}  // namespace gradplane::lab
