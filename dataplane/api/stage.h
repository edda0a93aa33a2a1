// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradplane::api {

/// The parts of a turn of the poll loop, in their order.
enum class Stage : std::uint8_t { kReceive, kSubmit, kSum, kReport, kTransmit, kHousekeep };
inline constexpr std::array<std::string_view, 6> kStageNames = {"receive", "submit",   "sum",
                                                                "report",  "transmit", "housekeep"};
static_assert(static_cast<std::size_t>(Stage::kHousekeep) + 1 == kStageNames.size());

/// Nanoseconds in each stage.
using StageTimes = std::array<std::uint64_t, kStageNames.size()>;

}  // namespace gradplane::api
