// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/bucket_layout.h"

#include <functional>
#include <string_view>
#include <utility>

namespace gradplane::shim {
namespace {

/// The keys of DDP's buckets count from 1.
constexpr std::uint64_t kKeysOfSums = std::uint64_t{1} << 63;

}  // namespace

std::shared_ptr<const BucketLayout> layout_of_sum(std::string name, std::uint64_t elements,
                                                  ElementType type) {
  auto layout = std::make_shared<BucketLayout>();
  layout->is_sum = true;
  layout->key = kKeysOfSums | elements << 8 | static_cast<std::uint8_t>(type);
  layout->version = std::hash<std::string_view>{}(name);
  layout->tensors.push_back({std::move(name), 0, elements});
  return layout;
}

}  // namespace gradplane::shim
