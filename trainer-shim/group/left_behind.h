// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::shim {

/// In a child of fork(): keeps an object that the child replaces, and never frees it. A thread of
/// the parent may have been changing the object at the fork, so its destructor must not run. The
/// object stays reachable, so that a leak checker does not report it.
void leave_behind(const void* object);

}  // namespace gradplane::shim
