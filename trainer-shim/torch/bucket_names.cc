// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/bucket_names.h"

#include <string>

namespace gradplane::shim {
namespace {

/// The name of a parameter without a name is this and its place in the model. DDP gives names only
/// with TORCH_DISTRIBUTED_DEBUG=INFO or DETAIL.
const std::string kUnnamed = "param.";

}  // namespace

std::vector<const void*> identities(const Tensors& tensors) {
  std::vector<const void*> out;
  out.reserve(tensors.size());
  for (const at::Tensor& t : tensors) out.push_back(t.unsafeGetTensorImpl());
  return out;
}

void BucketNames::add(const void* reducer, const Tensors& parameters, const ParameterNames& names) {
  Reducer known;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto name = names.find(i);
    known.names[parameters[i].unsafeGetTensorImpl()] =
        name == names.end() ? kUnnamed + std::to_string(i) : name->second;
  }
  const std::lock_guard lock(mutex_);
  reducers_[reducer] = std::move(known);
}

void BucketNames::remove(const void* reducer) {
  const std::lock_guard lock(mutex_);
  reducers_.erase(reducer);
}

std::shared_ptr<const BucketLayout> BucketNames::layout(const void* reducer,
                                                        c10d::GradBucket& bucket) {
  const Tensors parameters = bucket.getParameters();
  auto parameter_ids = identities(parameters);
  const std::lock_guard lock(mutex_);
  Reducer& owner = reducers_[reducer];
  Known& known = owner.buckets[bucket.getIndex()];
  if (known.layout && known.parameters == parameter_ids) return known.layout;

  auto layout = std::make_shared<BucketLayout>();
  layout->key = known.layout ? known.layout->key : ++last_key_;
  layout->version = known.layout ? known.layout->version + 1 : 1;
  const auto start = bucket.getBuffer().storage_offset();
  for (const at::Tensor& gradient : bucket.getGradients()) {
    TensorPlace slice;
    slice.offset_elements = static_cast<std::uint64_t>(gradient.storage_offset() - start);
    slice.elements = static_cast<std::uint64_t>(gradient.numel());
    const std::size_t index = layout->tensors.size();
    if (index < parameter_ids.size()) {
      const auto name = owner.names.find(parameter_ids[index]);
      if (name != owner.names.end()) slice.name = name->second;
    }
    layout->tensors.push_back(std::move(slice));
  }
  known.parameters = std::move(parameter_ids);
  known.layout = layout;
  return layout;
}

bool GradientMark::matches(const at::Tensor& tensor) {
  const GradientMark& mark = current();
  if (!mark.bucket) return false;
  const at::Tensor& buffer = mark.bucket->getBuffer();
  return buffer.defined() && tensor.data_ptr() == buffer.data_ptr() &&
         tensor.numel() == buffer.numel() && tensor.scalar_type() == buffer.scalar_type();
}

GradientMark& GradientMark::current() {
  static thread_local GradientMark mark;
  return mark;
}

}  // namespace gradplane::shim
