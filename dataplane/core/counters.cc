// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/core/counters.h"

namespace gradplane::core {

std::string_view drop_name(Drop drop) {
  switch (drop) {
    case Drop::kMalformed:
      return "malformed";
    case Drop::kUnknownNode:
      return "unknown_node";
    case Drop::kUnknownJob:
      return "unknown_job";
    case Drop::kWrongEpoch:
      return "wrong_epoch";
    case Drop::kBadTag:
      return "bad_tag";
    case Drop::kNotPeer:
      return "not_peer";
    case Drop::kPastRound:
      return "past_round";
    case Drop::kFutureRound:
      return "future_round";
    case Drop::kBadGeometry:
      return "bad_geometry";
    case Drop::kMismatch:
      return "mismatch";
    case Drop::kBadContributors:
      return "bad_contributors";
    case Drop::kDuplicate:
      return "duplicate";
    case Drop::kCount:
      break;
  }
  return "?";
}

void Counters::add(const Counters& o) {
  for (std::size_t i = 0; i < kDropCount; ++i) drops[i] += o.drops[i];
  blocks_sent += o.blocks_sent;
  blocks_retransmitted += o.blocks_retransmitted;
  blocks_suspected_lost += o.blocks_suspected_lost;
  probes += o.probes;
  blocks_received += o.blocks_received;
  acks_sent += o.acks_sent;
  acks_received += o.acks_received;
  payload_bytes_sent += o.payload_bytes_sent;
  payload_bytes_received += o.payload_bytes_received;
  rounds_completed += o.rounds_completed;
  congestion_marks += o.congestion_marks;
  rounds_closed_early += o.rounds_closed_early;
  rounds_closed_deadline += o.rounds_closed_deadline;
  rounds_closed_absent += o.rounds_closed_absent;
  blocks_missing += o.blocks_missing;
  blocks_late += o.blocks_late;
  blocks_excluded += o.blocks_excluded;
  blocks_carried += o.blocks_carried;
  carry_dropped += o.carry_dropped;
}

}  // namespace gradplane::core
