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

/// The daemon's end of the memory that it shares with one rank. Created and destroyed on the
/// control thread; between, the poll thread of a core alone uses the core's rings and flags, and of
/// the slots the blocks of the core's trees. The size is
/// sealed and every page is there from the start, so that nothing the trainer does makes an access
/// fault. Sizes are the daemon's own: the header that the trainer can write is never read back.
class Channel {
 public:
  /// Makes the memory and writes its header. Fails on invalid sizes and when memory is short.
  static Result<Channel> create(ChannelSizes sizes);

  /// The daemon's own descriptor. Whoever shares its description is nobody else to take_back().
  int fd() const noexcept { return fd_.get(); }
  /// The memory, opened once more, to be passed to the trainer and closed.
  Result<UniqueFd> open_for_trainer() const;
  /// Empties the memory if nobody but this object has it open or mapped. False: somebody has, or a
  /// descriptor of it is still under way. For a channel that is not in use any more. The kernel
  /// sends SIGIO when somebody opens the memory meanwhile; the process must ignore that signal.
  bool take_back() noexcept;
  const ChannelSizes& sizes() const noexcept { return sizes_; }

  /// The memory of a round. Its content is the trainer's to change at any moment.
  std::span<std::byte> slot(std::uint32_t round) const noexcept {
    return {mapping_.data() + sizes_.slot_offset(round), sizes_.slot_bytes};
  }
  /// `core` is less than sizes().core_count, here and below.
  RingMemory<Submission>& submissions(std::size_t core = 0) const noexcept;
  RingMemory<Completion>& completions(std::size_t core = 0) const noexcept;

  /// Tells the trainer that the poll loop of a core lives. At least once a second, also when idle.
  void beat(std::size_t core = 0) noexcept;
  /// For doorbell.h: the daemon's own flag, and the trainer's, which may hold anything.
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
