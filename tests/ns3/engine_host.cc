// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/ns3/engine_host.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "dataplane/engine/local_plan.h"
#include "tests/ns3/links.h"
#include "tests/sim/cluster.h"

namespace gradplane::ns3_host {
namespace {

/// How much later the engine runs when a deadline has already passed, as a poll loop would.
constexpr Duration kPollInterval = Duration::us(1);
/// The most turns in one instant. An engine that needs more never comes to rest.
constexpr std::size_t kMaxTurns = 1'000'000;
constexpr std::uint32_t kJob = 42;

job::JobConfig config_of(const EngineJob& of, const EngineSettings& settings) {
  job::JobConfig config;
  config.job = kJob;
  config.epoch = of.plan.epoch;
  config.self = settings.node;
  config.authenticate = true;
  config.round_bytes = of.round_bytes;
  config.congestion = settings.congestion;
  config.grants = settings.grants;
  engine::fill_local_plan(
      config, of.plan, settings.node,
      std::vector<std::uint64_t>(of.plan.members.size(), settings.link_bits_per_second));
  return config;
}

}  // namespace

EngineHost::EngineHost(const EngineJob& job, const EngineSettings& settings,
                       std::function<void(std::uint32_t)> summed)
    : job_(job),
      settings_(settings),
      summed_(std::move(summed)),
      commands_(api::kQueueEntries),
      events_(api::kQueueEntries),
      reports_(api::kReportQueueEntries) {
  std::vector<std::shared_ptr<engine::RankChannel>> channels;
  const std::vector<std::uint16_t>& ranks = job.plan.members[settings.node].ranks;
  if (!ranks.empty()) {
    rank_ = ranks.front();
    auto channel = ipc::Channel::create({.slot_count = kRoundSlots, .slot_bytes = job.round_bytes});
    if (!channel) throw std::runtime_error("no channel for a rank: " + channel.error().message);
    channel_ =
        std::make_shared<engine::RankChannel>(engine::RankChannel{std::move(channel.value()), {}});
    submissions_.emplace(channel_->channel.submissions());
    completions_.emplace(channel_->channel.completions());
    channels.push_back(channel_);
  }
  runtime_ =
      std::make_unique<engine::JobRuntime>(config_of(job, settings), ranks, std::move(channels));
}

void EngineHost::StartApplication() {
  engine::EngineOptions options;
  options.self = settings_.node;
  options.nodes = job_.addresses;
  options.link.bits_per_second = settings_.link_bits_per_second;
  options.link.buffer_bytes = settings_.buffer_bytes;
  port_ = std::make_unique<SocketPort>(GetNode(), job_.addresses[settings_.node], options.udp_port,
                                       [this] { turn(); });
  engine_ =
      std::make_unique<engine::Engine>(std::move(options), *port_, commands_, events_, reports_);
  api::Command add;
  add.kind = api::Command::Kind::kAddJob;
  add.job = runtime_.get();
  (void)commands_.push(add);
  turn();
}

void EngineHost::submit(std::uint32_t round, const std::vector<float>& expected) {
  expected_[round % kMaxInFlightRounds] = &expected;
  const std::span<std::byte> slot = channel_->channel.slot(round);
  for (std::uint32_t e = 0; e < expected.size(); ++e) {
    const auto value = static_cast<float>(sim::contribution(round, rank_, e));
    std::memcpy(slot.data() + e * sizeof value, &value, sizeof value);
  }
  ipc::Submission submission;
  submission.round = round;
  submission.elements = static_cast<std::uint32_t>(expected.size());
  submission.element_type = static_cast<std::uint8_t>(ElementType::kFloat32);
  if (!submissions_->push(submission)) fail("found its submission ring full");
  turn();
}

/// Runs a poll loop's turns in one instant, until there is nothing more to do.
void EngineHost::turn() {
  std::size_t turns = 0;
  while (engine_->poll_once(now()) || take_sums()) {
    if (++turns > kMaxTurns) return fail("never comes to rest");
  }
  while (const api::Event* event = events_.front()) {
    if (event->kind != api::Event::Kind::kControl)
      fail("heard trouble of kind " + std::to_string(static_cast<int>(event->kind)) +
           " from its engine");
    events_.pop();
  }
  schedule();
}

bool EngineHost::take_sums() {
  ipc::Completion completion;
  if (!completions_ || !completions_->pop(completion)) return false;
  check(completion);
  summed_(completion.round);
  return true;
}

void EngineHost::check(const ipc::Completion& completion) {
  if (completion.status != ipc::CompletionStatus::kOk) return fail("had a round fail");
  if (completion.contributors != job_.rank_count || completion.partial_blocks != 0) {
    return fail("got a sum that lacks a contribution");
  }
  const std::span<const std::byte> slot = channel_->channel.slot(completion.round);
  const std::vector<float>& expected = *expected_[completion.round % kMaxInFlightRounds];
  if (std::memcmp(slot.data(), expected.data(), expected.size() * sizeof(float)) != 0) {
    fail("got a wrong sum");
  }
}

/// Sets the timer. It may fire too early, which does no harm. To cancel it and set it again for
/// every packet would be slow, because every packet changes the deadline.
void EngineHost::schedule() {
  const Instant deadline = std::max(engine_->next_deadline(now()), now() + kPollInterval);
  if (deadline == Instant::never() || (!timer_.IsExpired() && timer_at_ <= deadline)) return;
  timer_.Cancel();
  timer_at_ = deadline;
  timer_ = ns3::Simulator::Schedule(time_of(deadline - now()), &EngineHost::turn, this);
}

void EngineHost::fail(const std::string& what) {
  if (failure_.empty()) failure_ = "host " + std::to_string(settings_.node) + " " + what;
}

}  // namespace gradplane::ns3_host
