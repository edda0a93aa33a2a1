// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <unordered_map>
#include <vector>

#include "trainer-shim/torch/version.h"

/// The functions of libtorch that the preload object diverts. They have the calling convention of
/// member functions: `this` comes first, and non-trivial arguments go by reference.
/// c10d::Reducer is only an address here, because reducer.hpp includes a header that Debian does
/// not ship.
namespace gradplane::shim {

using Group = c10d::ProcessGroupGloo;
using GroupOptions = c10::intrusive_ptr<Group::Options>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;
using ParameterNames = std::unordered_map<std::size_t, std::string>;

struct Originals {
  void (*group_constructor)(Group*, const StorePtr&, int, int, GroupOptions&);
  void (*group_destructor)(Group*);
  void (*group_deleting_destructor)(Group*);
  WorkPtr (*allreduce)(Group*, Tensors&, const c10d::AllreduceOptions&);
  WorkPtr (*allreduce_coalesced)(Group*, Tensors&, const c10d::AllreduceCoalescedOptions&);
  WorkPtr (*broadcast)(Group*, Tensors&, const c10d::BroadcastOptions&);
  WorkPtr (*allgather)(Group*, TensorLists&, Tensors&, const c10d::AllgatherOptions&);
  /// allgather_into_tensor_coalesced() comes here, too.
  WorkPtr (*allgather_coalesced)(Group*, TensorLists&, Tensors&, const c10d::AllgatherOptions&);
  /// reduce_scatter_tensor_coalesced(), which Gloo calls for the other forms, too. From 2.6 on.
  WorkPtr (*reduce_scatter)(Group*, Tensors&, Tensors&, const c10d::ReduceScatterOptions&);
  WorkPtr (*reduce)(Group*, Tensors&, const c10d::ReduceOptions&);
  WorkPtr (*gather)(Group*, TensorLists&, Tensors&, const c10d::GatherOptions&);
  WorkPtr (*scatter)(Group*, Tensors&, TensorLists&, const c10d::ScatterOptions&);
  WorkPtr (*all_to_all)(Group*, at::Tensor&, at::Tensor&, std::vector<std::int64_t>&,
                        std::vector<std::int64_t>&, const c10d::AllToAllOptions&);
  WorkPtr (*send)(Group*, Tensors&, int, int);
  WorkPtr (*recv)(Group*, Tensors&, int, int);
  WorkPtr (*recv_from_any)(Group*, Tensors&, int);
  void (*monitored_barrier)(Group*, const c10d::BarrierOptions&, bool);
  WorkPtr (*barrier)(Group*, const c10d::BarrierOptions&);
  void (*reducer_constructor)(void*, Tensors&, void*, void*, ProcessGroupPtr&, void*, std::int64_t,
                              bool, bool, ParameterNames&, std::int64_t);
  void (*reducer_constructor_2_11)(void*, Tensors&, void*, ProcessGroupPtr&, void*, std::int64_t,
                                   bool, bool, ParameterNames&, std::int64_t, bool, bool, void*);
  void (*reducer_destructor)(void*);
  bool (*rebuild_buckets)(void*);
  FuturePtr (*run_comm_hook)(void*, c10d::GradBucket&);
};

/// Keeps the originals. Call it once, before the first diverted call.
void keep_originals(const Originals& functions);
/// The originals, which do not change after keep_originals().
const Originals& originals();

}  // namespace gradplane::shim
