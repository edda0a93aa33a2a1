// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory_resource>

namespace gradplane::daemon {

/// Memory in which large blocks lie in huge pages of their own, where the kernel has some: with
/// pages of 4 KiB the sums of a few rounds need more entries than a processor's TLB holds. Small
/// blocks come from new. Any thread; throws std::bad_alloc. One for the whole process.
std::pmr::memory_resource& huge_pages();

}  // namespace gradplane::daemon
