// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "dataplane/reduce/kernels.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::reduce;

namespace {

constexpr std::size_t kMaxCount = 70;  // more than two of the longest vectors, and every remainder
constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};

using Bytes = std::vector<std::byte>;

/// Random bits, and now and then a special value in every width: zeros, infinities, quiet and
/// signalling NaNs, subnormals, the largest numbers, and ties of the conversion to half precision.
void fill(Bytes& bytes, std::size_t element_size, std::mt19937_64& random) {
  static constexpr std::uint16_t kHalves[] = {0x0000, 0x8000, 0x7c00, 0xfc00, 0x7c01, 0x7e00,
                                              0xffff, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x7f80,
                                              0x7f81, 0xffc0, 0x0080, 0x007f};
  static constexpr std::uint32_t kFloats[] = {
      0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffffffff,
      0x00000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0x477fefff, 0x477ff000, 0x33000000,
      0x33000001, 0x387fe000, 0x387ff000, 0x3f801000, 0x3f803000, 0x3f808000, 0x3f818000};
  static constexpr std::uint64_t kDoubles[] = {
      0x0000000000000000, 0x8000000000000000, 0x7ff0000000000000, 0xfff0000000000000,
      0x7ff0000000000001, 0x7ff8000000000000, 0xffffffffffffffff, 0x0000000000000001,
      0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff};
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  for (std::size_t at = 0; at + element_size <= bytes.size(); at += element_size) {
    if (random() % 3 != 0) continue;
    const void* special = &kDoubles[random() % std::size(kDoubles)];
    if (element_size == 2) special = &kHalves[random() % std::size(kHalves)];
    if (element_size == 4) special = &kFloats[random() % std::size(kFloats)];
    std::copy_n(static_cast<const std::byte*>(special), element_size,
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

/// Memory at a chosen misalignment with guards around it, so that a stray write is seen.
class Guarded {
 public:
  Guarded(const Bytes& content, std::size_t shift_bytes)
      : offset_(kGuardBytes + shift_bytes),
        size_(content.size()),
        bytes_(content.size() + 2 * kGuardBytes + shift_bytes, kGuard) {
    std::copy(content.begin(), content.end(),
              bytes_.begin() + static_cast<std::ptrdiff_t>(offset_));
  }
  std::byte* data() { return bytes_.data() + offset_; }
  Bytes content() const {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(offset_);
    return Bytes(begin, begin + static_cast<std::ptrdiff_t>(size_));
  }
  bool guards_intact() const {
    const auto is_guard = [](std::byte b) { return b == kGuard; };
    const auto end = static_cast<std::ptrdiff_t>(offset_ + size_);
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset_),
                       is_guard) &&
           std::all_of(bytes_.begin() + end, bytes_.end(), is_guard);
  }

 private:
  std::size_t offset_;
  std::size_t size_;
  Bytes bytes_;
};

enum class Operation { kSet, kAccumulate, kFinish };

Bytes run(const Kernels& kernels, Operation operation, std::size_t count, const Bytes& accumulator,
          const Bytes& wire, std::size_t shift_bytes, bool& guards_intact) {
  Guarded a(accumulator, shift_bytes);
  Guarded w(wire, shift_bytes * 3 % 64);
  if (operation == Operation::kSet) kernels.set(a.data(), w.data(), count);
  if (operation == Operation::kAccumulate) kernels.accumulate(a.data(), w.data(), count);
  if (operation == Operation::kFinish) kernels.finish(w.data(), a.data(), count);
  guards_intact = a.guards_intact() && w.guards_intact();
  Bytes both = a.content();
  const Bytes wire_after = w.content();
  both.insert(both.end(), wire_after.begin(), wire_after.end());
  return both;
}

}  // namespace

TEST_CASE("every variant gives the bits of the scalar reference") {
  std::mt19937_64 random(0x5eed);
  const Operation operations[] = {Operation::kSet, Operation::kAccumulate, Operation::kFinish};
  for (const Variant& variant : supported_variants()) {
    for (const ElementType type : kElementTypes) {
      for (std::size_t count = 0; count <= kMaxCount; ++count) {
        for (const std::size_t shift_bytes : {0, 1, 7, 32, 63}) {
          Bytes accumulator(count * accumulator_bytes(type));
          Bytes wire(count * element_bytes(type));
          fill(accumulator, accumulator_bytes(type), random);
          fill(wire, element_bytes(type), random);
          for (const Operation operation : operations) {
            bool reference_guards = false;
            bool guards = false;
            const Bytes expected = run(scalar_kernels_for(type), operation, count, accumulator,
                                       wire, shift_bytes, reference_guards);
            const Bytes found = run(variant.kernels_for(type), operation, count, accumulator, wire,
                                    shift_bytes, guards);
            INFO(variant.name << " " << element_type_name(type) << " operation "
                              << static_cast<int>(operation) << " count " << count);
            REQUIRE(reference_guards);
            REQUIRE(guards);
            REQUIRE(found == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("every half and bfloat pattern widens alike in every variant") {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  const auto* wire = reinterpret_cast<const std::byte*>(patterns.data());
  for (const Variant& variant : supported_variants()) {
    for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
      Bytes expected(patterns.size() * 4);
      Bytes found(patterns.size() * 4);
      scalar_kernels_for(type).set(expected.data(), wire, patterns.size());
      variant.kernels_for(type).set(found.data(), wire, patterns.size());
      INFO(variant.name << " " << element_type_name(type));
      REQUIRE(found == expected);
    }
  }
}

TEST_CASE("fp32 patterns narrow alike in every variant") {
  std::mt19937_64 random(7);
  // All exponents and signs, with mantissas around the ties of both half types.
  std::vector<std::uint32_t> patterns;
  for (std::uint32_t top = 0; top < 0x200; ++top) {
    for (const std::uint32_t unit : {0x1000u, 0x2000u, 0x8000u, 0x10000u, 0x400000u}) {
      for (std::uint32_t near = 0; near < 3; ++near) {
        patterns.push_back(
            (top << 23) |
            (((static_cast<std::uint32_t>(random()) & ~(unit - 1)) + near - 1) & 0x7fffff));
      }
    }
    for (int i = 0; i < 16; ++i) {
      patterns.push_back((top << 23) | (static_cast<std::uint32_t>(random()) & 0x7fffff));
    }
  }
  const auto* accumulator = reinterpret_cast<const std::byte*>(patterns.data());
  for (const Variant& variant : supported_variants()) {
    for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
      Bytes expected(patterns.size() * 2);
      Bytes found(patterns.size() * 2);
      scalar_kernels_for(type).finish(expected.data(), accumulator, patterns.size());
      variant.kernels_for(type).finish(found.data(), accumulator, patterns.size());
      INFO(variant.name << " " << element_type_name(type));
      REQUIRE(found == expected);
    }
  }
}
