// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/shim/reduced.h"
#include "tests/shim/side_network.h"
#include "tests/support/catch.h"
#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/group_session.h"

namespace gradplane::test {

/// A test that waits longer fails.
inline constexpr std::chrono::seconds kPatience{60};

/// A trainer's view of one collective.
class Seen final : public shim::Completion {
 public:
  /// `then` is a callback of the program. It runs before the program sees that the collective is
  /// over.
  explicit Seen(std::function<void()> then = nullptr) : then_(std::move(then)) {}

  bool may_finish_in_place() override { return then_ == nullptr; }
  void finish(std::exception_ptr failure) override {
    if (then_) then_();
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    times_ += 1;
    ended_.notify_all();
  }

  /// "" on success, or why the collective failed.
  std::string result() {
    std::unique_lock lock(mutex_);
    if (!ended_.wait_for(lock, kPatience, [this] { return times_ > 0; })) return "still waiting";
    if (times_ != 1) return "finished twice";
    if (!failure_) return "";
    try {
      std::rethrow_exception(failure_);
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  bool is_over() {
    const std::lock_guard lock(mutex_);
    return times_ > 0;
  }

 private:
  const std::function<void()> then_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::exception_ptr failure_;
  int times_ = 0;
};

/// The fake daemon's folder and script; see fake_client.cc.
class FakeDaemon {
 public:
  explicit FakeDaemon(const std::string& script = "") {
    char name[] = "/tmp/gp-group-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    folder_ = name;
    setenv("GRADPLANE_SOCKET", name, 1);
    set("GRADPLANE_TEST_FAKE", script);
  }
  ~FakeDaemon() { std::filesystem::remove_all(folder_); }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  void die() { std::ofstream(folder_ + "/dead"); }
  /// Lets the daemon take jobs again after the end of its script.
  void take_jobs() { std::filesystem::remove(folder_ + "/closed"); }

  static void set(const char* variable, const std::string& value) {
    value.empty() ? unsetenv(variable) : setenv(variable, value.c_str(), 1);
  }

 private:
  std::string folder_;
};

/// The ranks of one process group, each with its own progress thread. Counters are sums over all
/// ranks.
class RankGroup {
 public:
  struct Options {
    int ranks = 3;
    std::string script{};
    std::chrono::milliseconds timeout{60000};
    bool require = false;
    bool starts = true;
  };

  explicit RankGroup(const Options& o)
      : daemon_(o.script), network_(o.ranks, o.timeout), ranks_(o.ranks) {
    static std::uint8_t groups = 0;
    FakeDaemon::set("GRADPLANE_REQUIRE", o.require ? "1" : "");
    shim::forget_environment_after_fork();
    shim::forget_counters_after_fork();
    const shim::JobKey key = {++groups};
    for (int rank = 0; rank < ranks_; ++rank) {
      sessions_.push_back(
          std::make_shared<shim::GroupSession>(network_.join(rank, key), rank, ranks_));
      if (o.starts) sessions_.back()->start();
    }
  }
  ~RankGroup() { end(); }
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  /// Ends the group on all ranks, as the trainer does.
  void end() {
    for (const auto& session : sessions_) session->request_stop();
    for (const auto& session : sessions_) session->shut_down(0);
    sessions_.clear();
  }

  int ranks() const { return ranks_; }
  shim::GroupSession& session(int rank) { return *sessions_[static_cast<std::size_t>(rank)]; }
  SideNetwork& network() { return network_; }
  FakeDaemon& daemon() { return daemon_; }

 private:
  FakeDaemon daemon_;
  SideNetwork network_;
  const int ranks_;
  std::vector<std::shared_ptr<shim::GroupSession>> sessions_;
};

/// One collective of all ranks: each rank's input, and the result that all should have.
struct Step {
  Operation operation = Operation::kAllReduce;
  std::size_t elements = 1000;  // 32-bit integers in a shard
  std::uint32_t seed = 1;
  int source = 0;
  Reduction reduction = Reduction::kSum;
  bool reuses_memory = false;  // a rank's input is overwritten as soon as the rank has its result

  /// The input of a rank at place `i`, counted over all shards if it gives more than one.
  std::uint32_t given(int rank, std::size_t i) const {
    return seed * 1000003U + static_cast<std::uint32_t>(rank) * 7919U +
           static_cast<std::uint32_t>(i) * 31U;
  }
  std::size_t shards(int ranks) const {
    return has_shards(operation) ? static_cast<std::size_t>(ranks) : 1;
  }
  std::vector<std::uint32_t> memory(int rank, int ranks) const {
    std::vector<std::uint32_t> values(elements * shards(ranks));
    if (operation == Operation::kReduceScatter) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = given(rank, i);
      return values;
    }
    const std::size_t begin = shards(ranks) > 1 ? elements * static_cast<std::size_t>(rank) : 0;
    for (std::size_t i = 0; i < elements; ++i) values[begin + i] = given(rank, i);
    return values;
  }
  /// The result of a rank, whether it is in place or elsewhere.
  std::vector<std::uint32_t> expected(int own_rank, int ranks) const {
    if (operation == Operation::kReduceScatter) {
      std::vector<std::uint32_t> sums(elements);
      for (int rank = 0; rank < ranks; ++rank) {
        const std::size_t begin = static_cast<std::size_t>(own_rank) * elements;
        for (std::size_t i = 0; i < elements; ++i) {
          const std::uint32_t value = given(rank, begin + i);
          sums[i] = rank == 0 ? value : reduced(sums[i], value, reduction);
        }
      }
      return sums;
    }
    std::vector<std::uint32_t> values(elements * shards(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < elements; ++i) {
        const std::size_t shard = static_cast<std::size_t>(rank) * elements;
        if (operation == Operation::kAllReduce)
          values[i] = rank == 0 ? given(0, i) : reduced(values[i], given(rank, i), reduction);
        if (operation == Operation::kBroadcast && rank == source) values[i] = given(rank, i);
        if (operation == Operation::kAllGather) values[shard + i] = given(rank, i);
      }
    }
    return values;
  }
};

/// A step on one rank.
class Run {
 public:
  Run(RankGroup& group, int rank, const Step& step, std::function<void()> then = nullptr)
      : values_(std::make_shared<std::vector<std::uint32_t>>(step.memory(rank, group.ranks()))),
        scattered_(step.operation == Operation::kReduceScatter ? step.elements : 0),
        expected_(step.expected(rank, group.ranks())),
        seen_(std::make_shared<Seen>(step.reuses_memory ? scribble() : std::move(then))) {
    group.session(rank).enqueue(seen_, collective(step, group.ranks()),
                                std::make_shared<shim::HostMemory<decltype(values_)>>(values_));
  }

  /// "" if the rank has the right result, or what is wrong.
  std::string result() {
    const std::string failure = seen_->result();
    if (!failure.empty()) return failure;
    const auto& found = scattered_.empty() ? *values_ : scattered_;
    return found == expected_ ? "" : "a wrong result";
  }
  Seen& seen() { return *seen_; }

 private:
  std::function<void()> scribble() const {
    return [values = values_] { std::fill(values->begin(), values->end(), 0xdeadbeefU); };
  }

  shim::Collective collective(const Step& step, int ranks) {
    shim::Collective c;
    c.data = reinterpret_cast<std::byte*>(values_->data());
    c.bytes = step.elements * sizeof(std::uint32_t);
    c.type = ElementType::kInt32;
    c.operation = step.operation;
    c.reduction = step.reduction;
    c.source = static_cast<std::uint16_t>(step.source);
    c.shards = step.shards(ranks);
    c.result = reinterpret_cast<std::byte*>(scattered_.data());
    return c;
  }

  const std::shared_ptr<std::vector<std::uint32_t>> values_;
  std::vector<std::uint32_t> scattered_;
  const std::vector<std::uint32_t> expected_;
  const std::shared_ptr<Seen> seen_;
};

/// Runs steps on all ranks at the same time. Returns what result() says on each rank.
inline std::vector<std::string> run_all(RankGroup& group, const std::vector<Step>& steps) {
  std::vector<std::unique_ptr<Run>> runs;
  for (const Step& step : steps) {
    for (int rank = 0; rank < group.ranks(); ++rank) {
      runs.push_back(std::make_unique<Run>(group, rank, step));
    }
  }
  std::vector<std::string> results;
  for (const auto& run : runs) results.push_back(run->result());
  return results;
}

inline bool all_are(const std::vector<std::string>& results, const std::string& what) {
  for (const std::string& result : results) {
    if (result == what) continue;
    UNSCOPED_INFO(result);
    return false;
  }
  return true;
}

}  // namespace gradplane::test
