// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace gradplane::shim {

/// The most threads that copy at a time, the caller's included.
inline constexpr unsigned kMaxCopyThreads = 16;
/// Shorter copies take about as long as to wake a thread.
inline constexpr std::size_t kSharedCopyBytes = std::size_t{1} << 20;
/// A thread takes so much at a time, so that all threads end at about the same time.
inline constexpr std::size_t kCopyPieceBytes = std::size_t{256} << 10;
static_assert(kSharedCopyBytes >= 2 * kCopyPieceBytes, "a shared copy has a piece for two threads");

/// kPastCaches: see stream_copy().
enum class CopyKind : unsigned char { kOrdinary, kPastCaches };

/// One core copies less than the memory of a large host can move. So several threads can copy
/// long pieces of tensors of kStreamedTensorBytes or more.
class CopyCrew {
 public:
  /// `threads` copy at a time, the caller's included. The others start with the first long copy.
  explicit CopyCrew(unsigned threads) : helper_count_(threads == 0 ? 0 : threads - 1) {}
  ~CopyCrew();
  CopyCrew(const CopyCrew&) = delete;
  CopyCrew& operator=(const CopyCrew&) = delete;

  /// Copies between areas that do not overlap. Returns when all is copied. Any thread; if the crew
  /// is busy, the caller copies alone.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, CopyKind kind);

  /// The pieces that other threads than the caller's have copied. For tests.
  std::size_t helped() const { return helped_; }

 private:
  struct Task {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    CopyKind kind = CopyKind::kOrdinary;
  };

  void start_helpers();
  void help();
  std::size_t copy_pieces(const Task& task);

  const unsigned helper_count_;
  std::mutex busy_;  // held by the caller of a shared copy

  std::mutex mutex_;
  std::condition_variable wanted_;  // helpers wait for a copy
  std::condition_variable done_;    // the caller waits for helpers
  // All below under mutex_, but for next_piece_ and helped_.
  std::vector<std::thread> helpers_;
  std::optional<Task> task_;       // set while helpers may join
  std::size_t copying_count_ = 0;  // helpers that have joined
  bool are_started_ = false;
  bool stopping_ = false;
  std::atomic<std::size_t> next_piece_{0};
  std::atomic<std::size_t> helped_{0};
};

/// The crew of this process, as GRADPLANE_COPY_THREADS says.
CopyCrew& copy_crew();

/// For a child of fork(), which has none of the threads.
void forget_copy_crew_after_fork();

}  // namespace gradplane::shim
