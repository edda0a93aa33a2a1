// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/node.h"

#include <algorithm>

#include "dataplane/base/assert.h"
#include "dataplane/job/job_config.h"

namespace gradplane::job {
namespace {

constexpr std::size_t kMinLinkBurstBytes = 16 * (kDefaultBlockBytes + hop::kWireOverheadBytes);
/// Bursts per second. A poll loop that sleeps for as long as one burst takes still fills its link.
constexpr std::uint64_t kLinkBurstPerSecond = 2000;  // 0.5 ms

std::size_t link_burst_bytes(std::uint64_t bits_per_second) {
  return std::max<std::size_t>(kMinLinkBurstBytes, bits_per_second / 8 / kLinkBurstPerSecond);
}

}  // namespace

Node::Node(std::uint16_t self, Link link, const GrantSettings& grants)
    : self_(self),
      share_(link.share.value_or(hop::LinkShare::whole(link.bits_per_second))),
      paced_bits_per_second_(share_.bits_per_second(Instant())),
      link_(paced_bits_per_second_, link_burst_bytes(paced_bits_per_second_)),
      may_grant_(link.grants),
      lends_from_bytes_(link.lends_from_bytes),
      grants_({.link_bits_per_second = link.bits_per_second,
               .buffer_bytes = link.buffer_bytes,
               .block_wire_bytes = link.block_bytes + hop::kWireOverheadBytes,
               .max_sources = kMaxGrantSources,
               .max_jobs = kMaxJobs}),
      grant_sources_(kMaxGrantSources) {
  grants_.set_policy(grants.policy);
  grants_.set_mltcp(grants.mltcp.slope, grants.mltcp.intercept);
}

JobRefusal Node::add(Job* job) {
  if (job_count_ == jobs_.size()) return JobRefusal::kTooMany;
  if (find(job->config().job) != nullptr) return JobRefusal::kSameId;
  if (job->config().grants && !may_grant_) return JobRefusal::kNoGrants;
  if (job->config().grants && !grant_to_peers_of(job)) return JobRefusal::kNoRoom;
  job->use_links(links_);
  job->lend_from(lends_from_bytes_);
  ids_[job_count_] = job->config().job;
  jobs_[job_count_++] = job;
  return JobRefusal::kNone;
}

bool Node::grant_to_peers_of(Job* job) {
  const auto free = std::find(grant_index_taken_.begin(), grant_index_taken_.end(), false);
  if (!job->join(grants_, grants::JobIndex::from_index(
                              static_cast<std::size_t>(free - grant_index_taken_.begin())))) {
    return false;
  }
  *free = true;  // there are as many indices as jobs
  ++granted_jobs_;
  grants_.set_job_weight(job->grant_index(), job->config().weight);
  list_sources_of(job);
  return true;
}

void Node::list_sources_of(Job* job) {
  for (std::size_t p = 0; p < job->sources().size(); ++p) {
    const grants::SourceIndex source = job->sources()[p];
    if (source != Incoming::kNoSource)
      grant_sources_[source.index()] = {job, hop::PeerIndex::from_index(p)};
  }
}

Prepared Node::prepare(Job* job, std::unique_ptr<Plan>& plan) {
  const Prepared prepared = job->prepare(plan);
  list_sources_of(job);  // a plan may bring new peers, which are sources
  return prepared;
}

void Node::remove(Job* job) {
  const auto end = jobs_.begin() + static_cast<std::ptrdiff_t>(job_count_);
  const auto at = std::find(jobs_.begin(), end, job);
  if (at == end) return;
  if (job->config().grants) {
    grant_index_taken_[job->grant_index().index()] = false;
    job->leave();
    --granted_jobs_;
  }
  *at = jobs_[--job_count_];
  ids_[static_cast<std::size_t>(at - jobs_.begin())] = ids_[job_count_];
  jobs_[job_count_] = nullptr;
}

std::optional<std::span<const std::byte>> Node::handle(std::uint16_t node,
                                                       std::span<const std::byte> datagram,
                                                       bool congestion_experienced,
                                                       const awareness::Arrival& arrival) {
  may_owe_ = true;
  wire::Envelope envelope;
  if (wire::read_envelope(datagram, envelope) != wire::ParseError::kNone) {
    counters_.drop(hop::Drop::kMalformed);
    return std::nullopt;
  }
  const bool is_relayed = wire::is_routed(envelope);
  if ((envelope.sender != node && !is_relayed) || node == self_) {
    counters_.drop(hop::Drop::kUnknownNode);
    return std::nullopt;
  }
  const std::size_t wire_bytes = datagram.size() + hop::kFrameOverheadBytes;
  if (!wire::is_block(envelope.type)) grants_.on_other(wire_bytes, arrival.at);
  if (envelope.type == wire::PacketType::kControl) {
    const std::span<const std::byte> body = datagram.subspan(wire::kEnvelopeBytes);
    if (body.size() <= kMaxControlBytes) return body;
    counters_.drop(hop::Drop::kMalformed);
    return std::nullopt;
  }
  Job* const job = find(envelope.job);
  if (job == nullptr) {
    counters_.drop(hop::Drop::kUnknownJob);
    return std::nullopt;
  }
  // Blocks of a job without grants take their part of the link that the others are granted.
  if (granted_jobs_ > 0 && wire::is_block(envelope.type) && !job->config().grants)
    grants_.on_other(wire_bytes, arrival.at);
  const auto told = job->handle(node, envelope, datagram, congestion_experienced, arrival.at);
  if (told) {
    links_.on_packet(
        node,
        {.sent_us = envelope.timestamp_us, .wire_bytes = static_cast<std::uint32_t>(wire_bytes)},
        arrival, *told);
  }
  return std::nullopt;
}

Job* Node::find(std::uint32_t id) const {
  const auto end = ids_.begin() + static_cast<std::ptrdiff_t>(job_count_);
  const auto at = std::find(ids_.begin(), end, id);
  return at == end ? nullptr : jobs_[static_cast<std::size_t>(at - ids_.begin())];
}

std::optional<Node::Outgoing> Node::poll_transmit(std::span<std::byte> out, Instant now) {
  if (now != polled_at_) may_owe_ = true;
  polled_at_ = now;
  if (may_owe_) {
    if (const auto owed = next_owed(out, now)) return owed;
    may_owe_ = false;
  }
  if (!link_.may_send(now)) return std::nullopt;
  if (relays_next_) {
    if (const auto relayed = next_relayed(out, now)) return relayed;
  }
  if (const auto block = next_block(out, now)) return block;
  return next_relayed(out, now);
}

/// The next ack or grant. Sending a block makes none due; only time and packets that come do.
std::optional<Node::Outgoing> Node::next_owed(std::span<std::byte> out, Instant now) {
  for (Job* job : jobs()) {
    const auto ack = job->poll_ack(out, now);
    if (!ack) continue;
    // An ack never waits for the link, but it is charged to the link, so that blocks wait for it.
    link_.on_sent(now, ack->length_bytes + hop::kFrameOverheadBytes);
    return Outgoing{.node = ack->node,
                    .length_bytes = ack->length_bytes,
                    .is_tagged = job->config().authenticate};
  }
  return next_grant(out, now);
}

std::optional<Node::Outgoing> Node::next_relayed(std::span<std::byte> out, Instant now) {
  for (Job* job : jobs()) {
    const auto packet = job->poll_relayed(out);
    if (!packet) continue;
    relays_next_ = false;
    link_.on_sent(now, packet->length_bytes + hop::kFrameOverheadBytes);
    return Outgoing{.node = packet->node,
                    .length_bytes = packet->length_bytes,
                    .data = true,
                    .is_tagged = job->config().authenticate};
  }
  return std::nullopt;
}

std::optional<Node::Outgoing> Node::next_block(std::span<std::byte> out, Instant now) {
  for (std::size_t i = 0; i < job_count_; ++i) {
    const std::size_t at = (next_job_ + i) % job_count_;
    const auto block = jobs_[at]->poll_data(out, now);
    if (!block) continue;
    next_job_ = (at + 1) % job_count_;
    relays_next_ = true;
    link_.on_sent(now, block->packet_bytes() + hop::kFrameOverheadBytes);
    return Outgoing{.node = block->node,
                    .length_bytes = block->length_bytes,
                    .data = true,
                    .is_tagged = jobs_[at]->config().authenticate,
                    .group = block->group,
                    .lent = block->lent};
  }
  return std::nullopt;
}

std::optional<Node::Outgoing> Node::next_grant(std::span<std::byte> out, Instant now) {
  const auto grant = grants_.next_grant(now);
  if (!grant) return std::nullopt;
  const GrantSource& source = grant_sources_[grant->source.index()];
  const auto sent = source.job->write_grant(source.peer, out, now);
  link_.on_sent(now, sent.length_bytes + hop::kFrameOverheadBytes);
  return Outgoing{.node = sent.node,
                  .length_bytes = sent.length_bytes,
                  .is_tagged = source.job->config().authenticate};
}

bool Node::sum_local(std::size_t max_blocks) {
  may_owe_ = true;
  bool more = false;
  for (Job* job : jobs()) more = job->sum_local(max_blocks) || more;
  return more;
}

void Node::tick(Instant now) {
  may_owe_ = true;
  if (const std::uint64_t rate = share_.bits_per_second(now); rate != paced_bits_per_second_) {
    paced_bits_per_second_ = rate;
    link_.set_link_rate(now, rate, link_burst_bytes(rate));
  }
  for (Job* job : jobs()) job->tick(now);
}

bool Node::is_held_back(Instant now) const {
  if (link_.may_send(now)) return false;
  const std::span<Job* const> all = jobs();
  return std::any_of(all.begin(), all.end(),
                     [now](const Job* job) { return job->next_data() <= now; });
}

Instant Node::next_deadline(Instant now) const {
  Instant deadline = grants_.next_time(now);
  for (const Job* job : jobs()) {
    deadline = std::min(deadline, job->next_timer());
    deadline = std::min(deadline, std::max(job->next_data(), link_.next_send()));
  }
  return deadline;
}

}  // namespace gradplane::job
