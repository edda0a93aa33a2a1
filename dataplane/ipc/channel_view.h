// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/result.h"
#include "dataplane/ipc/channel_sizes.h"
#include "dataplane/ipc/layout.h"
#include "dataplane/ipc/mapping.h"

namespace gradplane::ipc {

/// The trainer's end of a channel. One thread uses it at a time. Once it is mapped, nothing in it
/// aborts or throws, and no access faults, because the size of the file is sealed.
class ChannelView {
 public:
  /// Maps a descriptor that came from a daemon, and checks that it is a regular file with a sealed
  /// size, that the header states this size, and that magic, version and offsets are right. The
  /// descriptor may be closed afterwards.
  static Result<ChannelView> map(int fd);
  ChannelView() = default;

  const ChannelSizes& sizes() const noexcept { return sizes_; }
  std::span<std::byte> slot(std::uint32_t round) const noexcept {
    return {mapping_.data() + sizes_.slot_offset(round), sizes_.slot_bytes};
  }
  /// `core` must be less than sizes().core_count, here and below.
  RingMemory<Submission>& submissions(std::size_t core = 0) const noexcept;
  RingMemory<Completion>& completions(std::size_t core = 0) const noexcept;

  std::uint64_t daemon_beat(std::size_t core = 0) const noexcept {
    return header().cores[core].beat.load(std::memory_order_relaxed);
  }
  /// The flags for doorbell.h.
  const std::atomic<std::uint32_t>& daemon_sleeps(std::size_t core = 0) const noexcept {
    return header().cores[core].sleeps;
  }
  std::atomic<std::uint32_t>& trainer_sleeps() const noexcept { return header().trainer_sleeps; }

 private:
  ChannelView(Mapping mapping, ChannelSizes sizes) noexcept
      : mapping_(std::move(mapping)), sizes_(sizes) {}
  ChannelHeader& header() const noexcept {
    return *reinterpret_cast<ChannelHeader*>(mapping_.data());
  }

  Mapping mapping_;
  ChannelSizes sizes_;
};

}  // namespace gradplane::ipc
