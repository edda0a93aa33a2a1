// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/incoming.h"

#include <algorithm>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::job {

bool Incoming::join(grants::GrantScheduler& grants, grants::JobIndex index,
                    const hop::PeerTable& peers) {
  GP_ASSERT(grants_ == nullptr);
  grants_ = &grants;
  index_ = index;
  if (reserve(peers.size())) {
    update(peers);
    return true;
  }
  grants_ = nullptr;
  return false;
}

bool Incoming::reserve(std::size_t peers) {
  if (grants_ == nullptr) return true;
  while (spare_.size() < peers) {
    if (const auto source = grants_->add_source(index_)) {
      spare_.push_back(*source);
      continue;
    }
    give_back_spare();
    return false;
  }
  return true;
}

void Incoming::give_back_spare() {
  for (; !spare_.empty(); spare_.pop_back()) grants_->remove_source(spare_.back());
}

void Incoming::update(const hop::PeerTable& peers) {
  if (grants_ == nullptr) return;
  sources_.resize(peers.size(), kNoSource);
  for (std::size_t p = 0; p < sources_.size(); ++p) {
    const auto peer = hop::PeerIndex::from_index(p);
    const bool in_use = peers[peer].is_in_use();
    if (in_use && !is_source(peer)) {
      GP_ASSERT(!spare_.empty());
      sources_[p] = spare_.back();
      spare_.pop_back();
    } else if (!in_use && is_source(peer)) {
      grants_->remove_source(std::exchange(sources_[p], kNoSource));
    }
  }
  give_back_spare();
}

void Incoming::leave() {
  if (grants_ == nullptr) return;
  for (const grants::SourceIndex source : sources_) {
    if (source != kNoSource) grants_->remove_source(source);
  }
  sources_.clear();
  grants_ = nullptr;
}

void Incoming::on_packet(const wire::BlockPacket& packet, hop::PeerIndex peer, bool marked,
                         Instant now) {
  if (grants_ == nullptr) return;
  const std::size_t wire_bytes = packet.payload.size() + hop::kWireOverheadBytes;
  if (!packet.has_hop || !is_source(peer)) return grants_->on_other(wire_bytes, now);
  const wire::HopFeedback& feedback = packet.hop;
  // The peer measures the same round trip as this node, but earlier: this node sends nothing that
  // would be acked before there are results.
  if (feedback.round_trip != 0) {
    grants_->on_rtt(sources_[peer.index()],
                    wire::kRoundTripUnit * std::int64_t{feedback.round_trip});
  }
  grants_->on_data(sources_[peer.index()], feedback.sent_blocks, feedback.waiting_blocks,
                   wire_bytes, marked, now);
}

void Incoming::on_round(std::size_t slot, std::uint16_t bucket, std::uint32_t blocks) {
  iteration_.on_round(slot, bucket);
  iteration_.on_announced(kAllPeers, blocks);
  on_blocks(slot, 0);
}

void Incoming::on_blocks(std::size_t slot, std::uint32_t blocks) {
  if (grants_ == nullptr) return;
  iteration_.on_settled(slot, kAllPeers, blocks);
  grants_->set_job_progress(index_, iteration_.ratio(kAllPeers));
}

void Incoming::withdraw(hop::PeerIndex peer, Instant now) {
  if (is_source(peer)) grants_->withdraw(sources_[peer.index()], now);
}

std::uint32_t Incoming::ack_every() const {
  const auto any = std::find_if(sources_.begin(), sources_.end(),
                                [](const auto source) { return source != kNoSource; });
  if (any == sources_.end()) return hop::kAckEveryPackets;
  return std::clamp<std::uint32_t>(grants_->unscheduled_blocks(*any) / 2, 1, hop::kAckEveryPackets);
}

wire::Grant Incoming::grant_of(hop::PeerIndex peer) const {
  if (!is_source(peer)) return {};
  return {.total_blocks = grants_->view(sources_[peer.index()]).total_blocks,
          .unscheduled_blocks = grants_->unscheduled_blocks(sources_[peer.index()])};
}

}  // namespace gradplane::job
