// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "dataplane/port/port.h"

namespace gradplane::daemon {

/// Memory that the port may read where it lies: the arenas of ranks, and the sums of jobs. A NIC
/// may still read memory that nobody else needs any more, so such memory is kept until the port
/// lets go of it. Any thread.
class LentMemory {
 public:
  explicit LentMemory(port::Port& port) : port_(port) {}
  /// Lets go of all memory that is kept. The port must have been closed, or must be idle for ever.
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  /// Lends memory that begins with a page. Whatever else is in its last page may be read, too.
  /// While the port cannot have it, payloads in it are copied; see take_warning().
  void add(std::span<const std::byte> memory);
  /// No payload lies in the memory any more. Calls `let_go` once the port does not read it either:
  /// now, or in a later retry(), or in the destructor.
  void remove(std::span<const std::byte> memory, std::function<void()> let_go);
  /// Asks the port again for the memory that is kept. Once it has let go of some, offers it what it
  /// could not have before. Call it now and then.
  void retry();
  /// What a person should know of memory that the port could not have; said once.
  std::optional<std::string> take_warning();
  std::size_t kept_count() const;

 private:
  struct Kept {
    std::span<const std::byte> memory;
    std::function<void()> let_go;
  };
  void offer_refused();

  port::Port& port_;
  mutable std::mutex mutex_;
  std::list<Kept> kept_;
  std::list<std::span<const std::byte>> refused_;
  bool has_room_ = false;  // the port has let go of memory since it refused some
  std::optional<std::string> warning_;
  bool has_warned_ = false;
};

}  // namespace gradplane::daemon
