// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/model/operation.h"
#include "trainer-shim/group/agreement.h"

namespace gradplane::shim {

/// Why a collective was passed through to the framework's own function.
enum class PassReason : std::uint8_t {
  kReduceOp,     // not SUM, MAX, MIN or PRODUCT
  kTensorCount,  // not exactly one tensor
  kElementType,  // a type that Gloo refuses, or one that is not summed
  kLayout,       // sparse, or not plain memory
  kDevice,       // not in host memory
  kEmpty,        // no elements
  kOverlap,      // a view that reaches beyond its storage when read as a run of elements
  kArguments,    // arguments that Gloo refuses: an invalid root, lists or shapes that do not fit
  kPeers,        // some rank of the group has no shim
  kForked,       // a child of the process that attached
  kOneRank,      // the group has one rank, and nothing to send
  kOperation,    // one that is never carried (OtherOperation)
  kCount,
};

std::string_view pass_reason_name(PassReason reason);

/// The operations that are never carried, but counted. Without these counts a program whose bytes
/// all go over the framework would look as if all of it were carried.
enum class OtherOperation : std::uint8_t {
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kSend,
  kReceive,
  kCount,
};

std::string_view other_operation_name(OtherOperation operation);

/// A counter for each operation.
using OperationCounts = std::array<std::atomic<std::uint64_t>, kOperationNames.size()>;

/// The counters of this process. Any thread.
struct Counters {
  OperationCounts carried_ops{};
  std::atomic<std::uint64_t> carried_buckets{0};  // of carried_ops: DDP gradient buckets
  std::atomic<std::uint64_t> carried_rounds{0};
  std::atomic<std::uint64_t> carried_bytes{0};
  std::atomic<std::uint64_t> partial_rounds{0};  // of carried_rounds: with partial blocks
  std::atomic<std::uint64_t> partial_blocks{0};  // blocks that lack some rank's contribution
  std::atomic<std::uint64_t> early_rounds{0};    // of carried_rounds, under bounded staleness: some
                                                 // updates of their step had not come
  std::atomic<std::uint64_t> early_blocks{0};    // blocks that lack such an update
  std::atomic<std::uint64_t> fallbacks{0};       // how often a group has changed to Gloo
  OperationCounts fallen_back_ops{};             // operations that Gloo did because of that
  std::atomic<std::uint64_t> recovered_rounds{0};
  std::atomic<std::uint64_t> averages{0};        // exact means of the parameters of a model
  std::atomic<std::uint64_t> last_drift_ppm{0};  // the last measured drift
  std::atomic<std::uint64_t> failed_ops{0};      // operations that have failed
  std::atomic<std::uint64_t> pending_ns{0};      // sum over operations: from the call to the result
  std::atomic<std::uint64_t> waited_ns{0};       // sum over Work.wait() calls
  OperationCounts passed_ops{};
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(OtherOperation::kCount)>
      other_ops{};
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(PassReason::kCount)>
      passed_through{};
};

Counters& counters();

/// For a child of fork(), which has counted and announced nothing yet.
void forget_counters_after_fork();

void count(OperationCounts& counts, Operation operation);

/// Counts one operation that went to the original function.
void count_pass(Operation operation, PassReason reason);
void count_pass(OtherOperation operation, PassReason reason);

/// Says on stderr that the framework (Gloo, MPI) does the collectives itself, and why. Only once
/// until announce_return().
void announce_fallback(const std::string& cause, const char* framework);

/// Says on stderr that a group that had fallen back is carried again, if that was announced.
void announce_return();

/// Says on stderr why the session over gradplane was lost, where the ranks cannot go on without it.
void announce_loss(const std::string& cause, int rank, const char* framework);

/// Says on stderr, once per process, that a reduce_scatter sums whatever reduction the program asks
/// for.
void announce_gloos_sums();

/// Says on stderr that ranks exchange gradients, so that replicas differ; once per process.
void announce_exchange(const ExchangeTerms& terms);

/// One line on stderr when GRADPLANE_VERBOSE is set.
void say_verbose(const std::string& line);

/// The counters as one JSON object.
std::string counters_json();

/// Writes the report that GRADPLANE_REPORT asks for, and the line that GRADPLANE_VERBOSE asks for.
void write_report();

/// Monotonic time in nanoseconds.
std::int64_t now_ns();

}  // namespace gradplane::shim
