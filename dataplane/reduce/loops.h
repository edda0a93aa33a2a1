// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dataplane/reduce/half.h"
#include "dataplane/reduce/kernels.h"

/// Kernels as simple loops over elements of any alignment, which compilers vectorise.
namespace gradplane::reduce {

/// An element type: its type on the wire, and the type in which it is summed.
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

template <typename Element>
void set(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(accumulator, i, Element::widen(load<typename Element::Wire>(wire, i)));
  }
}

template <typename Element, typename Combine>
void accumulate(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
  using Accumulator = typename Element::Accumulator;
  for (std::size_t i = 0; i < count; ++i) {
    const Accumulator contribution = Element::widen(load<typename Element::Wire>(wire, i));
    store(accumulator, i, Combine::of(load<Accumulator>(accumulator, i), contribution));
  }
}

template <typename Element, typename Combine>
void combine_two(std::byte* accumulator, const std::byte* wire, const std::byte* more,
                 std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(accumulator, i,
          Combine::of(Element::widen(load<typename Element::Wire>(wire, i)),
                      Element::widen(load<typename Element::Wire>(more, i))));
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
  // Memcpy requires valid pointers even for no bytes.
  if (count != 0) std::memcpy(to, from, count * sizeof(T));
}

/// Whether the wire type is the accumulator type, so that elements are copied.
template <typename Element>
inline constexpr bool kIsPlain =
    std::is_same_v<typename Element::Wire, typename Element::Accumulator>;

/// Combine::of(a, b) combines two accumulators.
template <typename Element, typename Combine>
inline constexpr Kernels kKernels{
    kIsPlain<Element> ? copy<typename Element::Wire> : set<Element>, accumulate<Element, Combine>,
    combine_two<Element, Combine>,
    kIsPlain<Element> ? copy<typename Element::Wire> : finish<Element>};

}  // namespace gradplane::reduce
