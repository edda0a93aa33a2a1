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

/// The jobs of one engine at a node, and the engine's use of the node's own link in both
/// directions. It paces what it sends, grants what others send to the node, and measures the links
/// on which they send. Like Job it does no I/O and reads no clock. It does not own the jobs.
class Node {
 public:
  struct Link {
    std::uint64_t bits_per_second = 0;  // 0: not paced
    // Buffer of the switch port that leads to this node; 0: not known.
    std::size_t buffer_bytes = 0;
    std::size_t block_bytes = kDefaultBlockBytes;  // payload of a full block on this link
    /// What this engine may use of the link for sending; none if it is the only engine and has the
    /// whole link.
    std::optional<hop::LinkShare> share = std::nullopt;
    /// One engine of a node grants, for the whole link. The others refuse jobs with grants.
    bool grants = true;
    std::size_t lends_from_bytes = SIZE_MAX;  // see port::PortQueue
  };
  Node(std::uint16_t self, Link link, const GrantSettings& grants = {});

  [[nodiscard]] JobRefusal add(Job* job);
  void remove(Job* job);
  /// Calls Job::prepare() of a job that was added, and makes its new peers grant sources.
  Prepared prepare(Job* job, std::unique_ptr<Plan>& plan);
  std::span<Job* const> jobs() const { return {jobs_.data(), job_count_}; }

  /// Handles a datagram that came from the address of `node`. Returns the body of a control packet,
  /// unread.
  std::optional<std::span<const std::byte>> handle(std::uint16_t node,
                                                   std::span<const std::byte> datagram,
                                                   bool congestion_experienced,
                                                   const awareness::Arrival& arrival);

  /// The next packet to send. Acks go first, then grants, then blocks. Blocks that this node relays
  /// and blocks of its jobs take turns.
  struct Outgoing {
    std::uint16_t node = 0;
    std::uint32_t length_bytes = 0;
    bool data = false;
    bool is_tagged = false;  // see wire::seal()
    // If set, the packet goes to this group and not to `node`.
    std::optional<GroupName> group = std::nullopt;
    std::span<const std::byte> lent = {};  // see job::Outgoing
  };
  std::optional<Outgoing> poll_transmit(std::span<std::byte> out, Instant now);

  /// Takes a lease from the owner of the link's budget. It holds from the next tick() on.
  void take_lease(const hop::LinkLease& lease) { share_.take(lease); }

  bool sum_local(std::size_t max_blocks);
  void tick(Instant now);
  /// When to call tick() or poll_transmit() again if no packet comes before. A time in the past
  /// means at once.
  Instant next_deadline(Instant now) const;

  /// Whether blocks wait for nothing but the link.
  bool is_held_back(Instant now) const;
  /// The rate of the current lease; 0 if sending is not paced.
  std::uint64_t paced_bits_per_second() const { return paced_bits_per_second_; }

  const grants::GrantScheduler& grants() const { return grants_; }
  /// Estimates of the links to this node, from the packets of all jobs.
  const awareness::IncomingLinks& links() const { return links_; }
  /// The device drops packets because they come faster than the poll loop takes them.
  void on_ring_pressure(Instant now) { grants_.on_ring_pressure(now); }

  /// Counters of packets that belong to no job.
  const hop::Counters& counters() const { return counters_; }
  hop::Counters& counters() { return counters_; }

 private:
  Job* find(std::uint32_t id) const;
  bool grant_to_peers_of(Job* job);
  void list_sources_of(Job* job);
  std::optional<Outgoing> next_owed(std::span<std::byte> out, Instant now);
  std::optional<Outgoing> next_relayed(std::span<std::byte> out, Instant now);
  std::optional<Outgoing> next_block(std::span<std::byte> out, Instant now);
  std::optional<Outgoing> next_grant(std::span<std::byte> out, Instant now);

  std::uint16_t self_;
  hop::LinkShare share_;
  std::uint64_t paced_bits_per_second_;  // the rate that link_ has now
  hop::Pacer link_;
  bool may_grant_;
  std::size_t lends_from_bytes_;
  grants::GrantScheduler grants_;
  struct GrantSource {
    Job* job = nullptr;
    hop::PeerIndex peer;
  };
  std::vector<GrantSource> grant_sources_;  // by source index
  std::array<bool, kMaxJobs> grant_index_taken_{};
  std::size_t granted_jobs_ = 0;
  awareness::IncomingLinks links_{kMaxNodes};
  std::array<Job*, kMaxJobs> jobs_{};
  std::array<std::uint32_t, kMaxJobs> ids_{};  // of jobs_, to look up each packet
  std::size_t job_count_ = 0;
  std::size_t next_job_ = 0;
  bool relays_next_ = true;
  Instant polled_at_;
  /// Whether acks or grants may be due. False once all that were due at polled_at_ have been sent;
  /// a packet, a local sum or a tick may bring more.
  bool may_owe_ = true;
  hop::Counters counters_;
};

}  // namespace gradplane::job
