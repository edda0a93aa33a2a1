// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/ns3/rounds.h"

#include <algorithm>

#include "tests/ns3/star.h"

namespace gradplane::ns3_incast {

double Round::spread() const {
  const auto [first, last] = std::minmax_element(sender_pushes.begin(), sender_pushes.end());
  return last->to_seconds() / first->to_seconds();
}

Rounds::Rounds(const Scenario& scenario, Contestant& contestant)
    : scenario_(scenario), contestant_(contestant), random_(scenario.seed) {}

void Rounds::start(Instant first) {
  ns3::Simulator::Schedule(time_of(first - now()), &Rounds::begin_round, this);
}

void Rounds::begin_round() {
  begun_ = now();
  pushed_ = summed_ = 0;
  round_ = {};
  round_.sender_pushes.resize(scenario_.senders);
  const auto span = static_cast<std::uint64_t>(scenario_.jitter.count_ns()) + 1;
  for (std::size_t sender = 0; sender < scenario_.senders; ++sender) {
    const Duration late = Duration::ns(static_cast<std::int64_t>(random_() % span));
    ns3::Simulator::Schedule(time_of(late), &Contestant::begin, &contestant_, sender, current());
  }
}

void Rounds::on_pushed(std::size_t sender) {
  round_.push = round_.sender_pushes[sender] = now() - begun_;
  ++pushed_;
  end_if_done();
}

void Rounds::on_summed() {
  round_.all_reduce = now() - begun_;
  ++summed_;
  end_if_done();
}

void Rounds::end_if_done() {
  const std::size_t sums = contestant_.sums() ? scenario_.senders : 0;
  if (pushed_ < scenario_.senders || summed_ < sums) return;
  done_.push_back(std::move(round_));
  if (done_.size() == scenario_.rounds) {
    ns3::Simulator::Stop();
  } else {
    start(now() + scenario_.pause);
  }
}

}  // namespace gradplane::ns3_incast
