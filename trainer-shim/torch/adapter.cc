// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// The functions that stand in for libtorch's own, and the table that the preload object reads. Each
// decides quickly, and goes to the original unless gradplane has something to do.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "trainer-shim/preload/adapter_abi.h"
#include "trainer-shim/torch/bucket_names.h"
#include "trainer-shim/torch/completer.h"
#include "trainer-shim/torch/counters.h"
#include "trainer-shim/torch/element_types.h"
#include "trainer-shim/torch/environment.h"
#include "trainer-shim/torch/groups.h"
#include "trainer-shim/torch/originals.h"
#include "trainer-shim/torch/pass_rules.h"
#include "trainer-shim/torch/replicas.h"

namespace gradplane::shim {
namespace {

Originals original_functions;
/// False in a child of fork() that has made no group: a report would overwrite its parent's.
std::atomic<bool> reports_at_exit{true};
// These outlive static destruction.
BucketNames* bucket_names = new BucketNames;
Replicas* replicas = new Replicas;

/// Names protected members of a group; a group is never one of these.
struct Access : Group {
  static auto works_in_progress() { return &Access::workInProgress_; }
  static auto work_mutex() { return &Access::workMutex_; }
};

std::string refusal_text(const std::vector<int>& ranks) {
  std::string text = "these ranks of a process group run without gradplane:";
  for (std::size_t i = 0; i < std::min<std::size_t>(ranks.size(), 8); ++i) {
    text += ' ';
    text += std::to_string(ranks[i]);
  }
  return text + (ranks.size() > 8 ? " ..." : "");
}

/// True on all ranks or on none: whether every rank of the fresh group could make its side group.
bool all_ranks_ok(Group* group, bool ok) {
  Tensors flag = {at::full({1}, ok ? 1 : 0, at::kInt)};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MIN;
  originals().allreduce(group, flag, options)->wait();
  return flag[0].item<int>() == 1;
}

GroupEntry refused(std::string why) {
  return {nullptr, std::move(why), environment().require || Carrier::daemon_requires(),
          PassReason::kPeers};
}

/// The session of a group whose ranks all have the shim; or why it has none.
GroupEntry open_session(Group* group, const StorePtr& store, int rank, int size,
                        const GroupOptions& options) {
  std::shared_ptr<GroupSession> session;
  std::string trouble = "a rank could not connect its side group";
  try {
    auto side = std::make_unique<SideGroup>(store, rank, size, options);
    session =
        std::make_shared<GroupSession>(std::move(side), SideGroup::group_key(*store), rank, size);
    session->start();
  } catch (const std::exception& e) {
    trouble = std::string("the side group failed: ") + e.what();
    session.reset();
  }
  if (all_ranks_ok(group, session != nullptr)) return {session, "", false, PassReason::kPeers};
  if (session) session->shut_down(0);
  return refused(trouble);
}

void group_constructor(Group* self, const StorePtr& store, int rank, int size,
                       GroupOptions& options) {
  if (size < 2 || SideGroup::connecting()) {
    originals().group_constructor(self, store, rank, size, options);
    return;
  }
  reports_at_exit = true;
  const GroupOptions kept_options = options;  // the constructor moves its argument away
  SideGroup::say_hello(*store, rank);
  originals().group_constructor(self, store, rank, size, options);
  try {
    const auto missing = SideGroup::ranks_without_shim(*store, size);
    groups().add(self, missing.empty() ? open_session(self, store, rank, size, kept_options)
                                       : refused(refusal_text(missing)));
  } catch (...) {
    originals().group_destructor(self);  // a constructor that throws leaves nothing behind
    throw;
  }
}

void group_destructor(Group* self) {
  groups().remove(self);
  originals().group_destructor(self);
}

void group_deleting_destructor(Group* self) {
  groups().remove(self);
  originals().group_deleting_destructor(self);
}

/// The session that carries a collective, or nothing: then it goes to the original. Throws where
/// the group has none and a fallback is forbidden.
std::shared_ptr<GroupSession> session_for(Group* group, Operation operation,
                                          std::optional<PassReason> reason) {
  const GroupEntry entry = groups().find(group);
  if (!entry.session && entry.refusal.empty()) {
    // Not a group of ours, or a side group, which has more.
    if (group->getSize() == 1) count_pass(operation, PassReason::kOneRank);
    return nullptr;
  }
  if (!reason && entry.session) return entry.session;
  if (!reason) {
    if (entry.required || environment().require) {
      throw std::runtime_error(
          "gradplane: " + entry.refusal +
          "; to go on over Gloo is forbidden (ranks.require or GRADPLANE_REQUIRE)");
    }
    announce_fallback(entry.refusal);
  }
  count_pass(operation, reason.value_or(entry.reason));
  return nullptr;
}

/// Of the bucket that DDP reduces in this thread.
GroupSession::Gradient gradient_of(const std::shared_ptr<GroupSession>& session,
                                   Collective& collective) {
  const GradientMark& mark = GradientMark::current();
  GroupSession::Gradient gradient;
  gradient.layout = bucket_names->layout(mark.reducer, *mark.bucket);
  const auto replica = replicas->find(mark.reducer);
  if (!replica || !is_floating(collective.type)) return gradient;
  collective.pass = mark.pass;
  gradient.schedule = replica->schedule;
  const std::lock_guard lock(replica->mutex);
  replica->session = session;
  return gradient;
}

WorkPtr allreduce(Group* self, Tensors& tensors, const c10d::AllreduceOptions& options) {
  const auto session = session_for(self, Operation::kAllReduce, why_passed(tensors, options));
  if (!session) return originals().allreduce(self, tensors, options);
  const at::Tensor& t = tensors[0];
  Collective collective;
  collective.data = static_cast<std::byte*>(t.data_ptr());
  collective.bytes = t.nbytes();
  collective.type = *element_type_of(t.scalar_type());
  GroupSession::Gradient gradient;
  if (GradientMark::matches(t)) gradient = gradient_of(session, collective);
  auto work = c10::make_intrusive<CarriedWork>(TensorLists{tensors}, "gloo:all_reduce", tensors);
  return session->enqueue(std::move(work), collective, t, std::move(gradient));
}

WorkPtr broadcast(Group* self, Tensors& tensors, const c10d::BroadcastOptions& options) {
  const auto session =
      session_for(self, Operation::kBroadcast, why_passed(tensors, options, self->getSize()));
  if (!session) return originals().broadcast(self, tensors, options);
  const at::Tensor& t = tensors[0];
  Collective collective;
  collective.data = static_cast<std::byte*>(t.data_ptr());
  collective.bytes = t.nbytes();
  collective.type = kCopiedAs;
  collective.operation = Operation::kBroadcast;
  collective.source = static_cast<std::uint16_t>(options.rootRank);
  auto work = c10::make_intrusive<CarriedWork>(TensorLists{tensors}, "gloo:broadcast", tensors);
  return session->enqueue(std::move(work), collective, t);
}

/// A row for each rank, with this rank's input in its own.
at::Tensor make_rows(const at::Tensor& input, int rank, int ranks) {
  const at::NoGradGuard copies_alone;
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes.insert(sizes.begin(), ranks);
  at::Tensor rows = at::empty(sizes, at::dtype(input.scalar_type()));
  rows[rank].copy_(input);
  return rows;
}

WorkPtr allgather(Group* self, TensorLists& outputs, Tensors& inputs,
                  const c10d::AllgatherOptions& options) {
  const int ranks = self->getSize();
  const auto session = session_for(self, Operation::kAllGather, why_passed(outputs, inputs, ranks));
  if (!session) return originals().allgather(self, outputs, inputs, options);
  at::Tensor rows = make_rows(inputs[0], self->getRank(), ranks);
  Collective collective;
  collective.data = static_cast<std::byte*>(rows.data_ptr());
  collective.bytes = rows.nbytes() / static_cast<std::size_t>(ranks);
  collective.type = kCopiedAs;
  collective.operation = Operation::kAllGather;
  collective.shards = static_cast<std::size_t>(ranks);
  auto work = c10::make_intrusive<CarriedWork>(outputs, "gloo:all_gather", inputs, rows);
  return session->enqueue(std::move(work), collective, std::move(rows));
}

WorkPtr allreduce_coalesced(Group* self, Tensors& tensors,
                            const c10d::AllreduceCoalescedOptions& options) {
  count_pass(Operation::kAllReduce, PassReason::kCoalesced);
  return originals().allreduce_coalesced(self, tensors, options);
}

/// For its lifetime the group believes that carried works are in progress on its own threads.
class ShownInProgress {
 public:
  ShownInProgress(Group* group, std::vector<c10::intrusive_ptr<CarriedWork>> works)
      : group_(*group), works_(std::move(works)) {
    const std::lock_guard lock(group_.*Access::work_mutex());
    auto& shown = group_.*Access::works_in_progress();
    shown.insert(shown.end(), works_.begin(), works_.end());
  }
  ~ShownInProgress() {
    const std::lock_guard lock(group_.*Access::work_mutex());
    auto& shown = group_.*Access::works_in_progress();
    for (const auto& work : works_) {
      const auto found = std::find(shown.begin(), shown.end(), work);
      if (found != shown.end()) shown.erase(found);
    }
  }
  ShownInProgress(const ShownInProgress&) = delete;
  ShownInProgress& operator=(const ShownInProgress&) = delete;

 private:
  Group& group_;
  const std::vector<c10::intrusive_ptr<CarriedWork>> works_;
};

/// Gloo's barrier waits for the works that its group has in progress when it is called.
WorkPtr barrier(Group* self, const c10d::BarrierOptions& options) {
  const auto session = groups().find(self).session;
  if (!session) return originals().barrier(self, options);
  const ShownInProgress shown(self, session->unfinished());
  return originals().barrier(self, options);
}

void reducer_constructor(void* self, Tensors& parameters, void* bucket_indices, void* size_limits,
                         c10::intrusive_ptr<c10d::ProcessGroup>& group, void* expect_sparse,
                         std::int64_t bucket_bytes, bool find_unused, bool as_bucket_view,
                         ParameterNames& names, std::int64_t first_bucket_bytes) {
  bucket_names->add(self, parameters, names);  // before the original moves them away
  replicas->add(self, parameters);
  try {
    originals().reducer_constructor(self, parameters, bucket_indices, size_limits, group,
                                    expect_sparse, bucket_bytes, find_unused, as_bucket_view, names,
                                    first_bucket_bytes);
  } catch (...) {
    bucket_names->remove(self);
    replicas->remove(self);
    throw;
  }
}

void reducer_destructor(void* self) {
  bucket_names->remove(self);
  replicas->remove(self);
  originals().reducer_destructor(self);
}

/// DDP calls it at the begin of each forward pass that records a graph, also where it does not
/// synchronise, and of each pass in which a rank without data stands in for one (Join).
bool rebuild_buckets(void* self) {
  if (const auto replica = replicas->find(self)) average_if_due(*replica);
  return originals().rebuild_buckets(self);
}

/// The backward pass of which this is a bucket.
std::uint64_t pass_of(const void* reducer, const c10d::GradBucket& bucket) {
  const auto replica = replicas->find(reducer);
  return replica ? replica->schedule->begin_bucket(identities(bucket.getParameters())) : 0;
}

FuturePtr run_comm_hook(void* self, c10d::GradBucket& bucket) {
  struct Marked {
    GradientMark previous = GradientMark::current();
    ~Marked() { GradientMark::current() = previous; }
  } const marked;
  GradientMark::current() = {self, &bucket, pass_of(self, bucket)};
  return originals().run_comm_hook(self, bucket);
}

/// In a child of fork(). It has one thread, and nothing of ours that another one may have locked or
/// waited for; groups that it makes itself are carried like any other.
void begin_anew_in_child() {
  groups().unlock_after_fork();
  groups().disown_all();
  bucket_names = new BucketNames;
  replicas = new Replicas;
  forget_counters_after_fork();
  forget_completer_after_fork();
  forget_environment_after_fork();
  reports_at_exit = false;
}

void at_exit() {
  if (!reports_at_exit) return;
  groups().end_all();
  write_report();
}

template <typename Function>
void take(void* const from[], gradplane_hook hook, Function& to) {
  static_assert(sizeof to == sizeof(void*));
  std::memcpy(&to, &from[hook], sizeof to);
}

template <typename Function>
void give(void* to[], gradplane_hook hook, Function function) {
  static_assert(sizeof function == sizeof(void*));
  std::memcpy(&to[hook], &function, sizeof function);
}

void take_originals(void* const from[]) {
  Originals& o = original_functions;
  take(from, GP_HOOK_GROUP_CONSTRUCTOR, o.group_constructor);
  take(from, GP_HOOK_GROUP_DESTRUCTOR, o.group_destructor);
  take(from, GP_HOOK_GROUP_DELETING_DESTRUCTOR, o.group_deleting_destructor);
  take(from, GP_HOOK_ALLREDUCE, o.allreduce);
  take(from, GP_HOOK_ALLREDUCE_COALESCED, o.allreduce_coalesced);
  take(from, GP_HOOK_BROADCAST, o.broadcast);
  take(from, GP_HOOK_ALLGATHER, o.allgather);
  take(from, GP_HOOK_BARRIER, o.barrier);
  take(from, GP_HOOK_REDUCER_CONSTRUCTOR, o.reducer_constructor);
  take(from, GP_HOOK_REDUCER_DESTRUCTOR, o.reducer_destructor);
  take(from, GP_HOOK_REBUILD_BUCKETS, o.rebuild_buckets);
  take(from, GP_HOOK_RUN_COMM_HOOK, o.run_comm_hook);
}

void give_replacements(void* to[]) {
  give(to, GP_HOOK_GROUP_CONSTRUCTOR, &group_constructor);
  give(to, GP_HOOK_GROUP_DESTRUCTOR, &group_destructor);
  give(to, GP_HOOK_GROUP_DELETING_DESTRUCTOR, &group_deleting_destructor);
  give(to, GP_HOOK_ALLREDUCE, &allreduce);
  give(to, GP_HOOK_ALLREDUCE_COALESCED, &allreduce_coalesced);
  give(to, GP_HOOK_BROADCAST, &broadcast);
  give(to, GP_HOOK_ALLGATHER, &allgather);
  give(to, GP_HOOK_BARRIER, &barrier);
  give(to, GP_HOOK_REDUCER_CONSTRUCTOR, &reducer_constructor);
  give(to, GP_HOOK_REDUCER_DESTRUCTOR, &reducer_destructor);
  give(to, GP_HOOK_REBUILD_BUCKETS, &rebuild_buckets);
  give(to, GP_HOOK_RUN_COMM_HOOK, &run_comm_hook);
}

int attach(void* const from[GP_HOOK_COUNT], void* replacements[GP_HOOK_COUNT], char* reason,
           std::size_t reason_bytes) {
  for (int i = 0; i < GP_HOOK_COUNT; ++i) {
    if (from[i]) continue;
    std::snprintf(reason, reason_bytes, "this libtorch lacks hooked function number %d", i);
    return 1;
  }
  take_originals(from);
  warn_of_strange_variables();
  pthread_atfork([] { groups().lock_for_fork(); }, [] { groups().unlock_after_fork(); },
                 begin_anew_in_child);
  std::atexit(at_exit);
  give_replacements(replacements);
  return 0;
}

}  // namespace

const Originals& originals() {
  return original_functions;
}

}  // namespace gradplane::shim

extern "C" __attribute__((visibility("default"))) const gradplane_adapter gradplane_adapter = {
    GRADPLANE_ADAPTER_ABI, GP_HOOK_COUNT, gradplane::shim::attach};
