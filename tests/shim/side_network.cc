// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/shim/side_network.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <stdexcept>
#include <utility>

#include "tests/shim/reduced.h"

namespace gradplane::test {

using shim::Collective;

/// A rank's part in an operation: its memory, by shard.
struct SideNetwork::Part {
  std::vector<std::span<std::byte>> memory;
  std::vector<std::byte> given;   // the rank's input of an all_gather
  std::span<std::byte> result{};  // of a reduce_scatter
};

/// An operation of all ranks.
struct SideNetwork::Operation {
  enum class Kind { kAllGather, kBroadcast, kSum, kGatherShards, kScatterSums };
  Kind kind = Kind::kAllGather;
  int root = 0;
  bool is_collective = false;
  Reduction reduction = Reduction::kSum;
  std::map<int, Part> parts{};
  bool over = false;
  std::exception_ptr failure{};
  std::vector<std::function<void()>> then{};

  void compute() const;
  std::vector<std::uint32_t> sum_of_shard(std::size_t shard) const;
};

struct SideNetwork::State {
  explicit State(int of) : ranks(of), next(static_cast<std::size_t>(of)) {}

  const int ranks;
  mutable std::mutex mutex;
  std::condition_variable ended;
  std::map<std::uint64_t, std::shared_ptr<Operation>> open;  // by number of the operation
  std::vector<std::uint64_t> next;  // number of the next operation, by rank
  std::uint64_t collectives = 0;
  std::optional<int> lost;
  std::optional<int> garbled;

  std::vector<std::function<void()>> end(Operation& operation, std::exception_ptr failure) {
    operation.over = true;
    operation.failure = failure;
    ended.notify_all();
    return std::exchange(operation.then, {});
  }

  void lose(int rank) {
    std::vector<std::function<void()>> then{};
    {
      const std::lock_guard lock(mutex);
      if (!lost) lost = rank;
      for (auto& [number, operation] : open) {
        for (auto& callback : end(*operation, why_lost())) then.push_back(std::move(callback));
      }
      open.clear();
    }
    for (const auto& callback : then) callback();
  }

  std::exception_ptr why_lost() const {
    return std::make_exception_ptr(
        std::runtime_error("the connection to rank " + std::to_string(*lost) + " was closed"));
  }
};

void SideNetwork::Operation::compute() const {
  switch (kind) {
    case Kind::kAllGather:
      for (const auto& [to, part] : parts) {
        std::byte* at = part.memory[0].data();
        for (const auto& [from, other] : parts) {
          at = std::copy(other.given.begin(), other.given.end(), at);
        }
      }
      return;
    case Kind::kBroadcast:
      for (const auto& [to, part] : parts) {
        const auto source = parts.at(root).memory[0];
        if (to != root) std::copy(source.begin(), source.end(), part.memory[0].begin());
      }
      return;
    case Kind::kGatherShards:
      for (const auto& [from, own] : parts) {
        const auto shard = static_cast<std::size_t>(from);
        for (const auto& [to, part] : parts) {
          if (to == from) continue;
          std::copy(own.memory[shard].begin(), own.memory[shard].end(), part.memory[shard].begin());
        }
      }
      return;
    case Kind::kScatterSums:
      for (const auto& [to, part] : parts) {
        const auto sums = sum_of_shard(static_cast<std::size_t>(to));
        std::memcpy(part.result.data(), sums.data(), part.result.size());
      }
      return;
    case Kind::kSum:
      const auto sums = sum_of_shard(0);
      for (const auto& [rank, part] : parts) {
        std::memcpy(part.memory[0].data(), sums.data(), part.memory[0].size());
      }
      return;
  }
}

std::vector<std::uint32_t> SideNetwork::Operation::sum_of_shard(std::size_t shard) const {
  const std::size_t bytes = parts.begin()->second.memory[shard].size();
  std::vector<std::uint32_t> sums(bytes / sizeof(std::uint32_t));
  const int first = parts.begin()->first;
  for (const auto& [rank, part] : parts) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::uint32_t value = 0;
      std::memcpy(&value, part.memory[shard].data() + i * sizeof value, sizeof value);
      sums[i] = rank == first ? value : reduced(sums[i], value, reduction);
    }
  }
  return sums;
}

class SideNetwork::Work final : public shim::OriginalWork {
 public:
  Work(std::shared_ptr<State> state, std::shared_ptr<Operation> operation)
      : state_(std::move(state)), operation_(std::move(operation)) {}

  bool is_over() const override {
    const std::lock_guard lock(state_->mutex);
    return operation_->over;
  }

  void wait() override {
    std::unique_lock lock(state_->mutex);
    state_->ended.wait(lock, [this] { return operation_->over; });
    if (operation_->failure) std::rethrow_exception(operation_->failure);
  }

  void when_over(std::function<void()> then) override {
    {
      const std::lock_guard lock(state_->mutex);
      if (!operation_->over) {
        operation_->then.push_back(std::move(then));
        return;
      }
    }
    then();
  }

 private:
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Operation> operation_;
};

class SideNetwork::Rank final : public shim::SideGroup {
 public:
  Rank(std::shared_ptr<State> state, int rank, const shim::JobKey& key,
       std::chrono::milliseconds timeout)
      : state_(std::move(state)), rank_(rank), key_(key), timeout_(timeout) {}

  shim::OriginalWorkPtr all_gather(std::span<const std::byte> mine,
                                   std::span<std::byte> all) override {
    Part part{.memory = {all}, .given = {mine.begin(), mine.end()}};
    if (is_garbled()) part.given[0] ^= std::byte{0xff};
    return begin(Operation{.kind = Operation::Kind::kAllGather}, std::move(part));
  }

  shim::OriginalWorkPtr broadcast(std::span<std::byte> bytes, int root) override {
    return begin(Operation{.kind = Operation::Kind::kBroadcast, .root = root},
                 {.memory = {bytes}, .given = {}});
  }

  shim::OriginalWorkPtr start(const Collective& collective, std::size_t offset_bytes,
                              std::size_t bytes, const shim::StagingPtr&) override {
    Operation operation{
        .kind = Operation::Kind::kSum, .is_collective = true, .reduction = collective.reduction};
    if (collective.operation == gradplane::Operation::kBroadcast) {
      operation.kind = Operation::Kind::kBroadcast;
      operation.root = collective.source;
    }
    if (collective.operation == gradplane::Operation::kAllGather) {
      operation.kind = Operation::Kind::kGatherShards;
    }
    Part part;
    for (std::size_t shard = 0; shard < collective.shards; ++shard) {
      part.memory.emplace_back(collective.data + shard * collective.bytes + offset_bytes, bytes);
    }
    if (collective.operation == gradplane::Operation::kReduceScatter) {
      operation.kind = Operation::Kind::kScatterSums;
      part.result = {collective.result + offset_bytes, bytes};
    }
    return begin(std::move(operation), std::move(part));
  }

  void close() override { state_->lose(rank_); }

  std::chrono::milliseconds timeout() const override { return timeout_; }
  shim::JobKey key() override { return key_; }
  const char* name() const override { return "the side network"; }

 private:
  bool is_garbled() const {
    const std::lock_guard lock(state_->mutex);
    return state_->garbled == rank_;
  }

  shim::OriginalWorkPtr begin(Operation what, Part part) {
    std::vector<std::function<void()>> then{};
    std::shared_ptr<Operation> operation;
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->lost) std::rethrow_exception(state_->why_lost());
      const std::uint64_t number = state_->next[static_cast<std::size_t>(rank_)]++;
      std::shared_ptr<Operation>& open = state_->open[number];
      if (!open) open = std::make_shared<Operation>(std::move(what));
      operation = open;
      operation->parts[rank_] = std::move(part);
      if (operation->parts.size() == static_cast<std::size_t>(state_->ranks)) {
        operation->compute();
        state_->collectives += operation->is_collective ? 1 : 0;
        state_->open.erase(number);
        then = state_->end(*operation, nullptr);
      }
    }
    for (const auto& callback : then) callback();
    return std::make_unique<Work>(state_, std::move(operation));
  }

  const std::shared_ptr<State> state_;
  const int rank_;
  const shim::JobKey key_;
  const std::chrono::milliseconds timeout_;
};

SideNetwork::SideNetwork(int ranks, std::chrono::milliseconds timeout)
    : timeout_(timeout), state_(std::make_shared<State>(ranks)) {}

std::unique_ptr<shim::SideGroup> SideNetwork::join(int rank, const shim::JobKey& key) {
  return std::make_unique<Rank>(state_, rank, key, timeout_);
}

std::uint64_t SideNetwork::collectives() const {
  const std::lock_guard lock(state_->mutex);
  return state_->collectives;
}

void SideNetwork::lose(int rank) {
  state_->lose(rank);
}

void SideNetwork::garble(int rank) {
  const std::lock_guard lock(state_->mutex);
  state_->garbled = rank;
}

}  // namespace gradplane::test
