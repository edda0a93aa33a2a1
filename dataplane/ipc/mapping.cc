// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/ipc/mapping.h"

#include <sys/mman.h>

#include <cerrno>

#include "dataplane/ipc/system_error.h"

namespace gradplane::ipc {

Result<Mapping> Mapping::map(int fd, std::size_t bytes, Fault fault) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    return system_error("cannot map a channel of " + std::to_string(bytes) + " bytes", errno,
                        "give the process more memory or address space");
  }
  // Asks for huge pages (sysctl transparent_hugepage/shmem_enabled: advise). Without them, each
  // block of a round needs its own TLB entry. It does no harm if one of these calls fails.
  ::madvise(at, bytes, MADV_HUGEPAGE);
  if (fault == Fault::kNow) ::madvise(at, bytes, MADV_POPULATE_WRITE);
  return Mapping(static_cast<std::byte*>(at), bytes);
}

Mapping::~Mapping() {
  if (data_ == nullptr) return;
  const int saved_errno = errno;
  ::munmap(data_, size_bytes_);
  errno = saved_errno;
}

}  // namespace gradplane::ipc
