// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "dataplane/reduce/half.h"
#include "dataplane/reduce/kernels.h"

namespace gradplane::reduce {
namespace {

/// An element type: how it lies on the wire, and in which type it is summed.
template <typename T>
struct Plain {
  using Wire = T;
  using Accumulator = T;
  static Accumulator widen(Wire w) { return w; }
  static Wire narrow(Accumulator a) { return a; }
};

struct Half {
  using Wire = std::uint16_t;
  using Accumulator = float;
  static Accumulator widen(Wire w) { return half_to_float(w); }
  static Wire narrow(Accumulator a) { return float_to_half(a); }
};

struct Bfloat {
  using Wire = std::uint16_t;
  using Accumulator = float;
  static Accumulator widen(Wire w) { return bfloat_to_float(w); }
  static Wire narrow(Accumulator a) { return float_to_bfloat(a); }
};

template <typename T>
T load(const std::byte* from, std::size_t index) {
  T v;
  std::memcpy(&v, from + index * sizeof(T), sizeof(T));
  return v;
}

template <typename T>
void store(std::byte* to, std::size_t index, T v) {
  std::memcpy(to + index * sizeof(T), &v, sizeof(T));
}

template <typename T>
T add(T a, T b) {
  if constexpr (std::integral<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    const T sum = a + b;
    return sum != sum ? std::numeric_limits<T>::quiet_NaN() : sum;
  }
}

template <typename Element>
void set(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(accumulator, i, Element::widen(load<typename Element::Wire>(wire, i)));
  }
}

template <typename Element>
void accumulate(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
  using Accumulator = typename Element::Accumulator;
  for (std::size_t i = 0; i < count; ++i) {
    const Accumulator contribution = Element::widen(load<typename Element::Wire>(wire, i));
    store(accumulator, i, add(load<Accumulator>(accumulator, i), contribution));
  }
}

template <typename Element>
void finish(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(wire, i, Element::narrow(load<typename Element::Accumulator>(accumulator, i)));
  }
}

template <typename T>
void copy(std::byte* to, const std::byte* from, std::size_t count) noexcept {
  if (count != 0) std::memcpy(to, from, count * sizeof(T));  // memcpy wants pointers, even for none
}

template <typename T>
constexpr Kernels kPlain{copy<T>, accumulate<Plain<T>>, copy<T>};
template <typename Element>
constexpr Kernels kNarrow{set<Element>, accumulate<Element>, finish<Element>};

}  // namespace

const Kernels& scalar_kernels_for(ElementType type) noexcept {
  switch (type) {
    case ElementType::kFloat32:
      return kPlain<float>;
    case ElementType::kFloat64:
      return kPlain<double>;
    case ElementType::kFloat16:
      return kNarrow<Half>;
    case ElementType::kBfloat16:
      return kNarrow<Bfloat>;
    case ElementType::kInt32:
      return kPlain<std::int32_t>;
    case ElementType::kInt64:
      return kPlain<std::int64_t>;
  }
  return kPlain<std::int64_t>;
}

}  // namespace gradplane::reduce
