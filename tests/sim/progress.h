// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gradplane::sim {

/// How far the ranks of a job have come. check_lead() and the end of a run need it after every
/// turn, without a look at all ranks.
class Progress {
 public:
  Progress(std::size_t rounds, std::size_t ranks) : ranks_at_(rounds + 1) {
    ranks_at_[0] = static_cast<std::uint32_t>(ranks);
  }
  /// A rank that had completed the first `before` rounds has now completed `completed`. `end`: one
  /// past the last round that it has completed.
  void on_rank(std::uint32_t before, std::uint32_t completed, std::uint32_t end) {
    --ranks_at_[before];
    ++ranks_at_[completed];
    while (first_lacked_ + 1 < ranks_at_.size() && ranks_at_[first_lacked_] == 0) ++first_lacked_;
    end_ = std::max(end_, end);
  }
  /// The first round that some rank has not completed.
  std::uint32_t first_lacked() const { return first_lacked_; }
  /// One past the last round that some rank has completed.
  std::uint32_t end() const { return end_; }
  bool all_done() const { return first_lacked_ + 1 == ranks_at_.size(); }

 private:
  // The number of ranks, by how many rounds they have completed.
  std::vector<std::uint32_t> ranks_at_;
  std::uint32_t first_lacked_ = 0;
  std::uint32_t end_ = 0;
};

}  // namespace gradplane::sim
