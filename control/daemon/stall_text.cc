// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/stall_text.h"

#include <fmt/format.h>

#include "dataplane/wire/block.h"

namespace gradplane::daemon {
namespace {

std::string what_is_missing(const std::string& name, const Stall& stall) {
  switch (stall.reason) {
    case Stall::Reason::kPushesUnacked:
      return fmt::format("{} blocks are sent to node {} again and again, which acknowledges none",
                         stall.blocks, name);
    case Stall::Reason::kResultsUnacked:
      return fmt::format("{} results are sent to node {} again and again, which acknowledges none",
                         stall.blocks, name);
    case Stall::Reason::kBlocksMissing:
      return fmt::format("{} blocks of node {} do not come, although others of the round have come",
                         stall.blocks, name);
    case Stall::Reason::kUnanswered:
      return fmt::format(
          "node {} owes {} results, has acknowledged all blocks for them, and answers no question",
          name, stall.blocks);
    case Stall::Reason::kDisputed:
      return fmt::format(
          "node {} contradicts acknowledgements that came in its name, about {} blocks", name,
          stall.blocks);
  }
  return {};
}

std::string what_to_do(const config::Config& config, const Stall& stall) {
  if (stall.reason == Stall::Reason::kDisputed && config.authenticate) {
    return "no packet of the network can do this while tags are on: please report it";
  }
  if (stall.reason == Stall::Reason::kDisputed) {
    return "somebody on the network writes packets in its name: turn security.authenticate on";
  }
  return fmt::format(
      "its signs of life come, so look for what drops packets of {} bytes on the path, in either "
      "direction: an MTU that is too small, or a filter; lower block.bytes where the path cannot "
      "carry them",
      wire::kBlockOverheadBytes + config.block_bytes);
}

}  // namespace

std::string stall_text(const config::Config& config, std::uint32_t round, std::uint16_t node,
                       const Stall& stall) {
  return fmt::format(
      "round {}: nothing has moved here for {:.1f} s: {}; {}", round, stall.quiet.to_seconds(),
      what_is_missing(config.cluster.nodes[node].name, stall), what_to_do(config, stall));
}

}  // namespace gradplane::daemon
