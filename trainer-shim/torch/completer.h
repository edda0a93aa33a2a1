// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <functional>

namespace gradplane::shim {

/// Runs `task` soon on a thread of the process's completer. A completed Work runs its owner's
/// callbacks, and a callback may wait for another operation (PowerSGD's hook does), so no progress
/// thread may run one, and a completer that is busy must not hold up the next: threads are added as
/// needed, up to kMaxCompleterThreads. Any thread.
void complete_soon(std::function<void()> task);

/// In a child of fork(), which has none of the threads.
void forget_completer_after_fork();

inline constexpr int kMaxCompleterThreads = 32;

}  // namespace gradplane::shim
