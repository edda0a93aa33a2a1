// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Snapshots of the engine for the control thread. This code is cold.
#include <algorithm>
#include <cmath>

#include "dataplane/engine/engine.h"

namespace gradplane::engine {

static_assert(hop::kDropCount <= api::kDropReasons);
static_assert(static_cast<std::size_t>(port::PortDrop::kCount) <= api::kPortDropReasons);

namespace {

void copy_traffic(api::TrafficSnapshot& out, const hop::Counters& in) {
  static_cast<TrafficCounts&>(out) = in;
  std::copy(in.drops.begin(), in.drops.end(), out.drops.begin());
}

void copy_flow(api::PeerSnapshot& out, const job::Job& job, hop::PeerIndex index, Instant now) {
  const hop::Peer& peer = job.peers()[index.index()];
  const hop::Flow& flow = peer.flow;
  const congestion::Stats stats = flow.controller().stats();
  const bool is_heard = peer.heard_at != Instant();
  out = {.node = peer.node,
         .silence_ns = is_heard ? (now - peer.heard_at).count_ns() : -1,
         .window_blocks = flow.window(),
         .in_flight_blocks = flow.in_flight(),
         .granted = job.config().grants,
         .credit_blocks = peer.credit.credit(),
         .smoothed_rtt_ns = flow.smoothed_rtt().count_ns(),
         .min_rtt_ns = flow.min_rtt().count_ns(),
         .blocks_sent = flow.counts().sent,
         .blocks_retransmitted = flow.counts().retransmitted,
         .blocks_suspected_lost = flow.counts().suspected_lost,
         .rate_bits_per_second = flow.rate_bits_per_second(now),
         .pacing_bits_per_second = flow.controller().decide(now).pacing_bits_per_second,
         .controller = static_cast<std::uint8_t>(job.config().congestion.controller),
         .reason = static_cast<std::uint8_t>(stats.reason),
         .limit = static_cast<std::uint8_t>(job.limit_of(index, now)),
         .gain = stats.gain};
}

void copy_job(api::JobSnapshot& out, const job::Job& job, Instant now) {
  out.job = job.config().job;
  out.epoch = job.config().epoch;
  out.plan_epoch = job.epoch();
  copy_traffic(out.traffic, job.counters());
  const job::Waiting waiting = job.waiting();
  out.open_rounds = waiting.open_rounds;
  out.oldest_round = waiting.round;
  out.local_missing = waiting.local_missing;
  out.silent_node_count = waiting.silent_count;
  std::copy(waiting.silent_nodes.begin(), waiting.silent_nodes.end(), out.silent_nodes.begin());
  out.groups = job.group_hearing();
  out.flow_count = static_cast<std::uint32_t>(job.peers().size());
  out.peer_count = static_cast<std::uint32_t>(std::min(job.peers().size(), out.peers.size()));
  for (std::size_t p = 0; p < out.peer_count; ++p) {
    copy_flow(out.peers[p], job, hop::PeerIndex::from_index(p), now);
  }
}

/// Rounds up, so that whatever is known has a confidence of at least one percent.
std::uint8_t percent(double confidence) {
  return static_cast<std::uint8_t>(std::ceil(std::clamp(confidence, 0.0, 1.0) * 100));
}

void copy_link(api::LinkSnapshot& out, const awareness::IncomingLinks::Link& link, Instant now) {
  out = {.node = link.node};
  if (const awareness::RateEstimate rate = link.estimate.rate(now); rate.confidence > 0) {
    out.rate_bits_per_second = rate.bits_per_second;
    out.rate_is_lower_bound = rate.is_lower_bound;
    out.rate_confidence_percent = percent(rate.confidence);
    out.rate_age_ns = rate.age.count_ns();
  }
  if (const awareness::RttEstimate rtt = link.estimate.round_trip(now); rtt.confidence > 0) {
    out.rtt_ns = rtt.rtt.count_ns();
    out.rtt_age_ns = rtt.age.count_ns();
  }
  if (const awareness::LossEstimate loss = link.estimate.loss(now); loss.confidence > 0) {
    out.loss_ppm = static_cast<std::uint32_t>(std::lround(loss.share * 1e6));
    out.loss_confidence_percent = percent(loss.confidence);
    out.loss_age_ns = loss.age.count_ns();
  }
}

}  // namespace

/// A snapshot has room for some links only, so successive snapshots go through them in turn.
void Engine::copy_links(api::EngineSnapshot& out) {
  const awareness::IncomingLinks& links = node_.links();
  out.links_heard = static_cast<std::uint32_t>(links.size());
  out.link_count = static_cast<std::uint32_t>(std::min(links.size(), out.links.size()));
  for (std::size_t l = 0; l < out.link_count; ++l) {
    copy_link(out.links[l], links[next_link_++ % links.size()], now_);
  }
}

void Engine::fill_snapshot(api::EngineSnapshot& out) {
  // Each value is written. What a snapshot had before stays in arrays beyond their counts.
  copy_traffic(out.node, node_.counters());
  const port::PortCounters& port = queue_.counters();
  out.port.rx_datagrams = port.rx_datagrams;
  out.port.rx_bytes = port.rx_bytes;
  out.port.tx_datagrams = port.tx_datagrams;
  out.port.tx_bytes = port.tx_bytes;
  out.port.tx_lent = port.tx_lent;
  out.port.rx_missed = port.rx_missed;
  out.port.handed_over = port.handed_over;
  out.port.igmp_version = port.igmp_version;
  std::copy(port.drops.begin(), port.drops.end(), out.port.drops.begin());
  out.polls = polls_;
  out.busy_polls = busy_polls_;
  out.sleeps = sleeps_;
  out.rx_bursts = rx_bursts_;
  out.tx_bursts = tx_bursts_;
  out.stage_ns = stages_.times();
  out.control_lost = control_lost_;
  out.rank_faults = rank_faults_;
  out.job_count = static_cast<std::uint32_t>(job_count_);
  for (std::size_t j = 0; j < job_count_; ++j) copy_job(out.jobs[j], jobs_[j]->job(), now_);
  copy_links(out);
}

}  // namespace gradplane::engine
