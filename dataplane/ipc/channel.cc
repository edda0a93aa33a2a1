// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/ipc/channel.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <new>

#include "dataplane/ipc/system_error.h"

namespace gradplane::ipc {
namespace {

Result<UniqueFd> create_sealed_memory(std::uint64_t bytes) {
  UniqueFd fd(::memfd_create("gradplane-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return system_error("cannot create a memfd", errno, "raise the limit of open files");
  // Allocating now turns a shortage of memory into an error here instead of a signal later.
  if (const auto size = static_cast<off_t>(bytes); ::fallocate(fd.get(), 0, 0, size) != 0) {
    return system_error("cannot allocate a channel of " + std::to_string(bytes) + " bytes", errno,
                        "free memory, raise the memory limit of the daemon, or lower the slots");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return system_error("cannot seal the size of a channel", errno,
                        "use a kernel with memfd seals");
  }
  return fd;
}

}  // namespace

Result<Channel> Channel::create(ChannelSizes sizes) {
  if (!sizes.valid()) {
    return Error{"cannot make a channel of " + std::to_string(sizes.slot_count) + " slots of " +
                 std::to_string(sizes.slot_bytes) + " bytes: slots are a power of two from 2 to " +
                 std::to_string(kRoundSlots) + ", bytes a multiple of " +
                 std::to_string(kBlockAlignBytes) + " up to " + std::to_string(kMaxRoundBytes)};
  }
  auto fd = create_sealed_memory(sizes.total_bytes());
  if (!fd) return fd.error();
  auto mapping = Mapping::map(fd.value().get(), sizes.total_bytes(), Mapping::Fault::kNow);
  if (!mapping) return mapping.error();
  auto* header = new (mapping.value().data()) ChannelHeader{};
  header->identity = {kChannelMagic,    kAbiVersion,  sizes.slot_count,
                      sizes.slot_bytes, kArenaOffset, sizes.total_bytes()};
  return Channel(std::move(fd.value()), std::move(mapping.value()), sizes);
}

RingMemory<Submission>& Channel::submissions() const noexcept {
  return *reinterpret_cast<RingMemory<Submission>*>(mapping_.data() + kSubmissionRingOffset);
}

RingMemory<Completion>& Channel::completions() const noexcept {
  return *reinterpret_cast<RingMemory<Completion>*>(mapping_.data() + kCompletionRingOffset);
}

void Channel::beat() noexcept {
  header().daemon_beat.store(++beats_, std::memory_order_relaxed);
}

}  // namespace gradplane::ipc
