// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gradplane::protocol {

/// The secret that the ranks of one job share. It names the job, and whoever has it may join.
using JobKey = std::array<std::byte, 16>;

/// 32 lower-case hex digits.
std::string to_hex(const JobKey& key);
/// The key, or nothing unless `text` is exactly 32 hex digits.
std::optional<JobKey> job_key_from_hex(std::string_view text);

/// The job's number in data packets and between the planes; never 0. It is the same on every node,
/// and tells nothing about the key. Two live jobs may get the same number, so the code that admits
/// jobs must check.
std::uint32_t job_id_of(const JobKey& key);

}  // namespace gradplane::protocol
