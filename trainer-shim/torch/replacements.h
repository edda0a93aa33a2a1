// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <optional>

#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/group_session.h"
#include "trainer-shim/torch/originals.h"

/// The functions that replace libtorch's own. Each decides quickly, and calls the original unless
/// gradplane has something to do.
namespace gradplane::shim::replacement {

// group_hooks.cc: construction and destruction of process groups.
void group_constructor(Group* self, const StorePtr& store, int rank, int size,
                       GroupOptions& options);
void group_destructor(Group* self);
void group_deleting_destructor(Group* self);

// collective_hooks.cc
WorkPtr allreduce(Group* self, Tensors& tensors, const c10d::AllreduceOptions& options);
WorkPtr allreduce_coalesced(Group* self, Tensors& tensors,
                            const c10d::AllreduceCoalescedOptions& options);
WorkPtr broadcast(Group* self, Tensors& tensors, const c10d::BroadcastOptions& options);
WorkPtr allgather(Group* self, TensorLists& outputs, Tensors& inputs,
                  const c10d::AllgatherOptions& options);
WorkPtr allgather_coalesced(Group* self, TensorLists& outputs, Tensors& inputs,
                            const c10d::AllgatherOptions& options);
#if GP_TORCH_AT_LEAST(2, 6)
WorkPtr reduce_scatter(Group* self, Tensors& outputs, Tensors& inputs,
                       const c10d::ReduceScatterOptions& options);
#endif
WorkPtr barrier(Group* self, const c10d::BarrierOptions& options);

/// Counts a call of the program that is never carried, but not one that another function of the
/// group makes.
void count_pass(const Group& group, OtherOperation operation);
void monitored_barrier(Group* self, const c10d::BarrierOptions& options, bool all_ranks);

/// The replacement of a function that is never carried: it counts the call, as `kOperation`.
template <OtherOperation kOperation, auto kOriginal>
struct Counted;
template <OtherOperation kOperation, typename... Arguments,
          WorkPtr (*Originals::*kOriginal)(Group*, Arguments...)>
struct Counted<kOperation, kOriginal> {
  static WorkPtr call(Group* self, Arguments... arguments) {
    count_pass(*self, kOperation);
    return (originals().*kOriginal)(self, arguments...);
  }
};

// reducer_hooks.cc: DDP's reducer.
void reducer_constructor(void* self, Tensors& parameters, void* bucket_indices, void* size_limits,
                         ProcessGroupPtr& group, void* expect_sparse, std::int64_t bucket_bytes,
                         bool find_unused, bool as_bucket_view, ParameterNames& names,
                         std::int64_t first_bucket_bytes);
void reducer_constructor_2_11(void* self, Tensors& parameters, void* bucket_indices,
                              ProcessGroupPtr& group, void* expect_sparse,
                              std::int64_t bucket_bytes, bool find_unused, bool as_bucket_view,
                              ParameterNames& names, std::int64_t first_bucket_bytes,
                              bool skip_unused, bool use_python, void* bucket_limits);
void reducer_destructor(void* self);
bool rebuild_buckets(void* self);
FuturePtr run_comm_hook(void* self, c10d::GradBucket& bucket);

}  // namespace gradplane::shim::replacement

namespace gradplane::shim {

/// Tells the other ranks that this rank has gradplane. Call it before a group of two ranks or more
/// connects.
void announce_group(c10d::Store& store, int rank);

/// Opens the session of a group that has connected. After it the group's collectives are carried if
/// all ranks have announced the group. All ranks call it, and it waits for them. Throws what the
/// framework throws.
void open_group(Group* group, const StorePtr& store, int rank, int size,
                const GroupOptions& options);

/// For a child of fork(), which has none of its parent's reducers and copies.
void forget_torch_after_fork();

/// The session that carries a collective, or null: then the original does it. Throws if the group
/// has no session and a fallback is forbidden.
std::shared_ptr<GroupSession> session_for(Group* group, Operation operation,
                                          std::optional<PassReason> reason);

/// The layout and schedule of `tensor` if it is the bucket that DDP reduces in this thread, whose
/// backward pass `collective` then gets. For another sum it is the layout of one tensor if
/// GRADPLANE_GRADIENTS is set, else empty.
GroupSession::Gradient gradient_of(const at::Tensor& tensor,
                                   const std::shared_ptr<GroupSession>& session,
                                   Collective& collective);

}  // namespace gradplane::shim
