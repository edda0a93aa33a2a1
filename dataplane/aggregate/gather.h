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

/// What decides when a round that lacks blocks may be summed. The same on all nodes of a job.
struct CloseLimits {
  /// A round closes with this share of every source's blocks at least, save for an absent one.
  float floor = 0.5F;
  /// Rounds of each bucket that are gathered exactly at first, when a loss costs a model most.
  std::uint32_t strict_rounds = 10;
  /// Between the largest threshold and the deadline; nothing: learned.
  std::optional<Duration> slack = {};
  /// How long a round waits for a source that has sent nothing of it; 0: for ever.
  Duration absent_after = {};
};

/// Counters that the poll thread alone writes and any thread reads.
using SharedCount = std::atomic<std::uint64_t>;
inline void count_up(SharedCount& counter, std::uint64_t by) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

/// What is told of one source of a bucket, since the start.
struct SourceReport {
  std::uint16_t node = 0;
  std::uint64_t missing_blocks = 0;
  std::uint64_t expected_blocks = 0;
  std::int64_t threshold_ns = 0;  // 0: not learned yet
};

/// A child of a tree: the hosts at or below it. A source of the gathering.
struct GatherSource {
  struct Member {
    std::uint16_t node = 0;
    std::uint16_t host = 0;  // its number in the plan's HostTable
  };
  std::vector<Member> hosts;
  bool relays = false;  // its blocks may come without some of its hosts
};

/// The gathering of one bucket in one tree at a node: what has come from which source, and
/// whether the round may close (LTP's Early Close with PLOT's bound for each tensor;
/// docs/protocol.md, section 3). One round at a time. Bytes and sums are not its business.
///
/// A block costs the same however many tensors and sources there are, and the beginning and the end
/// of a round cost a step for each block and each source: a bucket's table is chosen by a tenant,
/// and what it costs is taken from the poll loop of all.
class Gather {
 public:
  /// Whether sources that are silent may be gone on without.
  enum class Absence : std::uint8_t { kCounts, kIgnored };

  /// `map` and `bounds` (by tensor) belong to the bucket. `share`: what part of the time that a
  /// round may take is this node's, so that the deadlines of a tree nest: 1 at the root.
  Gather(std::vector<GatherSource> sources, const TensorMap& map,
         const std::vector<std::atomic<float>>& bounds, const CloseLimits& limits, double share = 1,
         const std::vector<bool>* is_exact = nullptr);

  /// A round begins, which has `range` in this tree. Of an exchange, only the sources with a host
  /// among `senders` take part, which are some; of any other round (empty), all.
  void open(BlockRange range, HostSet senders = {});
  bool is_open() const { return open_; }

  struct Arrival {
    std::uint32_t block = 0;
    bool last = false;       // the source has sent everything at least once
    bool has_rows = false;   // rows of parity may follow what the source has sent
    bool bounded = false;    // the source knows the bounds, and keeps what does not enter
    Duration rtt;            // the smallest to it
    Duration patience = {};  // its Patience, where it gathers under bounds itself
    HostSet missing = {};    // hosts of the source that the block lacks; empty: none
  };
  /// A block of source `source` has entered the sum.
  void on_block(std::size_t source, const Arrival& arrival, Instant now);
  /// A row of parity of the source's blocks has come, so all of them have been sent.
  void on_row(std::size_t source, bool is_last, Instant now);

  /// The node's own ranks have submitted the round: from then on it waits for sources that are
  /// silent. Without this, a node of which all children are silent would wait for ever.
  void begin(Instant now) { first_arrival_ = std::min(first_arrival_, now); }
  /// How long this node may take, after its first push, until the last one has left. The parent
  /// must wait longer: what has not been pushed by then would be missing of all hosts below.
  struct Patience {
    Duration until_close;  // 0: the round cannot close early here
    Duration transfer;     // of a whole round
  };
  Patience patience(Instant now) const;

  /// The parent gathers rounds of the bucket under bounds, too, and so do all nodes above it: it
  /// said so in this round or in an earlier one. Until then a node that is not the root closes
  /// nothing early, because a node above may know no bounds yet or be strict.
  void allow() { allowed_ = true; }
  /// Whether the children may close rounds of the bucket from this one on.
  bool allows_below() const { return open_ && allowed_ && opened_ > limits_.strict_rounds; }

  /// Whether a round that lacks blocks may be summed now.
  std::optional<CloseReason> may_close(Instant now, Absence absence = Absence::kCounts);
  /// Whether it is too early to go on without this source, which is absent by its silence in this
  /// round. Its node has spoken last at `heard`, so it may be busy with other trees or rounds. A
  /// relay that may not close early itself is not spared, because it may wait for ever.
  bool is_spared(std::size_t source, Instant heard, Instant now) const;
  bool has_begun(std::size_t source) const { return sources_[source].started; }
  /// The round is summed: learns from it and counts what it lacked.
  void close(CloseReason reason, Instant now);
  /// What the gatherings of one plan have learned, by node. It may not outlive them.
  struct Memory;
  void add_to(Memory& memory) const;
  /// Begins where those of an earlier plan are: with their number of rounds, and with what they
  /// have learned of the nodes that are sources here too.
  void learn_from(const Memory& memory);
  /// Counts what that one has counted of these nodes.
  void add_counts(const Gather& other);
  /// What to tell of the round that was closed last: all but its number and its place.
  RoundReport last_round(CloseReason reason, Instant closed_at) const;

  Instant last_arrival() const { return last_arrival_; }
  std::size_t host_count() const { return hosts_.size(); }
  /// In the round that was opened last.
  std::size_t hosts_taking_part() const { return hosts_taking_part_; }
  /// Of the round that was opened last: blocks that have not come, over all hosts.
  std::uint32_t missing_blocks() const { return missing_blocks_; }
  /// How many hosts lack this block of it.
  std::uint32_t hosts_lacking(std::uint32_t block) const { return lacking_[block]; }
  /// Every source has sent every block: nothing more will come.
  bool all_arrived() const { return awaited_ == 0; }
  /// Why a round is over in which all has arrived: some of it may lack hosts that a relay has gone
  /// on without.
  CloseReason reason_when_arrived() const;
  /// The reason to tell: a host was absent at its relay when nothing of it has come, or less than
  /// any other close allows, whatever made this node stop waiting.
  CloseReason with_absent(CloseReason reason) const;
  /// Every source knows the bounds of this round.
  bool all_bounded() const;
  BlockRange range() const { return range_; }

  /// Any thread.
  SourceReport report(std::size_t host) const;

 private:
  struct Source {
    bool started = false;
    bool bounded = false;
    bool knows_bounds = false;  // has said so in some round: it keeps what does not enter
    bool takes_part = true;     // if not, it counts as complete
    Instant first_at;
    Instant latest_at;
    std::optional<Duration> sent_all;  // age at which the source said so
    Instant rows_until;                // what it lacks may come in rows of parity until then
    Duration rtt;
    Duration patience;  // told last; 0: it gathers nothing, or exactly
    std::uint32_t arrived = 0;
    std::uint32_t worst_lacked = 0;  // blocks that have come without the host that lacks most
    std::uint32_t critical_missing = 0;
    std::uint32_t over_bound = 0;  // tensors of which some host misses more than it may
    std::size_t first_host = 0;    // in hosts_
    std::size_t host_count = 0;
    CompletionThreshold threshold;
  };
  struct HostState {
    std::size_t source = 0;
    std::uint16_t number = 0;  // in the plan's HostTable
    std::uint32_t lacked = 0;  // blocks that have come without it
    bool lacks_critical = false;
    bool knew_bounds = false;  // under the plan before
  };
  /// Blocks of one wide tensor that have come from one source, in the low kCountBits, and above
  /// them the round of which they are. What an earlier round left need not be cleared, so that a
  /// round costs nothing for who sends nothing.
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
    bool early = false;     // may miss what it lacks, by its bounds
    bool deadline = false;  // may miss it because its time is over
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
  std::vector<HostState> hosts_;        // those of a source are next to each other
  std::vector<std::uint16_t> host_at_;  // by the plan's number of a host: index into hosts_
  std::unique_ptr<Totals[]> totals_;    // by host
  Bitmap critical_;                     // by block, of the open round: its bounds may change
  std::vector<std::uint16_t> lacking_;  // by block: how many hosts lack it
  std::vector<std::uint32_t> needed_;   // by wide tensor: blocks of each source that must come
  /// By source and wide tensor: the blocks that the worst of its hosts has in the sum.
  std::vector<TensorArrivals> arrived_;
  std::vector<TensorArrivals> worst_;   // by source and wide tensor: blocks without some host
  std::vector<TensorArrivals> lacked_;  // by host and wide tensor: blocks that came without it
  BlockRange range_;
  std::uint64_t opened_ = 0;  // rounds, this one too
  bool open_ = false;
  Instant first_arrival_ = Instant::never();
  Instant last_arrival_;
  std::size_t hosts_taking_part_ = 0;
  std::uint32_t missing_blocks_ = 0;
  std::uint32_t awaited_ = 0;  // blocks, over all sources
  std::size_t blocker_ = 0;    // the source that held the round open when asked last
  std::optional<Duration> largest_threshold_;  // when the round was opened
  std::size_t begun_ = 0;                      // sources that have begun the round
  Instant all_begun_at_;
  Duration longest_rtt_;    // of all sources
  Duration longest_below_;  // time_below() of all sources
  DeadlineSlack learned_slack_;
};

struct Gather::Memory {
  struct Node {
    const Source* source = nullptr;  // that it was, or was below; nullptr: it was none
    std::int64_t threshold_ns = 0;
    bool knows_bounds = false;
  };
  std::array<Node, kMaxNodes> nodes{};
  std::uint64_t opened = 0;
  DeadlineSlack slack;
};
static_assert(kMaxNodes <= 0xffff, "Gather::lacking_ counts hosts in 16 bits");

}  // namespace gradplane::aggregate
