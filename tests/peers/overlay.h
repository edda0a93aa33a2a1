// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// All-reduces over overlays of plain TCP connections. One kind has fixed trees that sum on the way:
// a balanced tree as in MLNET, or one star for each share. The other has pairs that a scheduler
// forms at run time, as in TSEngine. Both cut vectors into chunks, which are all in flight at once.

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "tests/peers/harness.h"
#include "tests/peers/mesh.h"

namespace gradplane::peers {

/// A rank of a mesh with its vector. Subclasses decide what happens to chunks.
class OverlayRank : public Participant {
 public:
  OverlayRank(const MeshPlaces& places, std::uint32_t rank, std::size_t chunk_bytes);
  nlohmann::json run_round(const Round& round) override;

 protected:
  virtual void begin() = 0;
  virtual void take(const MeshHeader& header, std::span<const float> payload) = 0;
  /// Whether no rank needs anything more from this one.
  virtual bool is_over() const = 0;

  std::span<float> chunk(std::uint32_t index) { return chunks_.of(data_, index); }
  std::uint32_t chunk_count() const { return chunks_.count(); }
  std::uint64_t seed() const { return seed_; }
  void count_result() { ++results_; }
  bool has_all() const { return results_ == chunk_count(); }

  Mesh mesh_;

 private:
  std::size_t chunk_elements_;
  Chunks chunks_;
  std::vector<float> data_;  // the contribution first, then partial sums, then the result
  std::uint64_t seed_ = 0;
  std::uint32_t results_ = 0;
};

/// A rank's place in a tree.
struct TreePlace {
  std::uint32_t parent = 0;  // the root is its own parent
  std::vector<std::uint32_t> children;
};

/// `parents` has the parent of each rank. The root is its own parent. Throws std::runtime_error if
/// that is not a tree.
TreePlace place_in(const std::vector<std::uint32_t>& parents, std::uint32_t rank);

/// Chunk i belongs to tree i modulo the number of trees.
class TreeRank final : public OverlayRank {
 public:
  TreeRank(const MeshPlaces& places, std::uint32_t rank, std::size_t chunk_bytes,
           const std::vector<std::vector<std::uint32_t>>& trees);

 private:
  enum Kind : std::uint32_t { kPush = 1, kResult };
  void begin() override;
  void take(const MeshHeader& header, std::span<const float> payload) override;
  bool is_over() const override { return has_all() && mesh_.is_idle(); }
  const TreePlace& place(std::uint32_t chunk) const { return trees_[chunk % trees_.size()]; }
  void pass_on(std::uint32_t chunk);
  void spread(std::uint32_t chunk);

  std::vector<TreePlace> trees_;
  std::vector<std::uint32_t> missing_;  // by chunk: children whose sums have not come
};

/// The scheduler's state and decisions. It does no I/O, so that tests can check its decisions.
class PairScheduler {
 public:
  struct Transfer {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    bool is_result = false;
  };

  PairScheduler(std::uint32_t world, std::uint32_t root, std::uint64_t seed);

  void begin(std::uint32_t chunks);
  /// A rank has a partial sum of `merged` contributions. Returns the transfers that follow.
  std::vector<Transfer> partial_ready(std::uint32_t chunk, std::uint32_t rank, std::uint32_t merged,
                                      std::uint64_t now_ns);
  /// A rank has received the result from another one. Returns the transfers that follow.
  std::vector<Transfer> result_received(std::uint32_t chunk, std::uint32_t from, std::uint32_t to,
                                        std::uint64_t now_ns);
  /// A transfer has ended, which gives the speed of its path.
  void measured(std::uint32_t chunk, std::uint32_t from, std::uint32_t to, std::uint64_t now_ns);
  bool is_over() const { return served_count_ == std::uint64_t{world_} * chunks_.size(); }

 private:
  struct Chunk {
    std::deque<std::uint32_t> waiting;  // ranks with a partial sum that have no partner yet
    std::vector<bool> served;           // ranks that have the result or are being sent it
    std::uint32_t with_result = 0;
  };
  double& speed(std::uint32_t from, std::uint32_t to) { return speeds_[from * world_ + to]; }
  Transfer start(std::uint32_t chunk, Transfer transfer, std::uint64_t now_ns);
  std::vector<Transfer> serve_next(std::uint32_t chunk, std::uint32_t from, std::uint64_t now_ns);
  std::uint32_t choose(std::uint32_t from, const std::vector<std::uint32_t>& candidates);

  std::uint32_t world_;
  std::uint32_t root_;
  std::mt19937_64 random_;
  std::vector<double> speeds_;  // of each pair's latest transfer, as 1 / seconds; 0: unknown
  std::vector<std::uint64_t> started_ns_;
  std::vector<Chunk> chunks_;
  std::uint64_t served_count_ = 0;
};

/// Sends partial sums where the scheduler says. The scheduler is in the root's process.
class PairRank final : public OverlayRank {
 public:
  PairRank(const MeshPlaces& places, std::uint32_t rank, std::size_t chunk_bytes,
           std::uint32_t root);

 private:
  enum Kind : std::uint32_t { kPartial = 1, kResult, kReady, kReceived, kOrder, kOver };
  void begin() override;
  void take(const MeshHeader& header, std::span<const float> payload) override;
  bool is_over() const override { return is_over_ && mesh_.is_idle(); }
  void tell_ready(std::uint32_t chunk, std::uint32_t from);
  void tell_received(std::uint32_t chunk, std::uint32_t from);
  void schedule(const MeshHeader& report);
  void order(std::uint32_t chunk, const PairScheduler::Transfer& transfer);
  void transfer(std::uint32_t chunk, std::uint32_t to, bool is_result);

  std::uint32_t root_;
  PairScheduler scheduler_;            // only the root's is used
  std::vector<std::uint32_t> merged_;  // by chunk: contributions in this rank's partial sum
  bool is_over_ = false;
};

}  // namespace gradplane::peers
