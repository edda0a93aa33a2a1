// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/iteration.h"

#include <algorithm>

#include "dataplane/model/loss_bounds.h"

namespace gradplane::hop {

Iteration::Iteration(std::size_t peers, std::size_t max_peers)
    : peers_(peers), last_seen_(kMaxBuckets + 1) {
  peers_.reserve(max_peers);
}

bool Iteration::on_round(std::size_t slot, std::uint16_t bucket) {
  const bool ends_one = bucket == 0 ? !has_buckets_ : last_seen_[bucket] == number_;
  const bool begins = number_ == 0 || ends_one;
  has_buckets_ = has_buckets_ || bucket != 0;
  if (begins) {
    ++number_;
    for (Peer& peer : peers_) peer = {.before = has_buckets_ ? peer.announced : 0};
  }
  last_seen_[bucket] = number_;
  slot_number_[slot] = number_;
  return begins;
}

void Iteration::on_settled(std::size_t slot, PeerIndex peer, std::uint32_t blocks) {
  if (slot_number_[slot] == number_) peers_[peer.index()].settled += blocks;
}

double Iteration::ratio(PeerIndex peer) const {
  const Peer& p = peers_[peer.index()];
  const std::uint64_t total = std::max(p.before, p.announced);
  return total == 0 ? 0 : static_cast<double>(p.settled) / static_cast<double>(total);
}

}  // namespace gradplane::hop
