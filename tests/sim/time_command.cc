// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/time_command.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "tests/sim/rounding_checker.h"

namespace gradplane::sim {
namespace {

constexpr auto kWires = kWireTypeNames;
/// All but exchanges.
constexpr std::span kOperations = std::span(kOperationNames).first<4>();
/// The slack of the preset `ltp`.
constexpr Duration kLtpSlack = Duration::ms(30);

/// The 99th percentile of the rounds' times.
double p99_ms(const Outcome& outcome) {
  std::vector<double> times;
  Instant begin;
  for (const Instant end : outcome.round_ends) {
    times.push_back((end - begin).to_seconds() * 1e3);
    begin = end;
  }
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  const auto rank = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(times.size())));
  return times[rank - 1];
}

/// Gives all rounds one bucket with one tensor and this loss bound, as with the preset `ltp` after
/// its first rounds.
void bound_rounds(Scenario& s, double bound) {
  const std::uint32_t elements = s.rounds[0].elements;
  api::BucketBounds bucket{.bucket = 1, .elements = elements, .tensors = {{}}};
  bucket.tensors[0].elements = elements;
  bucket.tensors[0].bound = static_cast<float>(bound);
  s.tolerance.layout = Coding::Layout::kSpread;
  s.tolerance.strict_rounds = 2;
  s.tolerance.slack = kLtpSlack;
  s.tolerance.buckets = {bucket};
  s.rounds.assign(s.rounds.size(), round_of(bucket));
}

}  // namespace

TimeCommand::TimeCommand(CLI::App& app)
    : command_(app.add_subcommand("time", "times rounds on one network against the bound")) {
  command_->add_option("--plan", plan_, "star or sharded");
  command_->add_option("--hosts", hosts_, "training hosts");
  command_->add_option("--mbit", mbit_per_s_, "rate of every link, Mbit/s");
  command_->add_option("--bytes", bytes_, "of one round, at most 4 MiB");
  command_->add_option("--delay-us", delay_us_, "one way");
  command_->add_option("--loss", loss_, "random, 0 to 1");
  command_->add_option("--rounds", rounds_, "how many");
  command_->add_option("--in-flight", in_flight_, "rounds that a rank submits ahead");
  command_->add_option("--at-most", at_most_, "over the bound, else it is a failure");
  command_->add_option("--compute-us", compute_us_,
                       "a rank's own work before each round, uniform up to this");
  command_->add_flag("--multicast", multicast_, "results go to groups");
  command_->add_flag("--grants", grants_, "who receives says who may send");
  command_->add_option("--queue", queue_bytes_, "bytes at each downlink");
  command_->add_option("--mark", mark_bytes_, "a queue of so many bytes marks packets");
  command_->add_option("--controller", controller_, "as congestion.controller")
      ->check(CLI::IsMember(
          std::vector<std::string>(kControllerNames.begin(), kControllerNames.end())));
  command_->add_option("--operation", operation_, "of every round")
      ->check(CLI::IsMember(std::vector<std::string>(kOperations.begin(), kOperations.end())));
  command_->add_option("--wire", wire_, "the wire type of the rounds; the bound is that of fp32")
      ->check(CLI::IsMember(std::vector<std::string>(kWires.begin(), kWires.end())));
  command_
      ->add_option("--may-miss", may_miss_, "the share of its blocks that a rank may miss, 0 to 1")
      ->excludes("--operation");
  command_->add_flag("--mltcp", mltcp_, "with MLTCP");
  command_->add_flag("!--unpaced", paced_, "nodes do not know the rate of their links");
  command_->add_flag("!--no-parity", parity_, "no parity follows rounds");
}

CongestionSettings TimeCommand::congestion() const {
  CongestionSettings settings;
  const auto found = std::find(kControllerNames.begin(), kControllerNames.end(), controller_);
  settings.controller = static_cast<ControllerKind>(found - kControllerNames.begin());
  // For `fixed`: an equal share of the root's link.
  settings.rate_bits_per_second = static_cast<std::uint64_t>(mbit_per_s_ * 1e6 / hosts_);
  if (mltcp_) settings.mltcp.emplace();
  return settings;
}

Scenario TimeCommand::scenario(std::uint64_t seed) const {
  Scenario s;
  s.seed = seed;
  s.link.bits_per_second = static_cast<std::uint64_t>(mbit_per_s_ * 1e6);
  s.link.delay = Duration::us(static_cast<std::int64_t>(delay_us_));
  s.link.loss = loss_;
  s.link.queue_bytes = queue_bytes_;
  s.link.mark_bytes = mark_bytes_;
  s.paced = paced_;
  s.congestion = congestion();
  s.plan = plan_ == "star" ? star(hosts_) : sharded(hosts_);
  s.block_bytes = kDefaultBlockBytes;
  s.round_bytes = kMaxRoundBytes;
  s.in_flight = in_flight_;
  s.multicast = multicast_;
  s.grants = s.buffer_known = grants_;
  s.compute_max = Duration::us(static_cast<std::int64_t>(compute_us_));
  if (!parity_) s.parity_from.reset();
  const auto elements = static_cast<std::uint32_t>(bytes_ / 4) / hosts_ * hosts_;
  s.rounds.assign(rounds_, {.elements = elements, .operation = operation()});
  const auto wire = std::find(kWires.begin(), kWires.end(), wire_) - kWires.begin();
  if (wire > 0) narrow_rounds(s, kWireTypes[static_cast<std::size_t>(wire)]);
  if (may_miss_ > 0) bound_rounds(s, may_miss_);
  return s;
}

Operation TimeCommand::operation() const {
  const auto found = std::find(kOperations.begin(), kOperations.end(), operation_);
  return static_cast<Operation>(found - kOperations.begin() + 1);
}

double TimeCommand::bound_s() const {
  const double packets = std::ceil(bytes_ / kDefaultBlockBytes);
  const double wire_bits = packets * (kDefaultBlockBytes + hop::kWireOverheadBytes) * 8;
  const double n = hosts_;
  // How many copies of the round cross the busiest link.
  double copies = 2 * (n - 1) / n;
  if (has_shards(operation())) copies = (n - 1) / n;
  if (operation() == Operation::kBroadcast) copies = 1;
  if (plan_ == "star") copies = n;  // its root has no rank
  return copies * wire_bits / (mbit_per_s_ * 1e6);
}

bool TimeCommand::run(std::uint64_t seed) const {
  const Outcome outcome = sim::run(scenario(seed));
  const double bound = bound_s();
  const double mean_s = (outcome.ended - Instant()).to_seconds() / rounds_;
  const auto share = [&](std::uint64_t part) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(outcome.counters.blocks_sent);
  };
  std::printf(
      "%s hosts %u: mean round %.2f ms, bound %.2f ms, ratio %.3f, p99 %.3f; sent again %.2f %%, "
      "for 100 blocks %.1f acks, %.1f grants, %.1f parity, %.1f recovered, %.2f missing; %s\n",
      plan_.c_str(), hosts_, mean_s * 1e3, bound * 1e3, mean_s / bound,
      p99_ms(outcome) / (bound * 1e3), share(outcome.counters.blocks_retransmitted),
      share(outcome.counters.acks_sent), share(outcome.counters.grants_sent),
      share(outcome.counters.parity_sent), share(outcome.counters.blocks_recovered),
      share(outcome.counters.blocks_missing),
      outcome.failure.empty() ? "all sums right" : outcome.failure.c_str());
  return outcome.failure.empty() && (at_most_ <= 0 || mean_s <= at_most_ * bound);
}

}  // namespace gradplane::sim
