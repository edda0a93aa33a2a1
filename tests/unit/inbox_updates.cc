// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstring>
#include <vector>

#include "dataplane/aggregate/inbox.h"
#include "dataplane/model/limits.h"
#include "dataplane/reduce/kernels.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

std::vector<std::byte> all(ElementType type, float value, std::size_t count) {
  std::vector<std::byte> wire(count * element_bytes(type));
  for (std::size_t e = 0; e < count; ++e)
    reduce::kernels_for(type).finish(wire.data() + e * element_bytes(type),
                                     reinterpret_cast<const std::byte*>(&value), 1);
  return wire;
}

float first(ElementType type, const std::vector<std::byte>& wire) {
  float value = 0;
  reduce::kernels_for(type).set(reinterpret_cast<std::byte*>(&value), wire.data(), 1);
  return value;
}

}  // namespace

TEST_CASE("an inbox gives the mean over a rank's update and all that lie there, once") {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat16}) {
    const Geometry g = Geometry::of(type, 1000, kMinBlockBytes, 1);
    aggregate::Inbox inbox(g);
    const std::uint32_t last = g.blocks - 1;
    const std::size_t count = g.elements_in(last);
    inbox.add(last, all(type, 2, count));
    inbox.add(last, all(type, 4, count));
    CHECK(inbox.updates(last) == 2);
    CHECK(inbox.updates(0) == 0);
    std::vector<std::byte> own = all(type, 6, count);
    CHECK(inbox.take(last, own, 10) == 3);
    CHECK(first(type, own) == 40);
    std::vector<std::byte> next = all(type, 6, count);
    CHECK(inbox.take(last, next, 10) == 1);
    CHECK(first(type, next) == 60);
  }
}

TEST_CASE("a sum in an inbox is rounded once") {
  const Geometry g = Geometry::of(ElementType::kFloat16, 1000, kMinBlockBytes, 1);
  aggregate::Inbox inbox(g);
  const std::size_t count = g.elements_in(0);
  // The inbox sums in fp32. In half precision 2048 + 1 would be 2048.
  inbox.add(0, all(ElementType::kFloat16, 2048, count));
  inbox.add(0, all(ElementType::kFloat16, 1, count));
  std::vector<std::byte> own = all(ElementType::kFloat16, 1, count);
  CHECK(inbox.take(0, own, 3) == 3);
  CHECK(first(ElementType::kFloat16, own) == 2050);
}
