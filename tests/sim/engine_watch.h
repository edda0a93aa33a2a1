// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <utility>

/// Tells a program that watches what engines do when it is an engine's own code that runs.
namespace gradplane::sim {

struct EngineWatch {
  void (*on_change)(bool engine_runs) = nullptr;  // null: nobody watches
  bool engine_runs = false;
  std::uint64_t calls_from_elsewhere = 0;  // of the simulator's code, while no engine ran

  /// Returns what was before.
  bool set(bool runs) {
    const bool before = std::exchange(engine_runs, runs);
    if (on_change != nullptr && before != runs) on_change(runs);
    return before;
  }
};
inline thread_local EngineWatch engine_watch;

/// While it lives, an engine's code runs (kEngine), or code of the simulator that the engine has
/// called (kSimulator).
class Running {
 public:
  enum class Code : bool { kSimulator, kEngine };
  explicit Running(Code code) : before_(engine_watch.set(code == Code::kEngine)) {
    if (code == Code::kSimulator && !before_) ++engine_watch.calls_from_elsewhere;
  }
  ~Running() { engine_watch.set(before_); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const bool before_;
};

}  // namespace gradplane::sim
