// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What ranks, operators and the poll loop say to the daemon.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "control/daemon/bounds_page.h"
#include "control/daemon/daemon.h"
#include "control/daemon/placement.h"
#include "control/daemon/refusal_text.h"
#include "control/daemon/rounds_page.h"
#include "control/daemon/stall_text.h"
#include "dataplane/port/destination.h"

namespace gradplane::daemon {
namespace {

/// So many messages in a row with a wrong tag are no damage on the way.
constexpr std::uint32_t kKeyWarningTags = 3;
/// Between two warnings of one node.
constexpr Duration kKeyWarningPause = Duration::seconds(60);

}  // namespace

void Daemon::act(const session::SendDatagram& action) {
  api::Command send;
  send.kind = api::Command::Kind::kSendControl;
  send.control.node = action.node;
  if (action.node >= config_.cluster.nodes.size() || action.bytes.size() > kMaxControlBytes) return;
  send.control.length_bytes = static_cast<std::uint16_t>(action.bytes.size());
  std::memcpy(send.control.bytes.data(), action.bytes.data(), action.bytes.size());
  // Datagrams leave room for commands about jobs. The session sends again what is lost here.
  api::CommandQueue& commands = cores_[0]->commands;
  if (commands.room() <= 2 * kMaxJobs || !commands.push(send)) ++datagrams_lost_;
}

void Daemon::on_open(server::ConnectionId connection, const server::PeerInfo& peer) {
  peers_[connection] = peer;
}

void Daemon::on_closed(server::ConnectionId connection, bool clean) {
  peers_.erase(connection);
  std::erase(status_askers_, connection);
  std::erase(why_askers_, connection);
  std::erase_if(topology_askers_,
                [&](const auto& asker) { return asker.connection == connection; });
  session_->detach(connection, clean, clock_now());
  if (auto rank = ranks_.extract(connection))
    left_memory_.add(connection, std::move(rank.mapped()));
  run_actions();
}

void Daemon::on_message(server::ConnectionId connection, const protocol::ClientMessage& message) {
  std::visit(
      [&](const auto& m) {
        if constexpr (requires { on(connection, m); }) on(connection, m);
      },
      message);
  run_actions();
}

void Daemon::on(server::ConnectionId connection, const protocol::Attach& attach) {
  if (ranks_.contains(connection)) {
    // A connection has one rank. A process attaches further ranks over further connections.
    server_->hang_up(connection, "this connection has attached a rank already; connect again");
    return;
  }
  // Admission comes first, so that no memory for a channel is made for a rank that is refused.
  const server::PeerInfo& peer = peers_[connection];
  if (const auto freed = left_memory_.free_one_of(peer.uid)) session_->memory_freed(*freed);
  const Status joined = session_->attach({.handle = connection,
                                          .user = peer.uid,
                                          .key = attach.key,
                                          .rank = attach.rank,
                                          .world_size = attach.world_size,
                                          .label = attach.label},
                                         clock_now());
  if (!joined) {
    server_->hang_up(connection, joined.error().message);
    return;
  }
  const Placement place = placement_of(config_, protocol::job_id_of(attach.key));
  auto channel = make_channel(config_.round_bytes, place.count, lent_memory_);
  if (!channel) {
    log_.error("cannot make a channel for rank {}: {}", attach.rank, channel.error().message);
    session_->detach(connection, false, clock_now());
    session_->memory_freed(connection);
    server_->hang_up(connection, channel.error().message);
    return;
  }
  const ipc::Channel& memory = channel.value().channel->channel;
  const auto bell_of = [&](std::size_t c) { return cores_[place.first + c]->doorbell.ring.get(); };
  std::vector<int> fds = {channel.value().trainer_memory.get(), bell_of(0),
                          channel.value().trainer_listens.get()};
  for (std::size_t c = 1; c < place.count; ++c) fds.push_back(bell_of(c));
  const protocol::Attached reply{.slot_count = memory.sizes().slot_count,
                                 .slot_bytes = memory.sizes().slot_bytes,
                                 .total_bytes = memory.sizes().total_bytes(),
                                 .core_count = memory.sizes().core_count};
  ranks_.emplace(connection, Rank{.attach = attach,
                                  .pid = static_cast<std::uint32_t>(peer.pid),
                                  .user = peer.uid,
                                  .channel = std::move(channel.value().channel),
                                  .tables = {}});
  server_->send(connection, reply, fds);
}

void Daemon::on(server::ConnectionId connection, const protocol::RegisterBucket& bucket) {
  const auto rank = ranks_.find(connection);
  if (rank == ranks_.end()) {
    server_->hang_up(connection, "bucket before attach");
    return;
  }
  const auto table = take_bucket(rank->second, bucket);
  if (!table) return server_->hang_up(connection, table.error().message);
  if (table.value().whole) session_->describe_bucket(connection, *table.value().whole, clock_now());
  if (table.value().refusal.empty()) return;
  session_->on_bucket_refused(protocol::job_id_of(rank->second.attach.key), table.value().refusal,
                              clock_now());
  run_actions();
}

void Daemon::on(server::ConnectionId connection, const protocol::Drift& drift) {
  const auto rank = ranks_.find(connection);
  Rank* const who = rank == ranks_.end() ? nullptr : &rank->second;
  const auto warning = take_drift(config_.training, who, drift);
  if (!warning) return server_->hang_up(connection, warning.error().message);
  if (!warning.value().empty()) log_.line(config::LogLevel::kWarn, warning.value());
}

void Daemon::on(server::ConnectionId connection, const protocol::StatusRequest&) {
  status_askers_.push_back(connection);
  ask_snapshot();
}

void Daemon::on(server::ConnectionId connection, const protocol::BoundsRequest& request) {
  const auto page = bounds_page(config_, jobs_, request);
  if (!page) {
    server_->hang_up(connection, page.error().message);
    return;
  }
  server_->send(connection, protocol::BoundsReply{telemetry::to_json(page.value())});
}

void Daemon::on(server::ConnectionId connection, const protocol::RoundsRequest& request) {
  take_round_reports();
  const auto page = rounds_page(config_, jobs_, request);
  if (!page) {
    server_->hang_up(connection, page.error().message);
    return;
  }
  server_->send(connection, protocol::RoundsReply{telemetry::to_json(page.value())});
}

void Daemon::on(server::ConnectionId connection, const protocol::TopologyRequest& request) {
  topology_askers_.push_back({connection, request.why});
  ask_snapshot();
}

/// The session answers later, with AnswerReplan.
void Daemon::on(server::ConnectionId connection, const protocol::ReplanRequest& request) {
  session::PlanChoice choice{request.plan, {}};
  const auto& nodes = config_.cluster.nodes;
  for (const auto& [names, ids] :
       {std::pair(&request.roots, &choice.roots), std::pair(&request.without, &choice.without)}) {
    for (const std::string& name : *names) {
      const auto node = std::find_if(nodes.begin(), nodes.end(),
                                     [&](const config::NodeConfig& n) { return n.name == name; });
      if (node == nodes.end()) {
        server_->hang_up(connection, fmt::format("there is no node {} in cluster.nodes", name));
        return;
      }
      ids->push_back(static_cast<api::NodeId>(node - nodes.begin()));
    }
  }
  if (const std::string denial = why_not_replan(connection, request.job); !denial.empty()) {
    server_->hang_up(connection, denial);
    return;
  }
  const Status asked = session_->replan(connection, request.job, choice, clock_now());
  if (!asked) server_->hang_up(connection, asked.error().message);
}

/// Why this user must not change the plan of a job; empty when he may. Everybody who may connect
/// may look at plans. But a plan decides what other hosts carry, so only root, the daemon's user
/// and the user of the job may change it.
std::string Daemon::why_not_replan(server::ConnectionId connection, std::uint32_t job_id) const {
  const uid_t user = peers_.at(connection).uid;
  if (user == 0 || user == geteuid()) return {};
  for (const session::JobView& job : session_->jobs()) {
    if (job.job_id == job_id && job.user == user) return {};
  }
  return fmt::format(
      "user {} has no ranks of job {:08x} on {}; ask there, or as root or the "
      "daemon's user",
      user, job_id, config_.self_node().name);
}

void Daemon::take_round_reports() {
  for (const auto& core : cores_) take_round_reports(core->reports);
}

void Daemon::take_round_reports(api::ReportQueue& reports) {
  while (const api::JobRoundReport* next = reports.front()) {
    const InstalledJob* job = jobs_.keep_report(*next);
    const bool partial = next->report.reason != CloseReason::kFull;
    if (job != nullptr && partial && log_.shows(config::LogLevel::kDebug)) {
      const telemetry::RoundEntry round = round_entry(config_, *job->bounds, next->report);
      log_.line(config::LogLevel::kDebug,
                fmt::format("job {}: {}", job->label, telemetry::round_line(round)));
    }
    reports.pop();
  }
}

void Daemon::take_engine_events() {
  // Reports come first: an event below may remove the job that a report is about.
  take_round_reports();
  const Instant now = clock_now();
  for (const auto& core : cores_) {
    for (; const api::Event* event = core->events.front(); core->events.pop()) {
      if (event->kind == api::Event::Kind::kSnapshotFilled)
        core->snapshot.reset(event->snapshot);
      else
        take_event(*event, now);
      if (event->kind == api::Event::Kind::kSnapshotFilled && has_all_snapshots())
        on_snapshots(now);
    }
  }
  run_actions();
}

/// A message with another key looks like a damaged or a forged one, and no tag says who sent it. So
/// the warning names the address, and it comes seldom, because anyone may send such messages.
void Daemon::on_control(const api::ControlBytes& control, Instant now) {
  const session::DatagramDrop drop =
      session_->on_datagram({control.bytes.data(), control.length_bytes}, now);
  if (drop == session::DatagramDrop::kTruncated) return;  // too short to have a tag
  KeyDoubt& doubt = key_doubts_[control.node];
  doubt.bad_tags = drop == session::DatagramDrop::kBadTag ? doubt.bad_tags + 1 : 0;
  if (doubt.bad_tags < kKeyWarningTags || now < doubt.next_warning) return;
  doubt.next_warning = now + kKeyWarningPause;
  const config::NodeConfig& node = config_.cluster.nodes[control.node];
  log_.line(
      config::LogLevel::kWarn,
      fmt::format("refused messages from the address of node {} ({}): they are not signed with "
                  "the cluster.key of this node; give both nodes the same cluster.key, or "
                  "find out who else sends from that address",
                  node.name, port::to_text(node.address)));
}

void Daemon::take_event(const api::Event& event, Instant now) {
  switch (event.kind) {
    case api::Event::Kind::kControl:
      on_control(event.control, now);
      break;
    case api::Event::Kind::kJobRemoved:
      jobs_.on_returned(event.job);
      break;
    case api::Event::Kind::kJobRefused: {
      const InstalledJob* job = jobs_.find_running(event.job);
      const std::uint32_t id = job != nullptr ? job->id : 0;
      jobs_.on_refused(event.job);
      if (id == 0) break;
      session_->on_job_error(id, refusal_text(event.job_refusal), now);
      break;
    }
    case api::Event::Kind::kSnapshotFilled:
      break;  // see take_engine_events()
    case api::Event::Kind::kMismatch:
      on_mismatch(event);
      break;
    case api::Event::Kind::kStalled:
      on_stalled(event);
      break;
    case api::Event::Kind::kRankBroken:
      on_rank_broken(event);
      break;
    case api::Event::Kind::kPlanPrepared:
    case api::Event::Kind::kPlanRefused:
    case api::Event::Kind::kPlanReturned:
      on_plan_event(event);
      break;
  }
}

namespace {

std::string name_of(const Statement& said) {
  const std::string source = said.operation == Operation::kBroadcast
                                 ? fmt::format(" from rank {}", said.source)
                                 : std::string();
  const std::string reduction =
      all_contribute(said.operation) ? fmt::format(" ({})", reduction_name(said.reduction)) : "";
  return fmt::format("{}{}{} of {} elements of {}", operation_name(said.operation), reduction,
                     source, said.elements, element_type_name(said.type));
}

}  // namespace

void Daemon::on_mismatch(const api::Event& event) {
  const InstalledJob* job = jobs_.find_running(event.job);
  if (job == nullptr) return;
  const std::string& node = config_.cluster.nodes[event.node].name;
  session_->on_job_error(
      job->id,
      fmt::format("round {}: node {} submitted {}, others {}; every rank must call the same "
                  "operations on the same tensors in the same order",
                  event.round, node, name_of(event.theirs), name_of(event.ours)),
      clock_now());
}

void Daemon::on_stalled(const api::Event& event) {
  const InstalledJob* job = jobs_.find_running(event.job);
  if (job == nullptr) return;
  session_->on_job_error(job->id, stall_text(config_, event.round, event.node, event.stall),
                         clock_now());
}

void Daemon::on_plan_event(const api::Event& event) {
  const auto told = jobs_.take_plan_event(event);
  const InstalledJob* job = jobs_.find_running(event.job);
  if (!told || job == nullptr) return;
  const Instant now = clock_now();
  if (told->kind == api::Event::Kind::kPlanPrepared)
    session_->on_plan_prepared(job->id, told->epoch, told->round, now);
  else if (told->kind == api::Event::Kind::kPlanReturned)
    session_->on_plan_ended(job->id, told->epoch, now);
  else
    session_->on_plan_refused(job->id, told->epoch, refusal_text(told->plan_refusal), now);
}

namespace {

std::string text_of(RankFault fault) {
  switch (fault) {
    case RankFault::kBadSubmission:
      return "it submitted a round that is out of order or that its job cannot have";
    case RankFault::kTooManyRounds:
      return fmt::format("it submitted a round while {} others were not complete",
                         kMaxInFlightRounds);
    case RankFault::kBadRingIndex:
      return "it moved the index of a ring to where it cannot be";
    case RankFault::kCompletionsNotTaken:
      return "it does not take its completions";
    case RankFault::kCount:
      break;
  }
  return "?";
}

}  // namespace

void Daemon::on_rank_broken(const api::Event& event) {
  const InstalledJob* job = jobs_.find_running(event.job);
  if (job == nullptr || event.local_rank >= job->local_ranks.size()) return;
  const session::LocalRank rank = job->local_ranks[event.local_rank];
  const auto known = ranks_.find(rank.handle);
  if (known == ranks_.end() || std::exchange(known->second.is_broken, true)) return;
  const std::string why = text_of(event.fault);
  log_.error(
      "rank {} of job {} did what no correct client does: {}; ending its session. Use the "
      "client that belongs to this daemon",
      rank.rank, job->label, why);
  server_->hang_up(rank.handle, "the channel's content is not valid: " + why);
}

}  // namespace gradplane::daemon
