// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "dataplane/model/element_type.h"
#include "dataplane/model/operation.h"
#include "tests/shim/reduced.h"

/// The results of the fake client. Sums add the ranks in ascending order.
namespace gradplane::test {

/// The statement of a round in flight.
struct InFlight {
  std::uint32_t elements = 0;
  ElementType type = ElementType::kFloat32;
  std::uint32_t bucket = 0;
  Operation operation = Operation::kAllReduce;
  std::uint16_t source = 0;
  Reduction reduction = Reduction::kSum;

  std::size_t bytes() const { return elements * element_bytes(type); }
};

inline float half_to_float(std::uint16_t bits) {
  _Float16 half;
  std::memcpy(&half, &bits, sizeof half);
  return static_cast<float>(half);
}

inline std::uint16_t float_to_half(float value) {
  const auto half = static_cast<_Float16>(value);
  std::uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

inline float bfloat_to_float(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

inline std::uint16_t float_to_bfloat(float value) {
  std::uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  return static_cast<std::uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
}

template <typename T>
void add_plain(std::byte* sum, const std::byte* other, std::size_t elements, Reduction reduction) {
  for (std::size_t i = 0; i < elements; ++i) {
    T a, b;
    std::memcpy(&a, sum + i * sizeof(T), sizeof(T));
    std::memcpy(&b, other + i * sizeof(T), sizeof(T));
    a = reduced(a, b, reduction);
    std::memcpy(sum + i * sizeof(T), &a, sizeof(T));
  }
}

inline void sum_half(std::byte* out, const std::vector<const std::byte*>& inputs,
                     const InFlight& round, float (*widen)(std::uint16_t),
                     std::uint16_t (*narrow)(float)) {
  for (std::size_t i = 0; i < round.elements; ++i) {
    float sum = 0;
    for (const std::byte* input : inputs) {
      std::uint16_t bits;
      std::memcpy(&bits, input + i * 2, 2);
      sum = input == inputs[0] ? widen(bits) : reduced(sum, widen(bits), round.reduction);
    }
    const std::uint16_t bits = narrow(sum);
    std::memcpy(out + i * 2, &bits, 2);
  }
}

inline void sum_all(std::byte* out, const std::vector<const std::byte*>& inputs,
                    const InFlight& round) {
  if (round.type == ElementType::kFloat16) {
    return sum_half(out, inputs, round, half_to_float, float_to_half);
  }
  if (round.type == ElementType::kBfloat16) {
    return sum_half(out, inputs, round, bfloat_to_float, float_to_bfloat);
  }
  std::memcpy(out, inputs[0], round.elements * element_bytes(round.type));
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    switch (round.type) {
      case ElementType::kFloat32:
        add_plain<float>(out, inputs[i], round.elements, round.reduction);
        break;
      case ElementType::kFloat64:
        add_plain<double>(out, inputs[i], round.elements, round.reduction);
        break;
      case ElementType::kInt32:
        add_plain<std::int32_t>(out, inputs[i], round.elements, round.reduction);
        break;
      default:
        add_plain<std::int64_t>(out, inputs[i], round.elements, round.reduction);
        break;
    }
  }
}

/// The only rank whose update a rank receives in an exchange. It differs between selections.
inline std::size_t sender_to(std::size_t rank, std::size_t selection, std::size_t world) {
  return (rank + world - 1 - selection % (world - 1)) % world;
}

inline double load(ElementType type, const std::byte* at) {
  if (element_bytes(type) == 2) {
    std::uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return type == ElementType::kFloat16 ? half_to_float(bits) : bfloat_to_float(bits);
  }
  float single;
  double value;
  std::memcpy(&single, at, sizeof single);
  if (type == ElementType::kFloat32) return single;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline void store(ElementType type, std::byte* at, double value) {
  const auto single = static_cast<float>(value);
  if (element_bytes(type) == 2) {
    const std::uint16_t bits =
        type == ElementType::kFloat16 ? float_to_half(single) : float_to_bfloat(single);
    std::memcpy(at, &bits, sizeof bits);
  } else if (type == ElementType::kFloat32) {
    std::memcpy(at, &single, sizeof single);
  } else {
    std::memcpy(at, &value, sizeof value);
  }
}

/// The mean over `inputs`, multiplied by the number of ranks.
inline void exchange(std::byte* out, const std::vector<const std::byte*>& inputs, std::size_t world,
                     const InFlight& round) {
  for (std::size_t i = 0; i < round.elements; ++i) {
    const std::size_t at = i * element_bytes(round.type);
    double sum = 0;
    for (const std::byte* input : inputs) sum += load(round.type, input + at);
    store(round.type, out + at,
          sum * static_cast<double>(world) / static_cast<double>(inputs.size()));
  }
}

/// Writes a rank's result into its slot. If the operation only copies, `inputs` are all ranks'
/// slots.
inline void make_result(std::byte* out, const std::vector<const std::byte*>& inputs,
                        const InFlight& round) {
  if (round.operation == Operation::kBroadcast) {
    std::memcpy(out, inputs[round.source], round.bytes());
  } else if (round.operation == Operation::kAllGather) {
    const std::size_t shard_bytes = round.bytes() / inputs.size();
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      const std::size_t at = rank * shard_bytes;
      std::memcpy(out + at, inputs[rank] + at, shard_bytes);
    }
  } else {
    sum_all(out, inputs, round);
  }
}

/// Writes a rank's shard of a sum. The rest of the slot stays as it was submitted.
inline void scatter(std::byte* out, const std::vector<const std::byte*>& inputs, InFlight round,
                    std::size_t rank, std::size_t world) {
  const std::size_t at = rank * (round.bytes() / world);
  std::vector<const std::byte*> shards;
  for (const std::byte* input : inputs) shards.push_back(input + at);
  round.elements /= static_cast<std::uint32_t>(world);
  sum_all(out + at, shards, round);
}

}  // namespace gradplane::test
