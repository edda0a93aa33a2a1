// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <functional>

namespace gradplane::shim {

/// Runs `task` soon on a thread of the completer of this process. A completed Work runs the
/// callbacks of its owner, and a callback may wait for another operation (PowerSGD's hook does). So
/// no progress thread may run a callback, and a busy completer thread must not delay the next
/// callback. The completer therefore adds threads as needed, up to kMaxCompleterThreads. Any thread
/// may call this.
void complete_soon(std::function<void()> task);

/// For a child of fork(), which has none of the threads.
void forget_completer_after_fork();

inline constexpr int kMaxCompleterThreads = 32;

}  // namespace gradplane::shim
