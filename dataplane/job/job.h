// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "dataplane/base/fixed_queue.h"
#include "dataplane/base/time.h"
#include "dataplane/grants/grant_scheduler.h"
#include "dataplane/hop/credit_line.h"
#include "dataplane/hop/flow.h"
#include "dataplane/job/counters.h"
#include "dataplane/job/edges.h"
#include "dataplane/job/iteration.h"
#include "dataplane/job/job_config.h"
#include "dataplane/job/progress_watch.h"
#include "dataplane/job/round.h"
#include "dataplane/model/round_report.h"

namespace gradplane::job {

/// What keeps a flow from sending a block now.
enum class FlowLimit : std::uint8_t {
  kApplication,  // nothing is queued for the peer
  kPeer,         // it does not answer
  kWindow,
  kGrant,     // the peer's: neither credit nor room for what needs none
  kPacing,    // the controller's
  kPeerLink,  // the share of the peer's link
  kOwnLink,   // nothing of the flow's own: the node's link, or another flow's turn
};
std::string_view flow_limit_name(FlowLimit limit);

/// One job at one node: gathers blocks, sums them, sends sums up and results down, as its plan
/// says. A leaf, a relay and a root differ only in the edges that the plan gives them.
///
/// A value, not a thread: packets, submissions and the time come in; packets, events and the next
/// deadline go out. Everything is allocated in the constructor. After each call with `now`, take
/// events with poll_event() and packets with poll_ack()/poll_data() until they give nothing.
class Job {
 public:
  explicit Job(JobConfig config);

  struct Outgoing {
    std::uint16_t node = 0;
    std::uint32_t length_bytes = 0;
  };

  /// A packet of this job's id. `datagram` is the whole of it, for the tag.
  void handle(const wire::Packet& packet, std::span<const std::byte> datagram,
              bool congestion_experienced, Instant now);

  /// The rank's contribution to `round` lies in its arena slot. See SubmitResult.
  /// `bucket` 0: of none.
  SubmitResult submit(std::size_t local_rank, std::uint32_t round, std::uint32_t elements,
                      ElementType type, std::uint32_t bucket = 0);

  /// From the next round of this bucket on it may lack what its bounds allow. The bucket must
  /// outlive the job, fit it (see make_bucket()), and be the first with its id: false if not.
  [[nodiscard]] bool add_bucket(aggregate::Bucket* bucket);

  /// Sums some of what local ranks have submitted. True while there is more to do.
  bool sum_local(std::size_t max_blocks);

  /// The next ack that is due, into `out` (wire::kMaxAckBytes).
  std::optional<Outgoing> poll_ack(std::span<std::byte> out, Instant now);
  /// The next block that may go, into `out` (header and block bytes).
  std::optional<Outgoing> poll_data(std::span<std::byte> out, Instant now);

  /// Who asks all peers of this job to send, in turn with those of other jobs: the node's. Once,
  /// before the first packet; `index` is the job's at the scheduler. It outlives the job or is
  /// left. False when it has no room for all peers.
  [[nodiscard]] bool join(grants::GrantScheduler& grants, std::uint16_t index);
  void leave();
  std::uint16_t grant_index() const { return grant_index_; }
  /// What this job's peers are to the scheduler, by peer; empty before join().
  std::span<const grants::GrantScheduler::Source> sources() const { return sources_; }
  /// Tells a peer how many blocks it may have sent. `out` holds a grant.
  Outgoing write_grant(std::uint16_t peer, std::span<std::byte> out, Instant now);

  /// Looks for peers that have fallen silent, for rounds that may close, and for rounds in which
  /// nothing moves. Call it when next_timer() has come.
  void tick(Instant now);
  /// When to call tick() or poll_ack() again, if no packet comes before; in the past: at once.
  Instant next_timer() const;
  /// When poll_data() has a block to give; Instant::never() when nothing waits or a window is full.
  Instant next_data() const;

  bool poll_event(Event& out);
  /// The next round under bounds that was closed at a root here. What is not taken while a few
  /// rounds close is lost.
  bool poll_report(RoundReport& out);

  const Counters& counters() const { return counters_; }
  const JobConfig& config() const { return config_; }
  std::span<const hop::Flow> flows() const { return flows_; }
  /// Cold: for people.
  FlowLimit limit_of(std::uint16_t peer, Instant now) const;
  std::span<const hop::CreditLine> credits() const { return credits_; }

  /// What the oldest open round waits for. Cold: for people.
  static constexpr std::size_t kMaxSilentNamed = 64;
  struct Waiting {
    bool any = false;
    std::uint32_t round = 0;
    std::uint32_t open_rounds = 0;
    std::uint32_t local_missing = 0;  // bit per local rank that has not submitted
    std::uint32_t silent_count = 0;   // children that have sent nothing of it
    std::array<std::uint16_t, kMaxSilentNamed> silent_nodes{};
  };
  Waiting waiting() const;

 private:
  struct AckRequest {
    std::uint16_t edge = 0;  // index into edges_.in
    std::uint32_t round = 0;
    Instant deadline;
  };
  struct Marks {              // packets with congestion experienced, modulo 2^32
    std::uint32_t came = 0;   // from the peer
    std::uint32_t heard = 0;  // of ours, as the peer says
  };
  struct LocalWork {
    std::uint32_t round = 0;
    std::uint16_t local_rank = 0;
    std::uint8_t tree = 0;
    std::uint32_t block = 0;
  };

  // job_rounds.cc: opening, summing and ending rounds
  bool sums_in(std::size_t tree) const { return sums_in_tree_[tree]; }
  Round& slot_of(std::uint32_t round) { return rounds_[round % kRoundSlots]; }
  BlockRange range_of(std::size_t tree, std::uint32_t round, const Geometry& geometry) const;
  bool geometry_fits(const Geometry& geometry) const;
  void open_round(Round& round, const Geometry& geometry);
  void announce_round(const Round& round);
  void contribute(Round& round, std::size_t local_rank);
  void block_gathered(Round& round, std::size_t tree, std::uint32_t block);
  void result_known(Round& round, std::size_t tree, std::uint32_t block,
                    std::span<const std::byte> bytes, std::uint16_t contributors);
  void tell_if_done(Round& round);
  void finish_if_done(Round& round);
  void report_mismatch(std::uint16_t node, const Round& round, const Geometry& theirs);

  // job_gather.cc: rounds that may lack blocks
  aggregate::Bucket* bounds_of(const Geometry& geometry) const;
  bool is_lossy(const Round& round, std::size_t tree) const {
    return (round.lossy_trees >> tree & 1) != 0;
  }
  void open_gathers(Round& round);
  static bool is_free(const aggregate::Bucket* bucket, std::uint32_t round);
  void restore_residual(Round& round);
  void note_arrival(Round& round, const InEdge& edge, const wire::Header& header, Instant now);
  void note_energy(Round& round, std::uint32_t block, std::span<const std::byte> bytes);
  void note_sum_energy(Round& round, std::uint32_t block, std::span<const std::byte> bytes);
  bool is_measured(const Round& round, std::uint32_t block) const;
  void close_if_full(Round& round, std::size_t tree);
  void close_due_rounds(Instant now);
  bool may_leave_behind(const Round& round) const;
  bool has_ended(std::uint32_t round) const;
  void close_partial(Round& round, std::size_t tree, CloseReason reason, Instant now);
  void end_gather(Round& round, std::size_t tree, CloseReason reason, Instant now);
  void report_close(const Round& round, std::size_t tree, RoundReport report);
  void repeat_closing(const OutEdge& results, std::size_t slot, Instant now);
  void keep_contribution(Round& round, std::size_t tree, std::uint32_t block);
  void on_settled(Round& round, OutEdge& push, bool was_settled, Instant now);
  void settle_residual(Round& round, const hop::BlockSender& sender);

  // job_receive.cc
  void handle_data(const wire::Packet& packet, std::uint16_t peer, Instant now);
  Round* round_for_data(const wire::Packet& packet, std::size_t edge, Instant now);
  bool may_be_passed_by(const Round& round) const;
  bool all_submitted(const Round& round) const;
  bool answers_a_push(const Round& round, const wire::Packet& packet) const;
  bool names_its_ranks(const wire::Header& header, const InEdge& edge) const;
  void handle_push(Round& round, InEdge& edge, const wire::Packet& packet, Instant now);
  void handle_result(Round& round, const InEdge& edge, const wire::Packet& packet, Instant now);
  void handle_ack(const wire::Packet& packet, std::uint16_t peer, Instant now);
  void take_grant(const wire::GrantBody& grant, std::uint16_t peer);
  std::uint32_t ack_every() const;
  wire::GrantBody grant_of(std::uint16_t peer) const;
  void note_demand(const wire::Packet& packet, std::uint16_t peer, bool ce, Instant now);
  void note_progress(OutEdge& edge, std::size_t slot, std::uint32_t acked, std::uint32_t marked,
                     Instant now);
  std::uint32_t newly_marked(std::uint16_t peer, std::uint32_t total);
  void note_settled(const OutEdge& edge, std::size_t slot, std::uint32_t settled_before);
  void note_come(std::size_t slot, std::uint32_t blocks);
  void request_ack(std::size_t edge, std::uint32_t round, bool at_once, Instant now);

  // job_watch.cc
  struct StalledRound {
    std::uint32_t round = 0;
    Stall::Reason reason = Stall::Reason::kPushesUnacked;
    std::uint16_t peer = 0;
    std::uint32_t blocks = 0;
  };
  static bool is_older(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) < 0;
  }
  bool is_watching() const { return watch_.is_on() && open_rounds_ > 0; }
  void watch_rounds(Instant now);
  const InEdge& results_in_of(const OutEdge& push) const;
  const Round* oldest_waiting(const OutEdge& push) const;
  void ask(OutEdge& push, Instant now);
  void check_answer(const Round& round, OutEdge& push, const wire::Header& header,
                    std::span<const std::uint64_t> words, std::uint32_t echo_us, Instant now);
  std::optional<StalledRound> find_stall() const;
  void report_stall(Stall::Reason reason, std::uint16_t peer, std::uint32_t round,
                    std::uint32_t blocks);

  // job_transmit.cc
  std::optional<Outgoing> write_ack(const AckRequest& request, std::span<std::byte> out,
                                    Instant now);
  bool waits_for_closing(const Round& round, const InEdge& edge) const;
  struct Work {
    std::uint16_t edge = kNoPeer;
    std::size_t slot = 0;
  };
  Work next_work(std::uint16_t peer) const;
  bool goes_before(const Work& work, const Work& other) const;
  Instant next_send_to(std::uint16_t peer) const;
  std::uint16_t waiting_for(std::uint16_t peer) const;
  Outgoing write_block(OutEdge& edge, std::size_t slot, std::span<std::byte> out, Instant now);
  wire::Header header_for(wire::PacketType type, std::uint8_t tree, std::uint32_t round,
                          Instant now) const;
  std::span<const std::byte> bytes_to_send(const OutEdge& edge, const Round& round,
                                           std::uint32_t block, std::uint16_t& contributors) const;
  Outgoing finish_packet(std::uint16_t peer, std::span<std::byte> packet) const;
  void refresh(OutEdge& edge, std::size_t slot);
  void release_results(const InEdge& push, std::size_t slot);
  void probe_edge(OutEdge& edge, Instant now);

  JobConfig config_;
  std::uint64_t total_weight_;
  Edges edges_;
  std::vector<bool> sums_in_tree_;
  std::vector<std::uint16_t> peer_of_node_;
  std::vector<Round> rounds_;
  std::vector<aggregate::Bucket*> buckets_;  // by id
  std::uint16_t lossy_slots_ = 0;            // slots with a round that may close without all blocks
  std::vector<hop::Flow> flows_;
  std::vector<Marks> marks_;                  // by peer
  std::optional<Iteration> iteration_;        // where a controller or the order asks for it
  std::optional<Iteration> incoming_;         // of all peers as one; where this node grants
  std::vector<hop::CreditLine> credits_;      // by peer
  grants::GrantScheduler* grants_ = nullptr;  // of what peers send here
  std::uint16_t grant_index_ = 0;             // of this job there
  std::vector<grants::GrantScheduler::Source> sources_;  // by peer
  std::uint32_t ack_every_ = hop::kAckEveryPackets;
  FixedQueue<AckRequest> urgent_acks_;
  FixedQueue<AckRequest> delayed_acks_;
  FixedQueue<LocalWork> local_work_;
  FixedQueue<Event> events_;
  FixedQueue<RoundReport> reports_;
  std::uint64_t rounds_reported_ = 0;
  std::unique_ptr<hop::BlockReceiver::Ack> ack_;
  std::uint16_t next_peer_ = 0;
  bool mismatch_reported_ = false;
  ProgressWatch watch_;
  std::uint32_t open_rounds_ = 0;
  bool stall_is_told_ = false;  // its event has not been taken
  Instant next_scan_;
  Counters counters_;
};

}  // namespace gradplane::job
