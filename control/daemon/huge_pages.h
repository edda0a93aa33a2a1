// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory_resource>

namespace gradplane::daemon {

/// The memory resource of this process that gives large blocks huge pages of their own, where the
/// kernel has some. With pages of 4 KiB the sums of a few rounds need more entries than the TLB of
/// a processor has. Small blocks come from new. Any thread; throws std::bad_alloc.
std::pmr::memory_resource& huge_pages();

}  // namespace gradplane::daemon
