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

/// Opens the file again. The kernel counts open file descriptions, so each end needs its own.
Result<UniqueFd> open_again(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  UniqueFd again(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!again)
    return system_error("cannot open the memory of a channel through " + path, errno,
                        "mount /proc, or raise the limit of open files");
  return again;
}

/// The kernel grants a write lease only if no other open file description exists. A mapping keeps
/// its description open, also after the descriptor is closed.
bool lease(int fd) noexcept {
  return ::fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
}

void end_lease(int fd) noexcept {
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
}

Result<UniqueFd> create_sealed_memory(std::uint64_t bytes) {
  UniqueFd fd(::memfd_create("gradplane-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return system_error("cannot create a memfd", errno, "raise the limit of open files");
  const auto size = static_cast<off_t>(bytes);
  // Pages that are touched through a mapping may become huge pages, and pages that the file
  // allocates do not. So the mapping comes first. Allocating the rest now turns a shortage of
  // memory into an error here instead of a signal later.
  if (::ftruncate(fd.get(), size) == 0) (void)Mapping::map(fd.get(), bytes, Mapping::Fault::kNow);
  if (::fallocate(fd.get(), 0, 0, size) != 0) {
    return system_error("cannot allocate a channel of " + std::to_string(bytes) + " bytes", errno,
                        "free memory, raise the memory limit of the daemon, or lower the slots");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return system_error("cannot seal the size of a channel", errno,
                        "use a kernel with memfd seals");
  }
  return fd;
}

/// Added to a size so that the hole covers all of the last page. More than any page size.
constexpr std::uint64_t kBeyondLastPage = 1U << 20U;

/// Creates the memory. It keeps a second open file description, because the kernel does not count
/// the one of memfd_create() itself.
Result<UniqueFd> create_memory(std::uint64_t bytes) {
  auto created = create_sealed_memory(bytes);
  if (!created) return created.error();
  auto counted = open_again(created.value().get());
  if (!counted) return counted.error();
  created.value().reset();
  // A daemon that could never take memory back would have to refuse all ranks after a while.
  if (!lease(counted.value().get())) {
    return system_error("cannot get a lease of the memory of a channel", errno,
                        "set the sysctl fs.leases-enable to 1");
  }
  end_lease(counted.value().get());
  return counted;
}

}  // namespace

Result<Channel> Channel::create(ChannelSizes sizes) {
  if (!sizes.valid()) {
    return Error{"cannot make a channel of " + std::to_string(sizes.slot_count) + " slots of " +
                 std::to_string(sizes.slot_bytes) + " bytes: slots are a power of two from 2 to " +
                 std::to_string(kRoundSlots) + ", bytes a multiple of " +
                 std::to_string(kBlockAlignBytes) + " up to " + std::to_string(kMaxRoundBytes) +
                 ", cores 1 to " + std::to_string(kMaxCores)};
  }
  auto fd = create_memory(sizes.total_bytes());
  if (!fd) return fd.error();
  auto mapping = Mapping::map(fd.value().get(), sizes.total_bytes(), Mapping::Fault::kNow);
  if (!mapping) return mapping.error();
  auto* header = new (mapping.value().data()) ChannelHeader{};
  header->identity = {kChannelMagic,        kAbiVersion,         sizes.slot_count, sizes.slot_bytes,
                      sizes.slot_offset(0), sizes.total_bytes(), sizes.core_count, 0};
  return Channel(std::move(fd.value()), std::move(mapping.value()), sizes);
}

Result<UniqueFd> Channel::open_for_trainer() const {
  return open_again(fd_.get());
}

bool Channel::take_back() noexcept {
  if (!lease(fd_.get())) return false;
  // An O_PATH descriptor keeps the memory alive and is not counted. It cannot be opened during the
  // lease, and later it leads to empty memory.
  const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const auto size = static_cast<off_t>(sizes_.total_bytes() + kBeyondLastPage);
  const bool emptied = ::fallocate(fd_.get(), hole, 0, size) == 0;
  end_lease(fd_.get());
  return emptied;
}

RingMemory<Submission>& Channel::submissions(std::size_t core) const noexcept {
  return *reinterpret_cast<RingMemory<Submission>*>(mapping_.data() + submission_ring_offset(core));
}

RingMemory<Completion>& Channel::completions(std::size_t core) const noexcept {
  return *reinterpret_cast<RingMemory<Completion>*>(mapping_.data() + completion_ring_offset(core));
}

void Channel::beat(std::size_t core) noexcept {
  header().cores[core].beat.store(++beats_[core], std::memory_order_relaxed);
}

}  // namespace gradplane::ipc
