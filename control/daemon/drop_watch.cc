// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/drop_watch.h"

#include <fmt/format.h>

#include "dataplane/hop/counters.h"
#include "dataplane/port/port.h"

namespace gradplane::daemon {
namespace {

std::uint64_t count_of(const Dropped& dropped, hop::Drop reason) {
  return dropped.by_node[static_cast<std::size_t>(reason)];
}

std::uint64_t count_of(const Dropped& dropped, port::PortDrop reason) {
  return dropped.by_port[static_cast<std::size_t>(reason)];
}

struct Telling {
  std::uint64_t count = 0;
  std::uint64_t at_least = 0;  // fewer are no mistake: scans, leftovers of a daemon before
  std::string_view name;
  std::string_view text;
};

}  // namespace

void Dropped::add(const api::EngineSnapshot& core) {
  for (std::size_t r = 0; r < by_node.size(); ++r) by_node[r] += core.node.drops[r];
  for (std::size_t r = 0; r < by_port.size(); ++r) by_port[r] += core.port.drops[r];
}

std::vector<std::string> DropWatch::look(const Dropped& dropped, Instant now) {
  using hop::Drop;
  using port::PortDrop;
  const auto telling = [&](auto reason, std::uint64_t at_least, std::string_view name,
                           std::string_view text) {
    return Telling{count_of(dropped, reason), at_least, name, text};
  };
  const std::array<Telling, kReasons> all = {
      telling(Drop::kUnknownNode, 10, hop::drop_name(Drop::kUnknownNode),
              "come from addresses that are not in cluster.nodes, or to another UDP port; compare "
              "cluster.nodes, cluster.udp_port and the number of poll.cores in the files of all "
              "nodes"),
      telling(Drop::kMalformed, 10, hop::drop_name(Drop::kMalformed),
              "are not of this release; run the same release on all nodes"),
      telling(PortDrop::kAddressConflict, 1, port::port_drop_name(PortDrop::kAddressConflict),
              "are ARP packets in which another station has this node's address; see whether two "
              "daemons run with the same --node, and whether the kernel has the address, too"),
  };
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < kReasons; ++i) {
    Seen& seen = seen_[i];
    if (all[i].count >= seen.count + all[i].at_least && now >= seen.next_warning) {
      warnings.push_back(fmt::format("dropped {} received packets ({}) that {}",
                                     all[i].count - seen.count, all[i].name, all[i].text));
      seen.next_warning = now + kDropWarningPause;
      seen.window_ends = now;
    }
    if (now < seen.window_ends) continue;
    seen.count = all[i].count;
    seen.window_ends = now + kDropWindow;
  }
  return warnings;
}

}  // namespace gradplane::daemon
