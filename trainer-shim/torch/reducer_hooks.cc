// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/bucket_layout.h"
#include "trainer-shim/group/environment.h"
#include "trainer-shim/torch/bucket_names.h"
#include "trainer-shim/torch/device_stream.h"
#include "trainer-shim/torch/replacements.h"
#include "trainer-shim/torch/replicas.h"

namespace gradplane::shim {
namespace {

// These are never freed, because threads may use them during static destruction.
BucketNames* bucket_names = new BucketNames;
Replicas* replicas = new Replicas;

/// The number of the backward pass of this bucket.
std::uint64_t pass_of(const void* reducer, const c10d::GradBucket& bucket) {
  const auto replica = replicas->find(reducer);
  return replica ? replica->schedule->begin_bucket(identities(bucket.getParameters())) : 0;
}

/// The layout of a sum outside DDP if the user says that such sums are gradients.
GroupSession::Gradient named_gradient(const Collective& collective) {
  const std::string& name = environment().gradients;
  const std::uint64_t elements = collective.bytes / element_bytes(collective.type);
  const bool is_gradient =
      !name.empty() && is_floating(collective.type) && elements >= kMinElementsOfNamedSum;
  if (!is_gradient) return {};
  return {layout_of_sum(name + "." + std::to_string(elements), elements, collective.type), nullptr};
}

/// Notes the reducer and constructs it. It is noted first, because `construct` moves the parameters
/// and their names away.
template <typename Construct>
void construct_known(void* reducer, const Tensors& parameters, const ParameterNames& names,
                     Construct construct) {
  bucket_names->add(reducer, parameters, names);
  replicas->add(reducer, parameters);
  try {
    construct();
  } catch (...) {
    bucket_names->remove(reducer);
    replicas->remove(reducer);
    throw;
  }
}

}  // namespace

void forget_torch_after_fork() {
  forget_arrivals_after_fork();
  bucket_names = new BucketNames;
  replicas = new Replicas;
}

GroupSession::Gradient gradient_of(const at::Tensor& tensor,
                                   const std::shared_ptr<GroupSession>& session,
                                   Collective& collective) {
  GroupSession::Gradient gradient;
  if (collective.reduction != Reduction::kSum) return gradient;
  if (!GradientMark::matches(tensor)) return named_gradient(collective);
  const GradientMark& mark = GradientMark::current();
  gradient.layout = bucket_names->layout(mark.reducer, *mark.bucket);
  const auto replica = replicas->find(mark.reducer);
  if (!replica || !is_floating(collective.type)) return gradient;
  collective.pass = mark.pass;
  gradient.schedule = replica->schedule;
  const std::lock_guard lock(replica->mutex);
  replica->session = session;
  return gradient;
}

namespace replacement {

void reducer_constructor(void* self, Tensors& parameters, void* bucket_indices, void* size_limits,
                         ProcessGroupPtr& group, void* expect_sparse, std::int64_t bucket_bytes,
                         bool find_unused, bool as_bucket_view, ParameterNames& names,
                         std::int64_t first_bucket_bytes) {
  construct_known(self, parameters, names, [&] {
    originals().reducer_constructor(self, parameters, bucket_indices, size_limits, group,
                                    expect_sparse, bucket_bytes, find_unused, as_bucket_view, names,
                                    first_bucket_bytes);
  });
}

void reducer_constructor_2_11(void* self, Tensors& parameters, void* bucket_indices,
                              ProcessGroupPtr& group, void* expect_sparse,
                              std::int64_t bucket_bytes, bool find_unused, bool as_bucket_view,
                              ParameterNames& names, std::int64_t first_bucket_bytes,
                              bool skip_unused, bool use_python, void* bucket_limits) {
  construct_known(self, parameters, names, [&] {
    originals().reducer_constructor_2_11(
        self, parameters, bucket_indices, group, expect_sparse, bucket_bytes, find_unused,
        as_bucket_view, names, first_bucket_bytes, skip_unused, use_python, bucket_limits);
  });
}

void reducer_destructor(void* self) {
  bucket_names->remove(self);
  replicas->remove(self);
  originals().reducer_destructor(self);
}

/// DDP calls this at the beginning of each forward pass that records a graph, even without
/// synchronisation. It also calls it for a rank without data that takes part in others' passes
/// (Join).
bool rebuild_buckets(void* self) {
  if (const auto replica = replicas->find(self)) average_if_due(*replica);
  return originals().rebuild_buckets(self);
}

FuturePtr run_comm_hook(void* self, c10d::GradBucket& bucket) {
  struct Marked {
    GradientMark previous = GradientMark::current();
    ~Marked() { GradientMark::current() = previous; }
  } const marked;
  GradientMark::current() = {self, &bucket, pass_of(self, bucket)};
  return originals().run_comm_hook(self, bucket);
}

}  // namespace replacement
}  // namespace gradplane::shim
