// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstring>

#include "dataplane/ipc/rounds_in_flight.h"
#include "tests/support/engine_host.h"

namespace gradplane::testing {

/// Two engines in one thread that run rounds of one job as fast as they can.
class Exchange {
 public:
  struct Settings {
    std::size_t block_bytes = kDefaultBlockBytes;
    std::size_t round_bytes = std::size_t{1} << 20;
    bool authenticate = false;
  };
  explicit Exchange(const Settings& settings)
      : elements_(static_cast<std::uint32_t>(settings.round_bytes / sizeof(float))) {
    for (std::size_t n = 0; n < jobs_.size(); ++n) {
      jobs_[n] = &cluster_.host(n).add({.id = 1,
                                        .plan = star_of(2),
                                        .block_bytes = settings.block_bytes,
                                        .round_bytes = settings.round_bytes,
                                        .authenticate = settings.authenticate});
    }
  }

  /// Runs until the engines have received `packets` more datagrams, and returns their number. Gives
  /// up when nothing moves.
  std::uint64_t run_packets(std::uint64_t packets) {
    const std::uint64_t begin = received();
    std::uint64_t last = begin;
    for (std::uint64_t idle = 0; received() - begin < packets && idle < kMaxIdleTurns; ++idle) {
      for (std::size_t n = 0; n < jobs_.size(); ++n) step(n);
      cluster_.turn();
      if (received() != last) idle = 0;
      last = received();
    }
    return last - begin;
  }
  bool correct() const { return correct_; }
  EngineHost& host(std::size_t n) { return cluster_.host(n); }
  EngineHost::Job& job(std::size_t n) { return *jobs_[n]; }

 private:
  static constexpr std::uint64_t kMaxIdleTurns = 1'000'000;

  std::uint64_t received() {
    return cluster_.host(0).queue().counters().rx_datagrams +
           cluster_.host(1).queue().counters().rx_datagrams;
  }

  void step(std::size_t n) {
    TrainerEnd& trainer = jobs_[n]->trainers[0];
    ipc::Completion completion;
    while (trainer.completions.pop(completion)) {
      correct_ = correct_ && rounds_[n].complete(completion.round);
      // The slot's content is summed, whatever it is. The test checks one element.
      correct_ = correct_ && trainer.last(completion.round, elements_) == 3;
    }
    while (!rounds_[n].full()) {
      const std::uint32_t round = rounds_[n].next();
      rounds_[n].submit();
      const float value = n == 0 ? 1 : 2;
      const std::span<std::byte> slot = trainer.channel->channel.slot(round);
      std::memcpy(slot.data() + (elements_ - 1) * sizeof value, &value, sizeof value);
      correct_ = correct_ && trainer.submissions.push(
                                 {.round = round, .elements = elements_, .element_type = 1});
    }
  }

  std::uint32_t elements_;  // in a round
  EngineCluster cluster_{2};
  std::array<EngineHost::Job*, 2> jobs_{};
  std::array<ipc::RoundsInFlight, 2> rounds_;
  bool correct_ = true;
};

}  // namespace gradplane::testing
