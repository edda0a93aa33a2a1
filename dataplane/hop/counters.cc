// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/counters.h"

namespace gradplane::hop {

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
    case Drop::kReplayed:
      return "replayed";
    case Drop::kBadRoute:
      return "bad_route";
    case Drop::kUnknownRoute:
      return "unknown_route";
    case Drop::kRelayFull:
      return "relay_full";
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
    case Drop::kBadGrant:
      return "bad_grant";
    case Drop::kUnusedParity:
      return "unused_parity";
    case Drop::kCount:
      break;
  }
  return "?";
}

void Counters::add(const Counters& other) {
  TrafficCounts::add(other);
  for (std::size_t i = 0; i < kDropCount; ++i) drops[i] += other.drops[i];
}

}  // namespace gradplane::hop
