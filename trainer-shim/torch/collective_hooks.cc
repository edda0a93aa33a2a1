// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <mutex>
#include <utility>

#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/groups.h"
#include "trainer-shim/torch/carried_work.h"
#include "trainer-shim/torch/element_types.h"
#include "trainer-shim/torch/pass_rules.h"
#include "trainer-shim/torch/replacements.h"
#include "trainer-shim/torch/tensor_staging.h"

namespace gradplane::shim::replacement {
namespace {

/// Gives access to protected members of a group. No object has this type.
struct Access : Group {
  static auto works_in_progress() { return &Access::workInProgress_; }
  static auto work_mutex() { return &Access::workMutex_; }
};

/// The stream of a tensor's device; null for host tensors.
DeviceStreamPtr stream_beside(const at::Tensor& t, const std::shared_ptr<GroupSession>& session) {
  DeviceStreamPtr stream = DeviceStream::beside(t);
  if (!stream) return stream;
  stream->on_arrival([weak = std::weak_ptr(session)] {
    if (const auto alive = weak.lock()) alive->wake();
  });
  return stream;
}

WorkPtr carry(const std::shared_ptr<GroupSession>& session, c10::intrusive_ptr<CarriedWork> work,
              const Collective& collective, StagingPtr memory,
              GroupSession::Gradient gradient = {}) {
  work->is_of(session);
  session->enqueue(std::make_shared<WorkCompletion>(work), collective, std::move(memory),
                   std::move(gradient));
  return work;
}

/// The number by which the sums are divided.
int divisor_of(const c10d::ReduceOp& op, const GroupSession& session) {
  return op.op_ == c10d::ReduceOp::AVG ? session.size() : 1;
}

/// A collective over the tensor's elements as they lie in memory. A mean is a sum here.
Collective collective_of(const at::Tensor& t, const c10d::ReduceOp& op) {
  Collective collective;
  collective.reduction = reduction_of(op.op_).value_or(Reduction::kSum);
  collective.data = static_cast<std::byte*>(t.data_ptr());
  collective.bytes = t.nbytes();
  collective.type = *element_type_of(t.scalar_type());
  return collective;
}

Collective gathering_of(const at::Tensor& rows, int ranks) {
  Collective collective;
  collective.data = static_cast<std::byte*>(rows.data_ptr());
  collective.bytes = rows.nbytes() / static_cast<std::size_t>(ranks);
  collective.type = kCopiedAs;
  collective.operation = Operation::kAllGather;
  collective.shards = static_cast<std::size_t>(ranks);
  return collective;
}

#if GP_TORCH_AT_LEAST(2, 6)
/// The operation of a reduce_scatter. Some versions of Gloo sum whatever the program asks for. Then
/// gradplane does the same, so that the program's results do not change, unless the user wants the
/// operation that the program asks for.
c10d::ReduceOp heeded(const c10d::ReduceOp& asked) {
  if (asked.op_ == c10d::ReduceOp::SUM || environment().heeds_reduce_op) return asked;
  if (kGloosScatter != GloosScatter::kSums) return asked;
  announce_gloos_sums();
  return c10d::ReduceOp::SUM;
}
#endif

/// Makes a row for each rank, and copies this rank's input into its row.
at::Tensor make_rows(const at::Tensor& input, int rank, int ranks, const DeviceStreamPtr& stream) {
  const at::NoGradGuard copies_alone;
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes.insert(sizes.begin(), ranks);
  at::Tensor rows =
      at::empty(sizes, at::dtype(input.scalar_type()).pinned_memory(stream != nullptr));
  const auto copy = [&] { rows[rank].copy_(input, /*non_blocking=*/true); };
  if (!stream) {
    copy();
    return rows;
  }
  stream->keep(input);
  stream->bring_in(copy);
  return rows;
}

/// While this object lives, the group has carried works in its list of works in progress.
class ShownInProgress {
 public:
  ShownInProgress(Group* group, const std::vector<CompletionPtr>& unfinished) : group_(*group) {
    for (const CompletionPtr& completion : unfinished) {
      works_.push_back(static_cast<const TorchCompletion&>(*completion).work());
    }
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
  std::vector<c10::intrusive_ptr<CarriedWork>> works_;
};

}  // namespace

WorkPtr allreduce(Group* self, Tensors& tensors, const c10d::AllreduceOptions& options) {
  const auto session = session_for(self, Operation::kAllReduce, why_passed(tensors, options));
  if (!session) return originals().allreduce(self, tensors, options);
  const at::Tensor& t = tensors[0];
  const DeviceStreamPtr stream = stream_beside(t, session);
  const at::Tensor run = stream ? stream->copy_in(t) : t;
  Collective collective = collective_of(run, options.reduceOp);
  GroupSession::Gradient gradient = gradient_of(t, session, collective);
  auto work = c10::make_intrusive<CarriedWork>(self, CarriedWork::kAllReduce, TensorLists{tensors},
                                               tensors);
  work->ends_on(stream);
  const int divisor = divisor_of(options.reduceOp, *session);
  return carry(session, std::move(work), collective,
               std::make_shared<CopiedOut>(run, run, t, divisor, stream), std::move(gradient));
}

WorkPtr broadcast(Group* self, Tensors& tensors, const c10d::BroadcastOptions& options) {
  const auto session =
      session_for(self, Operation::kBroadcast, why_passed(tensors, options, self->getSize()));
  if (!session) return originals().broadcast(self, tensors, options);
  const at::Tensor& t = tensors[0];
  const DeviceStreamPtr stream = stream_beside(t, session);
  if (stream) stream->keep(t);
  // All of the run is written back. If the tensor has gaps, the run also has bytes between its
  // elements, so it must be copied in on each rank.
  const bool gives = options.rootRank == self->getRank() || !t.is_non_overlapping_and_dense();
  const at::Tensor run = !stream ? t : gives ? stream->copy_in(t) : stream->memory_like(t);
  Collective collective;
  collective.data = static_cast<std::byte*>(run.data_ptr());
  collective.bytes = run.nbytes();
  collective.type = kCopiedAs;
  collective.operation = Operation::kBroadcast;
  collective.source = static_cast<std::uint16_t>(options.rootRank);
  auto work = c10::make_intrusive<CarriedWork>(self, CarriedWork::kBroadcast, TensorLists{tensors},
                                               tensors);
  work->ends_on(stream);
  return carry(session, std::move(work), collective,
               std::make_shared<CopiedOut>(run, run, t, 1, stream));
}

WorkPtr allgather(Group* self, TensorLists& outputs, Tensors& inputs,
                  const c10d::AllgatherOptions& options) {
  const int ranks = self->getSize();
  const auto session = session_for(self, Operation::kAllGather, why_passed(outputs, inputs, ranks));
  if (!session) return originals().allgather(self, outputs, inputs, options);
  const DeviceStreamPtr stream = stream_beside(inputs[0], session);
  at::Tensor rows = make_rows(inputs[0], self->getRank(), ranks, stream);
  if (stream) {
    for (const at::Tensor& output : outputs[0]) stream->keep(output);
  }
  const Collective collective = gathering_of(rows, ranks);
  auto work = c10::make_intrusive<CarriedWork>(self, CarriedWork::kAllGather, outputs, inputs);
  work->ends_on(stream);
  return carry(session, std::move(work), collective,
               std::make_shared<GatheredRows>(std::move(rows), outputs[0], stream));
}

WorkPtr allreduce_coalesced(Group* self, Tensors& tensors,
                            const c10d::AllreduceCoalescedOptions& options) {
  const auto session = session_for(self, Operation::kAllReduce, why_passed(tensors, options));
  if (!session) return originals().allreduce_coalesced(self, tensors, options);
  auto work = c10::make_intrusive<CarriedWork>(self, CarriedWork::kAllReduce, TensorLists{tensors},
                                               tensors);
  work->is_of(session);
  const auto whole = std::make_shared<PartCompletion::Whole>(work, tensors.size());
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor output = tensor.detach();
    const at::Tensor run = output.contiguous();
    session->enqueue(std::make_shared<PartCompletion>(whole), collective_of(run, options.reduceOp),
                     std::make_shared<CopiedOut>(run, run, output, 1, nullptr));
  }
  return work;
}

WorkPtr allgather_coalesced(Group* self, TensorLists& outputs, Tensors& inputs,
                            const c10d::AllgatherOptions& options) {
  const int ranks = self->getSize();
  const auto session =
      session_for(self, Operation::kAllGather, why_coalesced_passed(outputs, inputs, ranks));
  if (!session) return originals().allgather_coalesced(self, outputs, inputs, options);
  auto work =
      c10::make_intrusive<CarriedWork>(self, CarriedWork::kAllGatherCoalesced, outputs, inputs);
  work->is_of(session);
  const auto whole = std::make_shared<PartCompletion::Whole>(work, inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor rows = make_rows(inputs[i], self->getRank(), ranks, nullptr);
    const Collective collective = gathering_of(rows, ranks);
    session->enqueue(std::make_shared<PartCompletion>(whole), collective,
                     std::make_shared<GatheredRows>(std::move(rows), column(outputs, i), nullptr));
  }
  return work;
}

#if GP_TORCH_AT_LEAST(2, 6)
WorkPtr reduce_scatter(Group* self, Tensors& outputs, Tensors& inputs,
                       const c10d::ReduceScatterOptions& options) {
  const auto session = session_for(self, Operation::kReduceScatter,
                                   why_passed(outputs, inputs, options, self->getSize()));
  if (!session) return originals().reduce_scatter(self, outputs, inputs, options);
  auto work = c10::make_intrusive<CarriedWork>(self, CarriedWork::kReduceScatter,
                                               TensorLists{outputs}, inputs);
  work->is_of(session);
  const auto whole = std::make_shared<PartCompletion::Whole>(work, outputs.size());
  const c10d::ReduceOp op = heeded(options.reduceOp);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor input = inputs[i].detach().contiguous();
    const at::Tensor output = outputs[i].detach();
    const DeviceStreamPtr stream = stream_beside(input, session);
    if (stream) stream->keep(output);
    work->ends_on(stream);
    const at::Tensor given = stream ? stream->copy_in(input) : input;
    const at::Tensor first = given.chunk(session->size())[0];
    at::Tensor shard = stream                   ? stream->memory_like(first)
                       : output.is_contiguous() ? output
                                                : at::empty_like(first);
    Collective collective = collective_of(given, op);
    collective.bytes = shard.nbytes();
    collective.operation = Operation::kReduceScatter;
    collective.shards = static_cast<std::size_t>(session->size());
    collective.result = static_cast<std::byte*>(shard.data_ptr());
    session->enqueue(
        std::make_shared<PartCompletion>(whole), collective,
        std::make_shared<CopiedOut>(given, shard, output, divisor_of(op, *session), stream));
  }
  return work;
}
#endif

namespace {

thread_local bool is_in_barrier = false;

}  // namespace

void count_pass(const Group& group, OtherOperation operation) {
  if (is_in_barrier) return;
  shim::count_pass(operation, group.getSize() == 1 ? PassReason::kOneRank : PassReason::kOperation);
}

void monitored_barrier(Group* self, const c10d::BarrierOptions& options, bool all_ranks) {
  struct InBarrier {
    InBarrier() { is_in_barrier = true; }
    ~InBarrier() { is_in_barrier = false; }
  } const within;
  originals().monitored_barrier(self, options, all_ranks);
}

/// Gloo's barrier waits for the works that its group has in progress when it is called.
WorkPtr barrier(Group* self, const c10d::BarrierOptions& options) {
  const auto session = groups().find(self).session;
  if (!session) return originals().barrier(self, options);
  const ShownInProgress shown(self, session->unfinished());
  return originals().barrier(self, options);
}

}  // namespace gradplane::shim::replacement
