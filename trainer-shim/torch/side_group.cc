// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/side_group.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "trainer-shim/torch/element_types.h"

namespace gradplane::shim {
namespace {

constexpr const char* kSidePrefix = "gradplane/side";
constexpr const char* kHello = "1";
constexpr const char* kGroupKey = "gradplane/key";
thread_local bool connecting_here = false;

/// The 5 is the version of the statements and of what is carried: ranks of two versions do not form
/// a side group.
std::string hello_key(int rank) {
  return "gradplane/hello/5/" + std::to_string(rank);
}

/// Names the protected member of a group; a group is never one of these.
struct Access : Group {
  static auto contexts() { return &Access::contexts_; }
};

struct ConnectingHere {
  ConnectingHere() { connecting_here = true; }
  ~ConnectingHere() { connecting_here = false; }
};

}  // namespace

void SideGroup::say_hello(c10d::Store& store, int rank) {
  if (rank == 0) {
    std::vector<std::uint8_t> key(sizeof(JobKey));
    if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
      throw std::runtime_error("gradplane: the kernel gave no random bytes for the job key");
    }
    store.set(kGroupKey, key);
  }
  store.set(hello_key(rank), std::vector<std::uint8_t>(kHello, kHello + 1));
}

JobKey SideGroup::group_key(c10d::Store& store) {
  const std::vector<std::uint8_t> bytes = store.get(kGroupKey);
  JobKey key{};
  if (bytes.size() != key.size()) throw std::runtime_error("gradplane: rank 0 left no job key");
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

std::vector<int> SideGroup::ranks_without_shim(c10d::Store& store, int size) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size; ++rank) keys.push_back(hello_key(rank));
  std::vector<int> missing;
  if (store.check(keys)) return missing;
  for (int rank = 0; rank < size; ++rank) {
    if (!store.check({hello_key(rank)})) missing.push_back(rank);
  }
  return missing;
}

SideGroup::SideGroup(const StorePtr& store, int rank, int size, const GroupOptions& options) {
  const ConnectingHere here;
  const StorePtr side_store = c10::make_intrusive<c10d::PrefixStore>(kSidePrefix, store);
  group_ = c10::make_intrusive<Group>(side_store, rank, size, options);
}

bool SideGroup::connecting() {
  return connecting_here;
}

std::vector<Statement> SideGroup::gather(const Statement& mine, const StillWaiting& still_waiting) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Statement));
  Tensors input = {at::empty({kBytes}, at::kByte)};
  std::memcpy(input[0].data_ptr(), &mine, sizeof mine);
  std::vector<Tensors> outputs(1);
  for (int i = 0; i < group_->getSize(); ++i) outputs[0].push_back(at::empty({kBytes}, at::kByte));
  wait_for(originals().allgather(group_.get(), outputs, input, {}), still_waiting);
  std::vector<Statement> statements(outputs[0].size());
  for (std::size_t i = 0; i < statements.size(); ++i) {
    std::memcpy(&statements[i], outputs[0][i].data_ptr(), sizeof(Statement));
  }
  return statements;
}

void SideGroup::broadcast(std::span<std::byte> bytes, int root, const StillWaiting& still_waiting) {
  Tensors tensors = {
      at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, at::kByte)};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  wait_for(originals().broadcast(group_.get(), tensors, options), still_waiting);
}

void SideGroup::wait_for(const WorkPtr& work, const StillWaiting& still_waiting) {
  const auto ended = std::make_shared<std::promise<void>>();
  work->getFuture()->addCallback([ended](c10::ivalue::Future&) { ended->set_value(); });
  const auto over = ended->get_future();
  for (auto waited = kFirstWord, next = kFirstWord;
       over.wait_for(next) == std::future_status::timeout; next = waited, waited *= 2) {
    still_waiting(waited.count());
  }
  work->wait();
}

WorkPtr SideGroup::start(const Collective& collective, std::size_t offset_bytes, std::size_t bytes,
                         const at::Tensor& memory) {
  const bool sums = all_contribute(collective.operation);
  const at::ScalarType type = sums ? scalar_type_of(collective.type) : at::kByte;
  const auto elements = static_cast<std::int64_t>(bytes / c10::elementSize(type));
  Tensors shards;
  for (std::size_t shard = 0; shard < collective.shards; ++shard) {
    std::byte* data = collective.data + shard * collective.bytes + offset_bytes;
    shards.push_back(at::from_blob(
        data, {elements}, [memory](void*) {}, at::dtype(type)));
  }
  if (collective.operation == Operation::kAllGather) {
    TensorLists outputs = {shards};
    Tensors inputs = {shards[static_cast<std::size_t>(group_->getRank())]};
    return originals().allgather(group_.get(), outputs, inputs, {});
  }
  if (collective.operation == Operation::kBroadcast) {
    c10d::BroadcastOptions options;
    options.rootRank = collective.source;
    return originals().broadcast(group_.get(), shards, options);
  }
  return originals().allreduce(group_.get(), shards, {});
}

void SideGroup::close() {
  for (const auto& context : (*group_).*Access::contexts()) context->closeConnections();
}

}  // namespace gradplane::shim
