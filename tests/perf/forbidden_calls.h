// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::testing {

/// Begins to count what the poll loop must not do: allocations and locks (mutexes and read-write
/// locks) of this process, and system calls of the calling thread.
void count_forbidden_calls();

/// Between these two calls nothing is counted. Only the thread that began to count calls them.
void pause_count();
void resume_count();

/// Ends the count, and prints the numbers. Returns true if there were none and the counters work:
/// it makes one call of each kind to try them. Where the kernel cannot count system calls, it says
/// so, and counts the rest.
[[nodiscard]] bool no_forbidden_calls();

}  // namespace gradplane::testing
