// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/awareness/incoming_links.h"
#include "dataplane/grants/grant_scheduler.h"
#include "dataplane/hop/counters.h"
#include "dataplane/hop/link_budget.h"
#include "dataplane/job/job.h"
#include "dataplane/model/group_name.h"
#include "dataplane/model/refusal.h"

namespace gradplane::job {

/// The jobs of one engine at a node, and what it has of the node's own link, in both directions: it
/// paces what it sends, grants what others send to the node, and measures the links that they send
/// over. Pure, like Job; does not own the jobs.
class Node {
 public:
  struct Link {
    std::uint64_t bits_per_second = 0;  // 0: not paced
    std::size_t buffer_bytes = 0;       // of the port that leads to this node; 0: not known
    std::size_t block_bytes = kDefaultBlockBytes;  // payload of the full blocks that come over it
    /// What this engine may use of it for sending; none: all of it, as the only engine.
    std::optional<hop::LinkShare> share = std::nullopt;
    /// One engine of a node grants, for the whole link. The others take no job with grants.
    bool grants = true;
    std::size_t lends_from_bytes = SIZE_MAX;  // see port::PortQueue
  };
  Node(std::uint16_t self, Link link, const GrantSettings& grants = {});

  [[nodiscard]] JobRefusal add(Job* job);
  void remove(Job* job);
  /// Job::prepare() of a job that was added.
  Prepared prepare(Job* job, std::unique_ptr<Plan>& plan);
  std::span<Job* const> jobs() const { return {jobs_.data(), job_count_}; }

  /// A datagram from `node` (by its address). Returns what a control packet carries, unread.
  std::optional<std::span<const std::byte>> handle(std::uint16_t node,
                                                   std::span<const std::byte> datagram,
                                                   bool congestion_experienced,
                                                   const awareness::Arrival& arrival);

  /// The next packet to send: acks first, then grants, then blocks: one that is relayed and one of
  /// the jobs in turn.
  struct Outgoing {
    std::uint16_t node = 0;
    std::uint32_t length_bytes = 0;
    bool data = false;
    bool is_tagged = false;                         // see wire::seal()
    std::optional<GroupName> group = std::nullopt;  // if set, it goes there, and not to `node`
    std::span<const std::byte> lent = {};           // see job::Outgoing
  };
  std::optional<Outgoing> poll_transmit(std::span<std::byte> out, Instant now);

  /// From the owner of the link's budget: holds from the next tick() on.
  void take_lease(const hop::LinkLease& lease) { share_.take(lease); }

  bool sum_local(std::size_t max_blocks);
  void tick(Instant now);
  /// When to call tick() or poll_transmit() again, if no packet comes before; in the past: at once.
  Instant next_deadline(Instant now) const;

  /// Blocks wait for nothing but the link.
  bool is_held_back(Instant now) const;
  /// What it may send now, by its lease; 0: it is not paced.
  std::uint64_t paced_bits_per_second() const { return paced_bits_per_second_; }

  const grants::GrantScheduler& grants() const { return grants_; }
  /// What packets of all jobs say of the links that they came over.
  const awareness::IncomingLinks& links() const { return links_; }
  /// The device drops what comes, because it comes faster than it is taken.
  void on_ring_pressure(Instant now) { grants_.on_ring_pressure(now); }

  /// Drops that belong to no job.
  const hop::Counters& counters() const { return counters_; }
  hop::Counters& counters() { return counters_; }

 private:
  bool grant_to_peers_of(Job* job);
  void list_sources_of(Job* job);
  std::optional<Outgoing> next_owed(std::span<std::byte> out, Instant now);
  std::optional<Outgoing> next_relayed(std::span<std::byte> out, Instant now);
  std::optional<Outgoing> next_block(std::span<std::byte> out, Instant now);
  std::optional<Outgoing> next_grant(std::span<std::byte> out, Instant now);

  std::uint16_t self_;
  hop::LinkShare share_;
  std::uint64_t paced_bits_per_second_;  // what link_ was told last
  hop::Pacer link_;
  bool may_grant_;
  std::size_t lends_from_bytes_;
  grants::GrantScheduler grants_;
  struct GrantSource {
    Job* job = nullptr;
    hop::PeerIndex peer;
  };
  std::vector<GrantSource> grant_sources_;  // by source
  std::array<bool, kMaxJobs> grant_index_taken_{};
  awareness::IncomingLinks links_{kMaxNodes};
  std::array<Job*, kMaxJobs> jobs_{};
  std::size_t job_count_ = 0;
  std::size_t next_job_ = 0;
  bool relays_next_ = true;
  Instant polled_at_;
  /// Acks or grants. False once all that is due at polled_at_ has gone; a packet, local sums or a
  /// tick may bring more.
  bool may_owe_ = true;
  hop::Counters counters_;
};

}  // namespace gradplane::job
