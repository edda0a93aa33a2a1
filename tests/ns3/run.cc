// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <ns3/rng-seed-manager.h>

#include <algorithm>
#include <stdexcept>

#include "dataplane/model/limits.h"
#include "tests/ns3/gradplane_push.h"
#include "tests/ns3/scenario.h"
#include "tests/ns3/tcp_push.h"

namespace gradplane::ns3_incast {
namespace {

static_assert(kMaxSenders < kMaxNodes, "the receiver is a node too");
static_assert(kMaxSenders <= kMaxRanks);
static_assert(kMaxPushBytes <= kMaxRoundBytes);

/// By then connections are established and hosts are idle.
constexpr Instant kFirstRound = Instant::from_ns(500'000'000);
constexpr std::string_view kGradplane = "gradplane-";
constexpr std::string_view kTcp = "tcp-";
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kTcpBytes = 32;  // with timestamps

bool is_tcp(const Scenario& scenario) {
  return scenario.contestant.starts_with(kTcp);
}

void check(const Scenario& s) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument(what);
  };
  require(std::find(kContestants.begin(), kContestants.end(), s.contestant) != kContestants.end(),
          "there is no contestant '" + s.contestant + "'");
  require(s.senders >= 1 && s.senders <= kMaxSenders,
          "senders must be 1 to " + std::to_string(kMaxSenders));
  require(s.push_bytes >= sizeof(float) && s.push_bytes <= kMaxPushBytes &&
              s.push_bytes % sizeof(float) == 0,
          "bytes must be a multiple of 4, and at most " + std::to_string(kMaxPushBytes));
  require(s.rounds >= 1 && s.rounds <= kMaxRounds,
          "rounds must be 1 to " + std::to_string(kMaxRounds));
  require(s.link_bits_per_second >= 1'000'000, "links must have 1 Mbit/s at least");
  require(s.mark_bytes < s.queue_bytes, "the mark threshold must be less than the queue");
}

template <typename Push>
Outcome run_with(const Scenario& scenario, const auto&... settings) {
  Outcome outcome;
  outcome.bound = bound(scenario);
  Star star(scenario);
  Push push(scenario, star, settings...);
  Rounds rounds(scenario, push);
  push.set_rounds(rounds);
  rounds.start(kFirstRound);
  ns3::Simulator::Stop(time_of(scenario.limit));
  ns3::Simulator::Run();
  outcome.rounds = rounds.done();
  if (outcome.rounds.size() < scenario.rounds) {
    outcome.failure = "only " + std::to_string(outcome.rounds.size()) + " of " +
                      std::to_string(scenario.rounds) + " rounds ended";
  }
  push.report(outcome);
  star.report(outcome);
  ns3::Simulator::Destroy();
  return outcome;
}

}  // namespace

Outcome run(const Scenario& scenario) {
  check(scenario);
  ns3::RngSeedManager::SetSeed(1);
  ns3::RngSeedManager::SetRun(scenario.seed);
  const std::string_view name = scenario.contestant;
  if (!is_tcp(scenario)) {
    return run_with<GradplanePush>(
        scenario, GradplanePush::settings_of(scenario, name.substr(kGradplane.size())));
  }
  TcpPush::prepare(scenario, name.substr(kTcp.size()));
  return run_with<TcpPush>(scenario);
}

Duration bound(const Scenario& scenario) {
  const std::size_t payload = is_tcp(scenario) ? kTcpSegmentBytes : kDefaultBlockBytes;
  const std::size_t headers =
      kFrameBytes + kIpv4Bytes +
      (is_tcp(scenario) ? kTcpBytes : kUdpBytes + wire::kBlockOverheadBytes);
  const std::size_t packets = (scenario.push_bytes + payload - 1) / payload;
  const std::size_t bytes = scenario.senders * (scenario.push_bytes + packets * headers) +
                            std::min(payload, scenario.push_bytes) + headers;
  const double seconds =
      static_cast<double>(bytes) * 8 / static_cast<double>(scenario.link_bits_per_second);
  return Duration::ns(static_cast<std::int64_t>(seconds * 1e9)) + scenario.link_delay * 2;
}

}  // namespace gradplane::ns3_incast
