// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/base/bitmap.h"
#include "dataplane/hop/edge.h"
#include "dataplane/job/rounds.h"
#include "dataplane/job/state.h"
#include "dataplane/wire/block.h"

namespace gradplane::job {

/// The exchanges of other ranks under bounded staleness (SSP: Ho et al., NIPS 2013; with receivers:
/// Luo et al., IEEE TSC 2024, section V). Ranks are not in step, so the updates that another rank
/// sends for a bucket do not belong to rounds of this node. They are a stream with rounds of its
/// own. Each block is acked and goes to the bucket's inbox when it comes, whether this node has
/// submitted that round, will do so, or has its result already. The next result of the bucket takes
/// what is in the inbox.
///
/// A result waits only for a rank that is more than the bound behind (Rounds::is_fresh()). So every
/// rank must know how far each other one is. A rank that does not send its update to a receiver
/// therefore sends it an empty first block.
class Streams {
 public:
  Streams(State& state, Rounds& rounds);

  /// Whether a push over this edge belongs to a stream.
  static bool takes(const hop::InEdge& edge, const wire::BlockHeader& header) {
    return !edge.stream.empty() && header.operation == Operation::kExchange && header.bucket != 0;
  }
  /// The round of the stream to which a push belongs; the push may begin it. If the push fits none,
  /// a drop is counted and nullptr returned.
  hop::StreamSlot* slot_of(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet,
                           Instant now);
  /// Whether the block comes too early. Ranks hand each other results of exact rounds when their
  /// daemons are lost, and remember those of a few rounds. So while this node lacks an exact round,
  /// it takes no first block of a later exchange, and nobody completes such an exchange.
  bool must_wait(const hop::StreamSlot& slot, std::uint32_t block) const;
  /// Adds a block that the slot's receiver has accepted for the first time.
  void add(Plan& plan, hop::InEdge& edge, hop::StreamSlot& slot, const wire::BlockPacket& packet,
           Instant now);
  /// Ends rounds that may end without some blocks, by the bounds of their tensors.
  void close_due(Instant now);
  bool any_gathering() const { return gathering_ > 0; }

 private:
  using Drop = hop::Drop;

  hop::StreamSlot* begin(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet,
                         hop::StreamSlot& slot, const Geometry& geometry);
  aggregate::GatherSet* part_of(const Plan& plan, const Geometry& geometry) const;
  std::uint32_t most_lead() const;
  bool is_too_early(const Plan& plan, const hop::InEdge& edge) const;
  void end(Plan& plan, const hop::InEdge& edge, const hop::StreamSlot& slot);
  void end_gather(Plan& plan, const hop::InEdge& edge, hop::StreamSlot& slot, CloseReason reason,
                  Instant now);
  void close_due(Plan& plan, hop::InEdge& edge, Instant now);

  State& state_;
  Rounds& rounds_;
  Bitmap only_first_;
  std::uint32_t gathering_ = 0;  // at least the number of rounds that may end without some blocks
};

}  // namespace gradplane::job
