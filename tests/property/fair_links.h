// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "control/plan/selection.h"

namespace gradplane::testing {

/// A flow, which uses the uplink of its sender and the downlinks of its receivers.
struct LinkFlow {
  std::size_t from = 0;
  std::vector<std::size_t> receivers;
  double bits_per_s = 0;  // the rate from FairLinks
};

/// Links that flows share fairly (max-min), by progressive filling: the rates of all flows grow
/// together, and a flow stops growing when a link on its path is full. It shares no code with the
/// planner.
class FairLinks {
 public:
  explicit FairLinks(const std::vector<plan::RankCapacity>& ranks)
      : ups_(ranks.size()), downs_(ranks.size()) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      ups_[rank].free = static_cast<double>(ranks[rank].up_bits_per_s);
      downs_[rank].free = static_cast<double>(ranks[rank].down_bits_per_s);
    }
  }

  /// Sets the rates of flows, which share what earlier flows have left.
  void share(std::vector<LinkFlow>& flows) {
    constexpr double kFullBitsPerS = 1;
    std::vector<LinkFlow*> open;
    for (LinkFlow& flow : flows) open.push_back(&flow);
    double rate = 0;
    while (true) {
      std::erase_if(open, [&](LinkFlow* flow) {
        bool is_full = ups_[flow->from].free < kFullBitsPerS;
        for (const std::size_t to : flow->receivers) is_full |= downs_[to].free < kFullBitsPerS;
        if (is_full) flow->bits_per_s = rate;
        return is_full;
      });
      if (open.empty()) return;
      rate += fill(open);
    }
  }

 private:
  struct Link {
    double free = 0;  // in bit/s
    double flows = 0;
  };

  /// How much the rate of each flow can grow until a link is full.
  double fill(const std::vector<LinkFlow*>& flows) {
    for (std::vector<Link>* links : {&ups_, &downs_}) {
      for (Link& link : *links) link.flows = 0;
    }
    for (const LinkFlow* flow : flows) {
      ++ups_[flow->from].flows;
      for (const std::size_t to : flow->receivers) ++downs_[to].flows;
    }
    double more = std::numeric_limits<double>::infinity();
    for (const std::vector<Link>* links : {&ups_, &downs_}) {
      for (const Link& link : *links) {
        if (link.flows > 0) more = std::min(more, link.free / link.flows);
      }
    }
    for (std::vector<Link>* links : {&ups_, &downs_}) {
      for (Link& link : *links) link.free -= more * link.flows;
    }
    return more;
  }

  std::vector<Link> ups_;
  std::vector<Link> downs_;
};

}  // namespace gradplane::testing
