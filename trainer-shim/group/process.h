// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::shim {

/// Whether a process that ends without having used a group writes a report.
enum class Reports { kAlways, kOfUse };

/// Once in a process, before its first group: from here on groups survive fork(), and end with the
/// process. `in_child` forgets what the adapter itself keeps, in a child of fork(); it may be null.
void begin_process(Reports reports, void (*in_child)());

/// This process uses a group. A child of fork() that uses none writes no report, which would
/// overwrite its parent's. Any thread.
void note_use();

}  // namespace gradplane::shim
