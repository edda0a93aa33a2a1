// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/result.h"
#include "dataplane/ipc/channel_sizes.h"
#include "dataplane/ipc/layout.h"
#include "dataplane/ipc/mapping.h"
#include "dataplane/ipc/unique_fd.h"

namespace gradplane::ipc {

/// The daemon's end of the memory that it shares with one rank. The control thread creates and
/// destroys it. In between, only the poll thread of a core uses the core's rings and flags, and in
/// the slots the blocks of the core's trees. The size is sealed and all pages exist from the start,
/// so nothing that the trainer does makes an access fault. The daemon uses its own copy of the
/// sizes, and never reads the header back, which the trainer can write.
class Channel {
 public:
  /// Makes the memory and writes its header. Fails on invalid sizes, or if memory is short.
  static Result<Channel> create(ChannelSizes sizes);

  /// The daemon's own descriptor. take_back() does not notice others that share its open file
  /// description.
  int fd() const noexcept { return fd_.get(); }
  /// Opens the memory again, for a descriptor that is passed to the trainer and then closed.
  Result<UniqueFd> open_for_trainer() const;
  /// Empties the memory if only this object has it open or mapped. False if another process has, or
  /// if a descriptor of it is still being passed. Only for a channel that is not in use any more.
  /// If somebody opens the memory during the call, the kernel sends SIGIO; the process must ignore
  /// that signal.
  bool take_back() noexcept;
  const ChannelSizes& sizes() const noexcept { return sizes_; }

  /// The memory of a round. The trainer may change it at any moment.
  std::span<std::byte> slot(std::uint32_t round) const noexcept {
    return {mapping_.data() + sizes_.slot_offset(round), sizes_.slot_bytes};
  }
  /// All of it: the header, the rings and the slots.
  std::span<const std::byte> memory() const noexcept {
    return {mapping_.data(), mapping_.size_bytes()};
  }
  /// `core` must be less than sizes().core_count, here and below.
  RingMemory<Submission>& submissions(std::size_t core = 0) const noexcept;
  RingMemory<Completion>& completions(std::size_t core = 0) const noexcept;

  /// Tells the trainer that the poll loop of a core lives. Call it at least once a second, even
  /// when idle.
  void beat(std::size_t core = 0) noexcept;
  /// The flags for doorbell.h: the daemon's own, and the trainer's, which may have any value.
  std::atomic<std::uint32_t>& daemon_sleeps(std::size_t core = 0) const noexcept {
    return header().cores[core].sleeps;
  }
  const std::atomic<std::uint32_t>& trainer_sleeps() const noexcept {
    return header().trainer_sleeps;
  }

 private:
  Channel(UniqueFd fd, Mapping mapping, ChannelSizes sizes) noexcept
      : fd_(std::move(fd)), mapping_(std::move(mapping)), sizes_(sizes) {}
  ChannelHeader& header() const noexcept {
    return *reinterpret_cast<ChannelHeader*>(mapping_.data());
  }

  UniqueFd fd_;
  Mapping mapping_;
  ChannelSizes sizes_;
  std::array<std::uint64_t, kMaxCores> beats_{};
};

}  // namespace gradplane::ipc
