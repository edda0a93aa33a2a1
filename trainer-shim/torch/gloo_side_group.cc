// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/gloo_side_group.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "trainer-shim/torch/element_types.h"

namespace gradplane::shim {
namespace {

constexpr const char* kSidePrefix = "gradplane/side";
constexpr const char* kHello = "1";
constexpr const char* kGroupKey = "gradplane/key";
thread_local bool connecting_here = false;

/// The 9 is the version of the statements and of the set of carried collectives. Ranks of different
/// versions do not form a side group.
std::string hello_key(int rank) {
  return "gradplane/hello/9/" + std::to_string(rank);
}

/// Gives access to a protected member of a group. No object has this type.
struct Access : Group {
  static auto contexts() { return &Access::contexts_; }
};

/// Whether the side group leaves elements of this type to Gloo. Gloo of 1.13 refuses bfloat16, and
/// of 2.6 sums it; what it does in between is not known here, so below 2.6 they are summed as
/// float.
bool gloo_sums(at::ScalarType type) {
  return type != at::kBFloat16 || GP_TORCH_AT_LEAST(2, 6);
}

class GlooWork final : public OriginalWork {
 public:
  /// wait() calls `then` at its end.
  explicit GlooWork(WorkPtr work, std::function<void()> then = nullptr)
      : work_(std::move(work)), future_(work_->getFuture()), then_(std::move(then)) {}

  bool is_over() const override { return future_->completed(); }
  void wait() override {
    work_->wait();
    if (then_) then_();
  }
  void when_over(std::function<void()> then) override {
    future_->addCallback([then = std::move(then)](c10::ivalue::Future&) { then(); });
  }

 private:
  const WorkPtr work_;
  const FuturePtr future_;
  const std::function<void()> then_;
};

OriginalWorkPtr under_way(WorkPtr work) {
  return std::make_unique<GlooWork>(std::move(work));
}

/// The key that rank 0 has written.
JobKey key_in(c10d::Store& store) {
  const std::vector<std::uint8_t> bytes = store.get(kGroupKey);
  JobKey key{};
  if (bytes.size() != key.size()) throw std::runtime_error("gradplane: rank 0 left no job key");
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

c10d::AllreduceOptions options_of(const Collective& collective) {
  c10d::AllreduceOptions options;
  options.reduceOp = reduce_op_of(collective.reduction);
  return options;
}

struct ConnectingHere {
  ConnectingHere() { connecting_here = true; }
  ~ConnectingHere() { connecting_here = false; }
};

}  // namespace

void GlooSideGroup::say_hello(c10d::Store& store, int rank) {
  if (rank == 0) {
    std::vector<std::uint8_t> key(sizeof(JobKey));
    if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
      throw std::runtime_error("gradplane: the kernel gave no random bytes for the job key");
    }
    store.set(kGroupKey, key);
  }
  store.set(hello_key(rank), std::vector<std::uint8_t>(kHello, kHello + 1));
}

std::vector<int> GlooSideGroup::ranks_without_shim(c10d::Store& store, int size) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size; ++rank) keys.push_back(hello_key(rank));
  std::vector<int> missing;
  if (store.check(keys)) return missing;
  for (int rank = 0; rank < size; ++rank) {
    if (!store.check({hello_key(rank)})) missing.push_back(rank);
  }
  return missing;
}

GlooSideGroup::GlooSideGroup(const StorePtr& store, int rank, int size, const GroupOptions& options)
    : key_(key_in(*store)) {
  const ConnectingHere here;
  const StorePtr side_store = c10::make_intrusive<c10d::PrefixStore>(kSidePrefix, store);
  group_ = c10::make_intrusive<Group>(side_store, rank, size, options);
}

bool GlooSideGroup::connecting() {
  return connecting_here;
}

OriginalWorkPtr GlooSideGroup::all_gather(std::span<const std::byte> mine,
                                          std::span<std::byte> all) {
  const auto bytes = static_cast<std::int64_t>(mine.size());
  Tensors input = {at::empty({bytes}, at::kByte)};
  std::memcpy(input[0].data_ptr(), mine.data(), mine.size());
  TensorLists outputs(1);
  for (std::size_t at = 0; at < all.size(); at += mine.size()) {
    outputs[0].push_back(at::from_blob(all.data() + at, {bytes}, at::kByte));
  }
  return under_way(originals().allgather(group_.get(), outputs, input, {}));
}

OriginalWorkPtr GlooSideGroup::broadcast(std::span<std::byte> bytes, int root) {
  Tensors tensors = {
      at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, at::kByte)};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  return under_way(originals().broadcast(group_.get(), tensors, options));
}

OriginalWorkPtr GlooSideGroup::start(const Collective& collective, std::size_t offset_bytes,
                                     std::size_t bytes, const StagingPtr& memory) {
  const bool sums = all_contribute(collective.operation);
  const at::ScalarType type = sums ? scalar_type_of(collective.type) : at::kByte;
  const auto elements = static_cast<std::int64_t>(bytes / c10::elementSize(type));
  if (collective.operation == Operation::kReduceScatter) {
    return start_reduce_scatter(collective, offset_bytes, bytes, memory);
  }
  Tensors shards;
  for (std::size_t shard = 0; shard < collective.shards; ++shard) {
    std::byte* data = collective.data + shard * collective.bytes + offset_bytes;
    shards.push_back(at::from_blob(
        data, {elements}, [memory](void*) {}, at::dtype(type)));
  }
  if (collective.operation == Operation::kAllGather) {
    TensorLists outputs = {shards};
    Tensors inputs = {shards[static_cast<std::size_t>(group_->getRank())]};
    return under_way(originals().allgather(group_.get(), outputs, inputs, {}));
  }
  if (collective.operation == Operation::kBroadcast) {
    c10d::BroadcastOptions options;
    options.rootRank = collective.source;
    return under_way(originals().broadcast(group_.get(), shards, options));
  }
  if (gloo_sums(type)) {
    return under_way(originals().allreduce(group_.get(), shards, options_of(collective)));
  }
  Tensors wide = {shards[0].to(at::kFloat)};
  WorkPtr work = originals().allreduce(group_.get(), wide, options_of(collective));
  return std::make_unique<GlooWork>(
      std::move(work), [sums = wide[0], to = shards[0]] { at::Tensor(to).copy_(sums); });
}

/// Does what Gloo does: it sums all shards, and this rank takes its own. The contribution is only
/// read.
OriginalWorkPtr GlooSideGroup::start_reduce_scatter(const Collective& collective,
                                                    std::size_t offset_bytes, std::size_t bytes,
                                                    const StagingPtr& memory) {
  const at::ScalarType type = scalar_type_of(collective.type);
  const auto elements = static_cast<std::int64_t>(bytes / c10::elementSize(type));
  const auto shards = static_cast<std::int64_t>(collective.shards);
  at::Tensor sums = at::empty({shards, elements}, at::dtype(type));
  for (std::size_t shard = 0; shard < collective.shards; ++shard) {
    std::memcpy(static_cast<std::byte*>(sums.data_ptr()) + shard * bytes,
                collective.data + shard * collective.bytes + offset_bytes, bytes);
  }
  Tensors tensors = {sums};
  WorkPtr work = originals().allreduce(group_.get(), tensors, options_of(collective));
  return std::make_unique<GlooWork>(
      std::move(work), [own = sums[group_->getRank()], to = collective.result + offset_bytes, bytes,
                        memory] { std::memcpy(to, own.data_ptr(), bytes); });
}

void GlooSideGroup::close() {
  for (const auto& context : (*group_).*Access::contexts()) context->closeConnections();
}

}  // namespace gradplane::shim
