// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/aggregate/coverage.h"
#include "dataplane/aggregate/tensor_map.h"
#include "dataplane/aggregate/threshold.h"
#include "dataplane/base/bitmap.h"
#include "dataplane/base/time.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/round_report.h"

namespace gradplane::aggregate {

/// Limits that decide when a round that lacks blocks may be summed. All nodes of a job have the
/// same.
struct CloseLimits {
  /// A round closes only with at least this share of every source's blocks, except for an absent
  /// source.
  float floor = 0.5F;
  /// The first rounds of each bucket are gathered exactly, because a loss costs a model most at the
  /// beginning.
  std::uint32_t strict_rounds = 10;
  /// The time from the largest threshold to the deadline; if nothing, it is learned.
  std::optional<Duration> slack = {};
  /// How long a round waits for a source that has sent nothing for it; 0: for ever.
  Duration absent_after = {};
};

/// A counter that only the poll thread writes and any thread reads.
using SharedCount = std::atomic<std::uint64_t>;
inline void count_up(SharedCount& counter, std::uint64_t by) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

/// The counts of one source of a bucket, since the start.
struct SourceReport {
  std::uint16_t node = 0;
  std::uint64_t missing_blocks = 0;
  std::uint64_t expected_blocks = 0;
  std::int64_t threshold_ns = 0;  // 0: not learned yet
};

/// A source of the gathering: a child of a tree, with the hosts at or below it.
struct GatherSource {
  struct Member {
    std::uint16_t node = 0;
    std::uint16_t host = 0;  // its number in the plan's HostTable
  };
  std::vector<Member> hosts;
  bool relays = false;  // its blocks may lack some of its hosts
};

/// The gathering of one bucket in one tree at a node: which blocks have come from which source, and
/// whether the round may close (LTP's Early Close with PLOT's bound for each tensor;
/// docs/protocol.md, section 3). It gathers one round at a time, and handles neither bytes nor
/// sums.
///
/// A block costs the same time however many tensors and sources there are. The begin and the end of
/// a round cost a step for each block and each source. This matters because a tenant chooses a
/// bucket's tensors, and all jobs share the poll loop.
class Gather {
 public:
  /// Whether the round may close without sources that are silent.
  enum class Absence : std::uint8_t { kCounts, kIgnored };

  /// `map` and `bounds` (by tensor) belong to the bucket. `share`: the part of a round's time that
  /// this node may use, so that the deadlines of a tree nest; it is 1 at the root. `is_exact`:
  /// tensors that are exact here, whatever their bounds.
  Gather(std::vector<GatherSource> sources, const TensorMap& map,
         const std::vector<std::atomic<float>>& bounds, const CloseLimits& limits, double share = 1,
         const std::vector<bool>* is_exact = nullptr);

  /// Begins a round, which has `range` in this tree. In an exchange, only the sources with a host
  /// among `senders` take part, of which there is at least one. In any other round `senders` is
  /// empty, and all take part.
  void open(BlockRange range, HostSet senders = {});
  bool is_open() const { return open_; }

  struct Arrival {
    std::uint32_t block = 0;
    bool last = false;       // the source has sent everything at least once
    bool has_rows = false;   // rows of parity may follow the blocks of the source
    bool bounded = false;    // the source knows the bounds, and carries blocks that do not enter
    Duration rtt;            // the smallest round trip to the source
    Duration patience = {};  // its Patience, if it gathers under bounds itself
    HostSet missing = {};    // hosts of the source that the block lacks
  };
  /// A block of source `source` has entered the sum.
  void on_block(std::size_t source, const Arrival& arrival, Instant now);
  /// A row of parity of the source's blocks has come, so all of them have been sent.
  void on_row(std::size_t source, bool is_last, Instant now);

  /// The node's own ranks have submitted the round. From then on the time for silent sources runs.
  /// Without this, a node of which all children are silent would wait for ever.
  void begin(Instant now) { first_arrival_ = std::min(first_arrival_, now); }
  /// How long this node may take after its first push until its last push has left. The parent must
  /// wait longer, because a later push would be missing for all hosts below.
  struct Patience {
    Duration until_close;  // 0 if the round cannot close early here
    Duration transfer;     // time to send a whole round
  };
  Patience patience(Instant now) const;

  /// The parent has said, in this round or an earlier one, that it and all nodes above it gather
  /// rounds of the bucket under bounds, too. Until then a node that is not the root closes nothing
  /// early, because a node above may know no bounds yet, or be strict.
  void allow() { allowed_ = true; }
  /// Whether the children may close rounds of the bucket early from this round on.
  bool allows_below() const { return open_ && allowed_ && opened_ > limits_.strict_rounds; }

  /// Whether a round that lacks blocks may be summed now.
  std::optional<CloseReason> may_close(Instant now, Absence absence = Absence::kCounts);
  /// Whether the round must still wait for this source, although its silence in this round makes it
  /// absent. Its node spoke last at `heard`, so it may be busy with other trees or rounds. A relay
  /// that may not close early itself is not spared, because it may wait for ever.
  bool is_spared(std::size_t source, Instant heard, Instant now) const;
  bool has_begun(std::size_t source) const { return sources_[source].started; }
  /// Ends the round that is summed: learns from it, and counts the blocks that it lacked.
  void close(CloseReason reason, Instant now);
  /// What the gatherings of one plan have learned, by node. It must not outlive them.
  struct Memory;
  void add_to(Memory& memory) const;
  /// Takes over from the gatherings of an earlier plan: their number of rounds, and what they have
  /// learned of nodes that are sources here, too.
  void learn_from(const Memory& memory);
  /// Adds the counts of another gathering for nodes that are sources in both.
  void add_counts(const Gather& other);
  /// The report of the round that was closed last, without its number and place.
  RoundReport last_round(CloseReason reason, Instant closed_at) const;

  Instant last_arrival() const { return last_arrival_; }
  std::size_t host_count() const { return hosts_.size(); }
  /// The hosts that take part in the round that was opened last.
  std::size_t hosts_taking_part() const { return hosts_taking_part_; }
  /// In the round that was opened last: blocks that have not come, over all hosts.
  std::uint32_t missing_blocks() const { return missing_blocks_; }
  /// How many hosts lack this block in that round.
  std::uint32_t hosts_lacking(std::uint32_t block) const { return lacking_[block]; }
  /// Whether every source has sent every block, so that nothing more will come.
  bool all_arrived() const { return awaited_ == 0; }
  /// Why a round is over in which every block has arrived: some blocks may lack hosts that a relay
  /// has not waited for.
  CloseReason reason_when_arrived() const;
  /// The reason to report, given that the round closes for `reason`. It is kAbsent if a host was
  /// absent at its relay: if nothing of it has come, or less than any other reason allows.
  CloseReason with_absent(CloseReason reason) const;
  /// Whether every source knows the bounds of this round.
  bool all_bounded() const;
  BlockRange range() const { return range_; }

  /// May be called by any thread.
  SourceReport report(std::size_t host) const;

 private:
  struct Source {
    bool started = false;
    bool bounded = false;
    bool knows_bounds = false;  // has said so in some round; it carries blocks that do not enter
    bool takes_part = true;     // if not, the source counts as complete
    Instant first_at;
    Instant latest_at;
    // When the source said that it had sent everything, from first_at on.
    std::optional<Duration> sent_all;
    Instant rows_until;  // until then, missing blocks may be recovered from parity
    Duration rtt;
    Duration patience;  // last value; 0: it gathers nothing, or exactly
    std::uint32_t arrived = 0;
    std::uint32_t worst_lacked = 0;  // the most blocks that lack the same host
    std::uint32_t critical_missing = 0;
    std::uint32_t over_bound = 0;  // tensors of which some host lacks more than it may
    std::size_t first_host = 0;    // index into hosts_
    std::size_t host_count = 0;
    CompletionThreshold threshold;
  };
  struct HostState {
    std::size_t source = 0;
    std::uint16_t number = 0;  // index in the plan's HostTable
    std::uint32_t lacked = 0;  // blocks that lack it
    bool lacks_critical = false;
    bool knew_bounds = false;  // under the older plan
  };
  /// A count of blocks of one wide tensor from one source, in the low kCountBits, and above them
  /// the round to which the count belongs. A count of an earlier round is void and need not be
  /// cleared, so a round costs nothing for a source that sends nothing.
  using TensorArrivals = std::uint64_t;
  static constexpr unsigned kCountBits = 16;
  static_assert(kMaxBlocksPerRound < std::size_t{1} << kCountBits);

  struct Totals {
    std::uint16_t node = 0;
    SharedCount missing = 0;
    SharedCount expected = 0;
    std::atomic<std::int64_t> threshold_ns = 0;
  };

  void let_take_part(HostSet senders);
  std::uint32_t find_critical();
  std::uint32_t find_needed();
  void count_arrival(std::size_t source, const Arrival& arrival);
  std::uint32_t count(TensorArrivals& arrivals) const;
  bool is_worst_again(std::size_t source, std::size_t wide, HostSet missing);
  std::uint32_t missing_of(std::size_t host) const;
  struct Readiness {
    bool early = false;     // the round may miss the source's missing blocks, by its bounds
    bool deadline = false;  // the round may miss them, because the time is over
    bool absent = false;
  };
  Readiness readiness(const Source& source, Instant now, Absence absence) const;
  void name_sources(RoundReport& report) const;
  void name_tensors(RoundReport& report) const;
  float bound_of(std::size_t tensor) const;
  bool complete(const Source& source) const { return source.arrived == range_.size(); }
  bool is_absent(const Source& source, Instant now) const;
  Duration silence_limit(const Source& source) const;
  bool was_absent(const HostState& host) const;
  bool may_miss(const Source& source, Instant now) const;
  bool is_above_floor(const Source& source) const {
    const auto in_sum = static_cast<float>(source.arrived - source.worst_lacked);
    return in_sum >= limits_.floor * static_cast<float>(range_.size());
  }
  std::optional<Duration> largest_threshold() const;
  std::optional<Duration> deadline_age() const;
  bool deadline_passed(const Source& source, Instant now) const;
  static Duration time_below(const Source& source);
  static Duration repair_time(Duration rtt);
  static void await_rows(Source& source, Instant now);
  Duration share_of(Duration whole) const;
  Duration slack() const;
  static Duration completion_of(const Source& source, bool complete, Instant now);

  const TensorMap& map_;
  const std::vector<std::atomic<float>>& bounds_;
  CloseLimits limits_;
  double share_;
  const std::vector<bool>* is_exact_;
  bool allowed_;
  std::vector<Source> sources_;
  std::vector<HostState> hosts_;        // hosts of one source are adjacent
  std::vector<std::uint16_t> host_at_;  // by the plan's number of a host: index into hosts_
  std::unique_ptr<Totals[]> totals_;    // by host
  // Critical blocks of the open round; bounds may change between rounds.
  Bitmap critical_;
  std::vector<std::uint16_t> lacking_;  // by block: the number of hosts that lack it
  std::vector<std::uint32_t> needed_;   // by wide tensor: the blocks of each source that must come
  /// By source and wide tensor: the blocks in the sum of the host that has fewest.
  std::vector<TensorArrivals> arrived_;
  // By source and wide tensor: the blocks that the worst host lacks.
  std::vector<TensorArrivals> worst_;
  std::vector<TensorArrivals> lacked_;  // by host and wide tensor: blocks that lack the host
  BlockRange range_;
  std::uint64_t opened_ = 0;  // rounds that were opened, with this one
  bool open_ = false;
  Instant first_arrival_ = Instant::never();
  Instant last_arrival_;
  std::size_t hosts_taking_part_ = 0;
  std::uint32_t missing_blocks_ = 0;
  std::uint32_t awaited_ = 0;                  // blocks that have not come, over all sources
  std::size_t blocker_ = 0;                    // the source that last held the round open
  std::optional<Duration> largest_threshold_;  // when the round was opened
  std::size_t begun_ = 0;                      // sources that have begun the round
  Instant all_begun_at_;
  Duration longest_rtt_;    // maximum over all sources
  Duration longest_below_;  // time_below() of all sources
  DeadlineSlack learned_slack_;
};

struct Gather::Memory {
  struct Node {
    const Source* source = nullptr;  // the source that this node was in; nullptr if in none
    std::int64_t threshold_ns = 0;
    bool knows_bounds = false;
  };
  std::array<Node, kMaxNodes> nodes{};
  std::uint64_t opened = 0;
  DeadlineSlack slack;
};
static_assert(kMaxNodes <= 0xffff, "Gather::lacking_ counts hosts in 16 bits");

}  // namespace gradplane::aggregate
