// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/base/result.h"
#include "dataplane/ipc/unique_fd.h"

/// How one side of a channel sleeps without missing an entry that the other pushes.
///
///   sleeper                          waker
///   announce_sleep(flag)      D0     push()            D1
///   if ring.empty(): sleep    D0     if is_asleep(flag): ring_doorbell(fd)
///   end_sleep(flag)
///
/// D0 (store the flag, then load the tail) and D1 (store the tail, then load the flag) are all
/// sequentially consistent: at least one side sees what the other stored, so no wake-up is lost.
namespace gradplane::ipc {

inline void announce_sleep(std::atomic<std::uint32_t>& flag) noexcept {
  flag.store(1, std::memory_order_seq_cst);  // D0
}
inline void end_sleep(std::atomic<std::uint32_t>& flag) noexcept {
  flag.store(0, std::memory_order_relaxed);
}
inline bool is_asleep(const std::atomic<std::uint32_t>& flag) noexcept {
  return flag.load(std::memory_order_seq_cst) != 0;  // D1
}

/// Two connected sockets. Two sides that do not trust each other hold one end each. Whatever one
/// side does to its own end, the calls below return at once for the other.
struct Doorbell {
  UniqueFd ring;
  UniqueFd listen;
};
/// Neither end survives exec. Nothing can be sent from `listen` to `ring`.
Result<Doorbell> create_doorbell();
/// Wakes the side that polls the other end. One system call; never blocks, keeps errno.
/// Async-signal-safe.
void ring_doorbell(int ring_fd) noexcept;
/// Makes `listen_fd` unreadable until the next ring, unless the ringing side has made the queue
/// longer. At most two system calls for each of kMaxRingsSilenced; never blocks, keeps errno. False
/// if it cannot be silenced without harm, because the ringing side has passed descriptors along.
/// Then do not poll it any more, and leave closing it to the end of the process.
bool silence_doorbell(int listen_fd) noexcept;
/// More rings than the queue of a doorbell holds.
inline constexpr int kMaxRingsSilenced = 16;

}  // namespace gradplane::ipc
