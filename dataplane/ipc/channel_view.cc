// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/ipc/channel_view.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>

#include "dataplane/ipc/shared_copy.h"
#include "dataplane/ipc/system_error.h"

namespace gradplane::ipc {
namespace {

constexpr const char* kRemedy = "use a gradplaned and a shim of the same version";

/// The size of a file that nobody can shrink. Fails if it is no such file, or cannot be a channel.
Result<std::uint64_t> sealed_size_bytes(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return system_error("cannot look at the channel", errno, kRemedy);
  }
  if (!S_ISREG(status.st_mode)) return Error{std::string("the channel is not a file; ") + kRemedy};
  // A file that could shrink would kill this process with SIGBUS at the next access.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Error{std::string("the size of the channel is not sealed; ") + kRemedy};
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  constexpr std::uint64_t kSmallest = arena_offset(1);
  constexpr std::uint64_t kLargest = ChannelSizes{.core_count = kMaxCores}.total_bytes();
  if (size < kSmallest || size > kLargest) {
    return Error{"the channel has " + std::to_string(size) + " bytes, not " +
                 std::to_string(kSmallest) + " to " + std::to_string(kLargest) + "; " + kRemedy};
  }
  return size;
}

/// What is wrong with a channel's identity, if anything.
std::optional<std::string> identity_defect(const ChannelIdentity& identity,
                                           std::uint64_t size_bytes) {
  if (identity.magic != kChannelMagic) return "no channel magic";
  if (identity.abi_version != kAbiVersion) {
    return "ABI version " + std::to_string(identity.abi_version) + ", not " +
           std::to_string(kAbiVersion);
  }
  const ChannelSizes sizes{identity.slot_count, identity.slot_bytes, identity.core_count};
  if (!sizes.valid()) {
    return std::to_string(sizes.slot_count) + " slots of " + std::to_string(sizes.slot_bytes) +
           " bytes for " + std::to_string(sizes.core_count) + " cores";
  }
  if (identity.arena_offset != sizes.slot_offset(0)) {
    return "an arena at " + std::to_string(identity.arena_offset);
  }
  if (identity.total_bytes != sizes.total_bytes() || identity.total_bytes != size_bytes) {
    return std::to_string(identity.total_bytes) + " bytes in a file of " +
           std::to_string(size_bytes);
  }
  return std::nullopt;
}

}  // namespace

Result<ChannelView> ChannelView::map(int fd) {
  const auto size_bytes = sealed_size_bytes(fd);
  if (!size_bytes) return size_bytes.error();
  auto mapping = Mapping::map(fd, size_bytes.value(), Mapping::Fault::kLater);
  if (!mapping) return mapping.error();
  const auto* header = reinterpret_cast<const ChannelHeader*>(mapping.value().data());
  const ChannelIdentity identity = load_shared(header->identity);
  if (const auto defect = identity_defect(identity, size_bytes.value())) {
    return Error{"the channel's header says " + *defect + "; " + kRemedy};
  }
  return ChannelView(std::move(mapping.value()),
                     {identity.slot_count, identity.slot_bytes, identity.core_count});
}

RingMemory<Submission>& ChannelView::submissions(std::size_t core) const noexcept {
  return *reinterpret_cast<RingMemory<Submission>*>(mapping_.data() + submission_ring_offset(core));
}

RingMemory<Completion>& ChannelView::completions(std::size_t core) const noexcept {
  return *reinterpret_cast<RingMemory<Completion>*>(mapping_.data() + completion_ring_offset(core));
}

}  // namespace gradplane::ipc
