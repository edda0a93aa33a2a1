// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::shim {

/// Which processes write a report at their end: all, or only those that have used a group.
enum class Reports { kAlways, kOfUse };

/// Call it once in a process, before its first group. It makes groups survive fork() and end with
/// the process. In a child of fork(), `in_child` is called, so that the adapter can forget its own
/// state; it may be null.
void begin_process(Reports reports, void (*in_child)());

/// Notes that this process uses a group. A child of fork() that uses none must not write a report,
/// because it would overwrite its parent's. Any thread.
void note_use();

}  // namespace gradplane::shim
