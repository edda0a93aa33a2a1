// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/rules.h"

namespace gradplane::bounds {
namespace {

constexpr std::array<std::string_view, kPresets> kPresetNames = {"exact", "ltp", "mlt", "plot",
                                                                 "auto"};
constexpr std::array<std::string_view, kKinds> kKindNames = {"bias", "norm", "embedding", "first",
                                                             "last"};
static_assert(kPresets == static_cast<std::size_t>(Preset::kAuto) + 1);
static_assert(kKinds == static_cast<std::size_t>(Kind::kLast) + 1);

}  // namespace

std::string_view name_of(Preset preset) {
  return kPresetNames[static_cast<std::size_t>(preset)];
}
std::string_view name_of(Kind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

}  // namespace gradplane::bounds
