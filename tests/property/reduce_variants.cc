// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "dataplane/reduce/kernels.h"
#include "dataplane/reduce/wire_codec.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::reduce;

namespace {

/// More than two passes of the longest loop (four vectors of 16 elements), with every remainder.
constexpr std::size_t kMaxCount = 150;
constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};

using Bytes = std::vector<std::byte>;

/// Random bits. Sometimes there is a special value of some width: zeros, infinities, quiet and
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

/// Memory at a chosen misalignment, with guard bytes around it that show stray writes.
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

enum class Operation { kSet, kAccumulate, kAdd, kFinish };

/// The inputs of an operation. All are at misaligned addresses.
struct Input {
  Bytes accumulator;
  Bytes wire;
  Bytes more;
  std::size_t count = 0;
  std::size_t shift_bytes = 0;
};

/// Runs an operation, and returns all memory that it may write. REQUIREs that guards have not
/// changed.
Bytes run(const Kernels& kernels, Operation operation, const Input& in) {
  Guarded accumulator(in.accumulator, in.shift_bytes);
  Guarded wire(in.wire, in.shift_bytes * 3 % 64);
  Guarded more(in.more, in.shift_bytes * 5 % 64);
  switch (operation) {
    case Operation::kSet:
      kernels.set(accumulator.data(), wire.data(), in.count);
      break;
    case Operation::kAccumulate:
      kernels.accumulate(accumulator.data(), wire.data(), in.count);
      break;
    case Operation::kAdd:
      kernels.add(accumulator.data(), wire.data(), more.data(), in.count);
      break;
    case Operation::kFinish:
      kernels.finish(wire.data(), accumulator.data(), in.count);
      break;
  }
  Bytes all;
  for (const Guarded* memory : {&accumulator, &wire, &more}) {
    REQUIRE(memory->guards_intact());
    const Bytes content = memory->content();
    all.insert(all.end(), content.begin(), content.end());
  }
  return all;
}

/// Calls `check` with random inputs for a type, of each length and at several misalignments.
template <typename Check>
void for_inputs(std::size_t accumulator_size, std::size_t wire_size, std::size_t header,
                std::mt19937_64& random, const Check& check) {
  for (std::size_t count = 0; count <= kMaxCount; ++count) {
    for (const std::size_t shift_bytes : {0, 1, 7, 32, 63}) {
      Input in;
      in.count = count;
      in.shift_bytes = shift_bytes;
      in.accumulator.resize(count * accumulator_size);
      in.wire.resize(header + count * wire_size);
      in.more.resize(in.wire.size());
      fill(in.accumulator, accumulator_size, random);
      fill(in.wire, header == 0 ? wire_size : header, random);
      fill(in.more, header == 0 ? wire_size : header, random);
      check(in);
    }
  }
}

void check_element_types(const Variant& variant) {
  std::mt19937_64 random(0x5eed);
  for (const ElementType type : kElementTypes) {
    for_inputs(accumulator_bytes(type), element_bytes(type), 0, random, [&](const Input& in) {
      for (const Operation operation :
           {Operation::kSet, Operation::kAccumulate, Operation::kAdd, Operation::kFinish}) {
        INFO(variant.name << " " << element_type_name(type) << " operation "
                          << static_cast<int>(operation) << " count " << in.count);
        REQUIRE(run(variant.kernels_for(type), operation, in) ==
                run(kScalar.kernels_for(type), operation, in));
      }
    });
  }
}

/// Adds bytes to an FNV-1a hash.
void digest(std::uint64_t& hash, const Bytes& bytes) {
  for (const std::byte b : bytes) {
    hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3;
  }
}

/// Checks all operations but finish(), which must not get some blocks.
void check_wire_types(const Variant& variant) {
  std::mt19937_64 random(0xb10c);
  for (const WireType type : kWireTypes) {
    const std::size_t header = wire_bytes(type, ElementType::kFloat32, 0);
    const std::size_t wire_size = wire_bytes(type, ElementType::kFloat32, 1) - header;
    for_inputs(sizeof(float), wire_size, header, random, [&](const Input& in) {
      INFO(variant.name << " " << wire_type_name(type) << " count " << in.count);
      REQUIRE(variant.largest_magnitude(in.accumulator.data(), in.count) ==
              kScalar.largest_magnitude(in.accumulator.data(), in.count));
      for (const Operation operation : {Operation::kSet, Operation::kAccumulate, Operation::kAdd}) {
        REQUIRE(run(variant.kernels_for(type), operation, in) ==
                run(kScalar.kernels_for(type), operation, in));
      }
    });
  }
}

}  // namespace

TEST_CASE("every variant gives the bits of the scalar reference") {
  for (const Variant* variant : supported_variants()) check_element_types(*variant);
}

TEST_CASE("every variant gives the bits of the scalar reference for wire types") {
  for (const Variant* variant : supported_variants()) check_wire_types(*variant);
}

// Nodes of one job may have different processors. tests/property/reduce_aarch64 runs this on
// another one.
TEST_CASE("every processor gives the bits that these digests were made of") {
  std::mt19937_64 random(0xd16e57);
  std::uint64_t elements = 0xcbf29ce484222325;
  for (const ElementType type : kElementTypes) {
    for_inputs(accumulator_bytes(type), element_bytes(type), 0, random, [&](const Input& in) {
      for (const Operation operation :
           {Operation::kSet, Operation::kAccumulate, Operation::kAdd, Operation::kFinish}) {
        digest(elements, run(kernels_for(type), operation, in));
      }
    });
  }
  CHECK(elements == 0xdcedb52546990d7a);
  std::mt19937_64 more_random(0xd16e57);
  std::uint64_t others = 0xcbf29ce484222325;
  for (const Reduction reduction : {Reduction::kMax, Reduction::kMin, Reduction::kProduct}) {
    for (const ElementType type : kElementTypes) {
      for_inputs(accumulator_bytes(type), element_bytes(type), 0, more_random,
                 [&](const Input& in) {
                   const Kernels& kernels = kernels_for(type, reduction);
                   digest(others, run(kernels, Operation::kAccumulate, in));
                   digest(others, run(kernels, Operation::kFinish, in));
                 });
    }
  }
  CHECK(others == 0xc623b8c6c062ca1b);
  std::uint64_t int8 = 0xcbf29ce484222325;
  for_inputs(sizeof(float), 1, kScaleBytes, random, [&](Input in) {
    // Packets never have a scale that is not finite.
    for (Bytes* block : {&in.wire, &in.more}) (*block)[kScaleBytes - 1] &= std::byte{0x3f};
    const Kernels& kernels = kernels_for(WireType::kInt8);
    for (const Operation operation : {Operation::kSet, Operation::kAccumulate, Operation::kAdd}) {
      digest(int8, run(kernels, operation, in));
    }
    if (!can_hold(WireType::kInt8, in.accumulator.data(), in.count)) return;
    digest(int8, run(kernels, Operation::kFinish, in));
  });
  CHECK(int8 == 0xc58324c6a0336f18);
}

TEST_CASE("every variant rounds alike whatever a wire type can hold") {
  std::mt19937_64 random(0x10ad);
  std::array<std::size_t, kWireTypes.size()> held{};
  for (const Variant* variant : supported_variants()) {
    for (const WireType type : kWireTypes) {
      for (int trial = 0; trial < 6000; ++trial) {
        const std::size_t count = random() % kMaxCount;
        Bytes values(count * sizeof(float));
        // All values of a block have about the same size, and some are ties in their last place.
        // Sometimes the bits are random.
        const int exponent = static_cast<int>(random() % 250) - 140;
        for (std::size_t i = 0; i < count; ++i) {
          const auto whole = static_cast<double>(static_cast<std::int64_t>(random() % 1025) - 512);
          const auto value = static_cast<float>(std::ldexp(whole / 2, exponent));
          std::memcpy(values.data() + i * sizeof value, &value, sizeof value);
        }
        if (trial % 8 == 0) fill(values, sizeof(float), random);
        if (!can_hold(type, values.data(), count)) continue;
        ++held[static_cast<std::size_t>(type)];
        Input in{.accumulator = values, .wire = {}, .more = {}, .count = count, .shift_bytes = 0};
        in.wire.resize(wire_bytes(type, ElementType::kFloat32, count));
        in.shift_bytes = static_cast<std::size_t>(trial) % 64;
        INFO(variant->name << " " << wire_type_name(type) << " count " << count);
        REQUIRE(run(variant->kernels_for(type), Operation::kFinish, in) ==
                run(kScalar.kernels_for(type), Operation::kFinish, in));
      }
    }
  }
  for (const std::size_t blocks : held) CHECK(blocks > 1000);
}

TEST_CASE("every half and bfloat pattern widens alike in every variant") {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  const auto* wire = reinterpret_cast<const std::byte*>(patterns.data());
  for (const Variant* variant : supported_variants()) {
    for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
      Bytes expected(patterns.size() * 4);
      Bytes found(patterns.size() * 4);
      kScalar.kernels_for(type).set(expected.data(), wire, patterns.size());
      variant->kernels_for(type).set(found.data(), wire, patterns.size());
      INFO(variant->name << " " << element_type_name(type));
      REQUIRE(found == expected);
    }
  }
}

TEST_CASE("fp32 patterns narrow alike in every variant") {
  std::mt19937_64 random(7);
  // All exponents and signs, with mantissas near the ties of both half types.
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
  for (const Variant* variant : supported_variants()) {
    for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
      Bytes expected(patterns.size() * 2);
      Bytes found(patterns.size() * 2);
      kScalar.kernels_for(type).finish(expected.data(), accumulator, patterns.size());
      variant->kernels_for(type).finish(found.data(), accumulator, patterns.size());
      INFO(variant->name << " " << element_type_name(type));
      REQUIRE(found == expected);
    }
  }
}
