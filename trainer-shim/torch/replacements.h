// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <optional>

#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/group_session.h"
#include "trainer-shim/torch/originals.h"

/// The functions that stand in for libtorch's own. Each decides quickly, and goes to the original
/// unless gradplane has something to do.
namespace gradplane::shim::replacement {

// group_hooks.cc: process groups begin and end.
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

// reducer_hooks.cc: what DDP's reducer does with its buckets.
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

/// Before a group of two ranks or more connects: tells the others that this rank has gradplane.
void announce_group(c10d::Store& store, int rank);

/// After it has connected: from here on its collectives are carried where all ranks have announced
/// it. All ranks call it; waits for them. Throws what the framework throws.
void open_group(Group* group, const StorePtr& store, int rank, int size,
                const GroupOptions& options);

/// In a child of fork(): it has none of its parent's reducers and copies.
void forget_torch_after_fork();

/// The session that carries a collective, or nothing: then it goes to the original. Throws where
/// the group has none and a fallback is forbidden.
std::shared_ptr<GroupSession> session_for(Group* group, Operation operation,
                                          std::optional<PassReason> reason);

/// Where `tensor` is the bucket that DDP reduces in this thread: what the session has to know of
/// it. `collective` learns which backward pass it belongs to.
GroupSession::Gradient gradient_of(const at::Tensor& tensor,
                                   const std::shared_ptr<GroupSession>& session,
                                   Collective& collective);

}  // namespace gradplane::shim
