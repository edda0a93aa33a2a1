// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// The table that the preload object reads: which functions of libtorch are diverted, and to what.
#include <cstdio>
#include <cstring>
#include <vector>

#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/process.h"
#include "trainer-shim/preload/adapter_abi.h"
#include "trainer-shim/torch/originals.h"
#include "trainer-shim/torch/replacements.h"

namespace gradplane::shim {
namespace {

/// How necessary a hook is. A libtorch that lacks one of kAlways cannot be attached. If it lacks
/// one of kReducer, none of these is hooked: then gradients have no names, and every sum is exact.
/// One of kCounter is only missing from the counts.
enum class Need : std::uint8_t { kAlways, kReducer, kCounter };

struct Hook {
  gradplane_hook number;
  const char* name;
  void* original_slot;  // a member of the Originals that are filled
  void* replacement;
  Need need;
};

/// Makes a hook. The compiler checks that the replacement has the type of the original.
template <typename Function>
Hook divert(gradplane_hook number, const char* name, Function& original, Function replacement,
            Need need = Need::kAlways) {
  static_assert(sizeof replacement == sizeof(void*));
  return {number, name, &original, reinterpret_cast<void*>(replacement), need};
}

/// The hook of a function whose calls are only counted.
template <OtherOperation kOperation, auto kOriginal>
Hook count(gradplane_hook number, Originals& o) {
  return divert(number, other_operation_name(kOperation).data(), o.*kOriginal,
                &replacement::Counted<kOperation, kOriginal>::call, Need::kCounter);
}

/// The hook of the reducer's constructor, in the form that this libtorch has.
Hook reducer_hook(Originals& o, void* const from[GP_HOOK_COUNT]) {
  constexpr const char* kName = "Reducer()";
  if (from[GP_HOOK_REDUCER_CONSTRUCTOR_2_11]) {
    return divert(GP_HOOK_REDUCER_CONSTRUCTOR_2_11, kName, o.reducer_constructor_2_11,
                  &replacement::reducer_constructor_2_11, Need::kReducer);
  }
  // These two differ only in arguments that are passed on by address, so one function replaces
  // both.
  const auto number = from[GP_HOOK_REDUCER_CONSTRUCTOR] ? GP_HOOK_REDUCER_CONSTRUCTOR
                                                        : GP_HOOK_REDUCER_CONSTRUCTOR_2_6;
  return divert(number, kName, o.reducer_constructor, &replacement::reducer_constructor,
                Need::kReducer);
}

std::vector<Hook> hooks(Originals& o, void* const from[GP_HOOK_COUNT]) {
  using namespace replacement;
  return {
    divert(GP_HOOK_GROUP_CONSTRUCTOR, "ProcessGroupGloo()", o.group_constructor,
           &group_constructor),
        divert(GP_HOOK_GROUP_DESTRUCTOR, "~ProcessGroupGloo()", o.group_destructor,
               &group_destructor),
        divert(GP_HOOK_GROUP_DELETING_DESTRUCTOR, "~ProcessGroupGloo()",
               o.group_deleting_destructor, &group_deleting_destructor),
        divert(GP_HOOK_ALLREDUCE, "allreduce", o.allreduce, &allreduce),
        divert(GP_HOOK_ALLREDUCE_COALESCED, "allreduce_coalesced", o.allreduce_coalesced,
               &allreduce_coalesced),
        divert(GP_HOOK_BROADCAST, "broadcast", o.broadcast, &broadcast),
        divert(GP_HOOK_ALLGATHER, "allgather", o.allgather, &allgather),
        divert(GP_HOOK_ALLGATHER_COALESCED, "allgather_coalesced", o.allgather_coalesced,
               &allgather_coalesced),
#if GP_TORCH_AT_LEAST(2, 6)
        divert(GP_HOOK_REDUCE_SCATTER, "reduce_scatter_tensor_coalesced", o.reduce_scatter,
               &reduce_scatter),
#endif
        count<OtherOperation::kReduce, &Originals::reduce>(GP_HOOK_REDUCE, o),
        count<OtherOperation::kGather, &Originals::gather>(GP_HOOK_GATHER, o),
        count<OtherOperation::kScatter, &Originals::scatter>(GP_HOOK_SCATTER, o),
        count<OtherOperation::kAllToAll, &Originals::all_to_all>(GP_HOOK_ALL_TO_ALL, o),
        count<OtherOperation::kSend, &Originals::send>(GP_HOOK_SEND, o),
        count<OtherOperation::kReceive, &Originals::recv>(GP_HOOK_RECV, o),
        count<OtherOperation::kReceive, &Originals::recv_from_any>(GP_HOOK_RECV_FROM_ANY, o),
        divert(GP_HOOK_MONITORED_BARRIER, "monitoredBarrier", o.monitored_barrier,
               &monitored_barrier, Need::kCounter),
        divert(GP_HOOK_BARRIER, "barrier", o.barrier, &barrier), reducer_hook(o, from),
        divert(GP_HOOK_REDUCER_DESTRUCTOR, "~Reducer()", o.reducer_destructor, &reducer_destructor,
               Need::kReducer),
        divert(GP_HOOK_REBUILD_BUCKETS, "Reducer::rebuild_buckets", o.rebuild_buckets,
               &rebuild_buckets, Need::kReducer),
        divert(GP_HOOK_RUN_COMM_HOOK, "Reducer::run_comm_hook", o.run_comm_hook, &run_comm_hook,
               Need::kReducer),
  };
}

int attach(void* const from[GP_HOOK_COUNT], void* replacements[GP_HOOK_COUNT], char* reason,
           std::size_t reason_bytes) {
  Originals found{};
  const auto all = hooks(found, from);
  const char* hidden = nullptr;  // a hook of the reducer that this libtorch lacks
  for (const Hook& hook : all) {
    if (from[hook.number]) continue;
    if (hook.need == Need::kReducer) {
      hidden = hook.name;
      continue;
    }
    if (hook.need == Need::kCounter) continue;
    std::snprintf(reason, reason_bytes, "this libtorch lacks %s, which the adapter needs",
                  hook.name);
    return 1;
  }
  warn_of_strange_variables();
  if (hidden) {
    std::fprintf(stderr,
                 "gradplane: this libtorch lacks %s, so DDP's gradients are not known as such, and "
                 "their sums are exact\n",
                 hidden);
  }
  for (const Hook& hook : all) {
    if ((hidden && hook.need == Need::kReducer) || !from[hook.number]) continue;
    std::memcpy(hook.original_slot, &from[hook.number], sizeof(void*));
    replacements[hook.number] = hook.replacement;
  }
  keep_originals(found);
  begin_process(Reports::kAlways, forget_torch_after_fork);
  return 0;
}

}  // namespace

}  // namespace gradplane::shim

extern "C" __attribute__((visibility("default"))) const gradplane_adapter gradplane_adapter = {
    GRADPLANE_ADAPTER_ABI, GP_HOOK_COUNT, gradplane::shim::attach};
