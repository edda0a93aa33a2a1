// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/protocol/node_messages.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

/// Says which node coordinates. Every message between nodes carries the sender's term. A node that
/// hears of a higher term follows it, and ignores messages of lower terms. Of two terms with the
/// same number, the one whose coordinator has the higher node id is higher. So no two nodes
/// coordinate in one term.
struct Term {
  std::uint32_t number = 0;  // how often a node has chosen another coordinator
  api::NodeId coordinator = 0;
  auto operator<=>(const Term&) const = default;
};

/// Which node coordinates, as far as this node knows, for people.
struct TermView {
  Term term;
  Instant since;              // when this node began to follow it
  bool is_searching = false;  // the coordinator is lost or silent, and this node looks for another
};

/// The payload of a link, in network byte order: number u32, coordinator u16, and a node message.
/// Without a message it only tells the term.
struct Envelope {
  Term term;
  std::span<const std::byte> message;
};
inline constexpr std::size_t kTermBytes = 4 + 2;
/// The highest number of a term. No cluster has so many elections.
inline constexpr std::uint32_t kMaxTermNumber = 0x7fffffff;
/// The most elections that a node may have missed. A term with a higher number is no honest one,
/// and a node that followed it might find no number for the next.
inline constexpr std::uint32_t kMaxTermStep = 0xfffff;
static_assert(kMaxTermStep < kMaxTermNumber && kMaxTermNumber < UINT32_MAX - kMaxTermStep);
static_assert(protocol::kMaxPlanBytes + protocol::kMaxNodeTextBytes + 128 + kTermBytes <=
                  protocol::kMaxNodeMessageBytes,
              "a Prepare with the longest plan and label fits");

std::vector<std::byte> seal(const Term& term, std::span<const std::byte> message);
std::optional<Envelope> open_envelope(std::span<const std::byte> bytes);

}  // namespace gradplane::session
