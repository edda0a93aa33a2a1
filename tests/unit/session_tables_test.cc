// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/session/bucket_tables.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;

namespace {

api::BucketBounds table(std::uint32_t bucket, std::size_t tensors, std::size_t name_bytes = 8) {
  api::BucketBounds out{bucket, ElementType::kFloat32, 0, {}};
  for (std::size_t t = 0; t < tensors; ++t) {
    std::string name = std::to_string(t);
    name.resize(name_bytes, 'n');
    out.tensors.push_back({name, out.elements + 1, 10, 0.25F, api::BoundReason::kPattern, "*",
                           kWireTypes[t % kWireTypes.size()]});
    out.elements += 11;
  }
  return out;
}

TablePart part(std::uint32_t bucket, std::uint32_t total, std::uint32_t first,
               std::vector<std::pair<std::uint32_t, std::uint32_t>> places) {
  TablePart out{bucket, ElementType::kFloat32, 0, total, first, {}};
  for (const auto& [offset, elements] : places) {
    out.tensors.push_back({"", offset, elements, 0, api::BoundReason::kExact, ""});
  }
  return out;
}

std::string error_of(TableCollector& collector, TablePart part) {
  const auto result = collector.add(std::move(part));
  return result.ok() ? "" : result.error().message;
}

}  // namespace

TEST_CASE("a table comes through in parts, unchanged") {
  for (const std::size_t tensors : {std::size_t{1}, std::size_t{700}, kMaxTensorsPerBucket}) {
    const api::BucketBounds sent = table(7, tensors, 40);
    TableCollector collector;
    std::optional<api::BucketBounds> got;
    std::size_t parts = 0;
    for (const std::vector<std::byte>& bytes : encode_table(sent)) {
      CHECK(bytes.size() <= protocol::kMaxBucketPartBytes);
      REQUIRE(!got);
      auto decoded = decode_table_part(bytes);
      REQUIRE(decoded.ok());
      auto added = collector.add(std::move(decoded.value()));
      REQUIRE(added.ok());
      got = std::move(added.value());
      ++parts;
    }
    REQUIRE(got);
    CHECK(parts > tensors / 400);
    CHECK(got->bucket == 7);
    CHECK(got->elements == sent.elements);
    REQUIRE(got->tensors.size() == tensors);
    for (const std::size_t t : {std::size_t{0}, tensors / 2, tensors - 1}) {
      CHECK(got->tensors[t].name == sent.tensors[t].name);
      CHECK(got->tensors[t].offset_elements == sent.tensors[t].offset_elements);
      CHECK(got->tensors[t].elements == 10);
      CHECK(got->tensors[t].bound == 0.25F);
      CHECK(got->tensors[t].why == api::BoundReason::kPattern);
      CHECK(got->tensors[t].rule == "*");
      CHECK(got->tensors[t].wire == sent.tensors[t].wire);
    }
  }
}

TEST_CASE("texts that are too long are cut, and hold no control characters") {
  api::BucketBounds sent = table(1, 1);
  sent.tensors[0].name = std::string(1000, 'x') + "\n";
  sent.tensors[0].rule = "a\x1b[31m" + std::string(1000, 'y');
  const auto decoded = decode_table_part(encode_table(sent).at(0));
  REQUIRE(decoded.ok());
}

TEST_CASE("a part that is cut, goes on or makes no sense is refused") {
  const std::vector<std::byte> good = encode_table(table(1, 3)).at(0);
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO("cut to " << size);
    CHECK_FALSE(decode_table_part(std::span(good).first(size)).ok());
  }
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte{0});
  CHECK_FALSE(decode_table_part(longer).ok());

  constexpr std::size_t kTypeAt = 4;
  constexpr std::size_t kBoundAt = 15 + 8;
  constexpr std::size_t kWhyAt = kBoundAt + 4;
  const auto changed = [&](std::size_t at, std::vector<std::uint8_t> to) {
    std::vector<std::byte> bytes = good;
    for (std::size_t i = 0; i < to.size(); ++i) bytes[at + i] = static_cast<std::byte>(to[i]);
    return decode_table_part(bytes).ok();
  };
  CHECK(changed(kTypeAt, {4}));
  CHECK_FALSE(changed(kTypeAt, {0}));
  CHECK_FALSE(changed(kTypeAt, {7}));
  CHECK(changed(kBoundAt, {0x3f, 0, 0, 0}));           // 0.5
  CHECK_FALSE(changed(kBoundAt, {0x3f, 0, 0, 1}));     // a little more than 0.5
  CHECK_FALSE(changed(kBoundAt, {0xbf, 0, 0, 0}));     // negative
  CHECK_FALSE(changed(kBoundAt, {0x7f, 0xc0, 0, 0}));  // NaN
  CHECK_FALSE(changed(kBoundAt, {0x7f, 0x80, 0, 0}));  // infinite
  CHECK(changed(kWhyAt, {5}));
  CHECK_FALSE(changed(kWhyAt, {6}));
}

TEST_CASE("what no honest sender describes is refused by name") {
  TableCollector collector;
  CHECK(error_of(collector, part(0, 1, 0, {{0, 1}})).find("ids are 1 to") != std::string::npos);
  CHECK(error_of(collector, part(kMaxBuckets + 1, 1, 0, {{0, 1}})).find("ids are") !=
        std::string::npos);
  CHECK(error_of(collector, part(1, 0, 0, {{0, 1}})).find("1 to 16384 tensors") !=
        std::string::npos);
  CHECK_FALSE(error_of(collector, part(1, kMaxTensorsPerBucket + 1, 0, {{0, 1}})).empty());
  CHECK_FALSE(error_of(collector, part(1, 1, 0, {})).empty());
  CHECK_FALSE(error_of(collector, part(1, 1, 0, {{0, 1}, {1, 1}})).empty());
  CHECK_FALSE(error_of(collector, part(1, 2, 1, {{0, 1}, {1, 1}})).empty());
  CHECK(error_of(collector, part(1, 2, 1, {{0, 1}})).find("in order") != std::string::npos);
  for (const auto& places :
       std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>{{{0, 0}},
                                                                         {{0, 2}, {1, 1}},
                                                                         {{5, 1}, {0, 1}},
                                                                         {{0, (4U << 20) / 4 + 1}},
                                                                         {{UINT32_MAX, 1}},
                                                                         {{1, UINT32_MAX}}}) {
    const auto total = static_cast<std::uint32_t>(places.size());
    CHECK(error_of(collector, part(1, total, 0, places)).find("one behind the other") !=
          std::string::npos);
  }
  TablePart small = part(1, 1, 0, {{0, 10}});
  small.elements = 9;
  CHECK(error_of(collector, small).find("as large as") != std::string::npos);
  small.elements = (4U << 20) / 4 + 1;
  CHECK_FALSE(error_of(collector, small).empty());
  // After all these errors a correct part is still taken, once.
  CHECK(error_of(collector, part(1, 1, 0, {{0, (4U << 20) / 4}})).empty());
  CHECK(error_of(collector, part(1, 1, 0, {{0, 1}})).find("a second time") != std::string::npos);
}

TEST_CASE("parts of a table belong together") {
  const auto second = [](TablePart next) {
    TableCollector collector;
    TablePart first = part(1, 3, 0, {{0, 5}});
    first.elements = 20;
    REQUIRE(error_of(collector, first).empty());
    return error_of(collector, std::move(next));
  };
  TablePart good = part(1, 3, 1, {{5, 5}});
  good.elements = 20;
  CHECK(second(good).empty());
  TablePart other = good;
  other.bucket = 2;
  CHECK_FALSE(second(other).empty());
  other = good;
  other.type = ElementType::kFloat16;
  CHECK_FALSE(second(other).empty());
  other = good;
  other.total = 4;
  CHECK_FALSE(second(other).empty());
  for (const std::uint32_t first : {0U, 2U}) {
    other = good;
    other.first = first;
    CHECK_FALSE(second(other).empty());
  }
  other = good;
  other.elements = 30;
  CHECK_FALSE(second(other).empty());
  other = good;
  other.tensors[0].offset_elements = 4;
  CHECK_FALSE(second(other).empty());
  CHECK_FALSE(second(part(2, 1, 0, {{0, 1}})).empty());
}

TEST_CASE("a job has a bounded number of tensors; buckets beyond are left out") {
  TableCollector collector;
  std::size_t taken = 0;
  for (std::uint32_t bucket = 1; bucket <= 6; ++bucket) {
    for (const std::vector<std::byte>& bytes : encode_table(table(bucket, kMaxTensorsPerBucket))) {
      auto added = collector.add(std::move(decode_table_part(bytes).value()));
      REQUIRE(added.ok());
      taken += added.value() ? 1 : 0;
    }
  }
  CHECK(taken * kMaxTensorsPerBucket == kMaxTensorsPerJob);
  CHECK(collector.left_out() == 2);
}
