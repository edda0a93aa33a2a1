// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What the daemon tells of itself, from what the poll loops know.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "control/daemon/daemon.h"
#include "control/daemon/links.h"
#include "control/daemon/status.h"
#include "control/daemon/topology_page.h"
#include "dataplane/base/assert.h"

namespace gradplane::daemon {

namespace {

/// The longest report that fits a message together with the rest of the message.
constexpr std::size_t kMaxReportBytes = protocol::kMaxSocketMessageBytes - 1024;
/// How often the daemon looks for drops that an operator should know of. A trainer waits for 10 s
/// before it goes on without gradplane, so the log has the reason before that.
constexpr Duration kDropsInterval = Duration::seconds(5);

}  // namespace

/// Asks each poll loop for a snapshot, unless some are on their way already.
void Daemon::ask_snapshot() {
  snapshot_wanted_ =
      !status_askers_.empty() || !topology_askers_.empty() || links_wanted_ || drops_wanted_;
  const bool can_ask = std::all_of(cores_.begin(), cores_.end(), [](const auto& core) {
    return core->snapshot != nullptr && core->commands.room() > 0;
  });
  if (!snapshot_wanted_ || !can_ask) return;
  for (const auto& core : cores_) {
    api::Command fill;
    fill.kind = api::Command::Kind::kFillSnapshot;
    fill.snapshot = core->snapshot.release();  // the poll loop owns it until it gives it back
    GP_ASSERT(core->commands.push(fill));
  }
}

/// Looks at what the poll loops have dropped, also while there is no job.
void Daemon::watch_drops() {
  drops_wanted_ = true;
  ask_snapshot();
  loop_->start_timer(server::EventLoop::now() + kDropsInterval, [this] { watch_drops(); });
}

bool Daemon::has_all_snapshots() const {
  return std::all_of(cores_.begin(), cores_.end(),
                     [](const auto& core) { return core->snapshot != nullptr; });
}

/// Reports the links, and answers all who have asked since the last snapshot.
void Daemon::on_snapshots(Instant now) {
  for (std::size_t c = 0; c < cores_.size(); ++c) links_.update(*cores_[c]->snapshot, now, c);
  session_->on_links(samples_of(links_.take_updated(now), config_.self), now);
  Dropped dropped;
  for (const auto& core : cores_) dropped.add(*core->snapshot);
  for (const std::string& warning : drop_watch_.look(dropped, now))
    log_.line(config::LogLevel::kWarn, warning);
  links_wanted_ = drops_wanted_ = snapshot_wanted_ = false;
  // Sending may close a connection, and that removes it from status_askers_.
  const auto status_askers = std::exchange(status_askers_, {});
  if (!status_askers.empty()) {
    const telemetry::StatusReport report = build_status(
        {config_, *session_, *server_, cores_, jobs_, ranks_, links_, *groups_, started_});
    const std::string reply =
        protocol::encode(protocol::StatusReply{telemetry::to_json(report, kMaxReportBytes)});
    for (const server::ConnectionId asker : status_askers) server_->send_encoded(asker, reply);
  }
  if (!topology_askers_.empty()) answer_topology(now);
}

/// Answers those who ask for the topology. Only the plan thread can say why jobs have their plans,
/// because the planners take time. All who ask for that meanwhile get the same answer.
void Daemon::answer_topology(Instant now) {
  const session::TopologyView told = session_->topology(now);
  const KnownTopology known{jobs_, link_status(config_, links_),
                            session_->coordinates() ? &told : nullptr};
  const auto encoded = [](const telemetry::Topology& topology) {
    return protocol::encode(protocol::TopologyReply{telemetry::to_json(topology, kMaxReportBytes)});
  };
  // Each page is made once, however many ask.
  std::string page;
  std::string page_without_reasons;
  for (const TopologyAsker& asker : std::exchange(topology_askers_, {})) {
    if (!asker.why) {
      if (page.empty()) page = encoded(topology_page(config_, known));
      server_->send_encoded(asker.connection, page);
    } else if (!session_->coordinates()) {
      const std::string& name = config_.cluster.nodes[session_->coordinator()].name;
      if (page_without_reasons.empty())
        page_without_reasons = encoded(without_reasons(topology_page(config_, known), name));
      server_->send_encoded(asker.connection, page_without_reasons);
    } else {
      why_askers_.push_back(asker.connection);
      if (why_under_way_) continue;
      why_under_way_ = true;
      const auto reasons = std::make_shared<Reasons>(config_, why_question(config_, known));
      plans_->ask([encoded, reasons]() -> std::optional<std::string> {
        const auto whole = reasons->step();
        return whole ? std::optional(encoded(*whole)) : std::nullopt;
      });
    }
  }
}

}  // namespace gradplane::daemon
