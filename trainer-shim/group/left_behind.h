// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::shim {

/// In a child of fork(): keeps, and never frees, an object that the child replaces by one of its
/// own. A thread of the parent may have been changing it at the fork, so no destructor may run. It
/// stays reachable, so that a leak checker reports only what is lost by mistake.
void leave_behind(const void* object);

}  // namespace gradplane::shim
