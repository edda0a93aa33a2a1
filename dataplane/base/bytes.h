// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gradplane {

static_assert(std::endian::native == std::endian::little, "gradplane runs on little-endian hosts");

template <std::unsigned_integral T>
constexpr T to_network_order(T v) {
  if constexpr (sizeof(T) == 1) return v;
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(v));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(v));
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(v));
}

/// Reads a network-order integer. The caller must have checked that the bytes are there.
template <std::unsigned_integral T>
T load(const std::byte* at) {
  T v;
  std::memcpy(&v, at, sizeof(T));
  return to_network_order(v);
}

template <std::unsigned_integral T>
void store(std::byte* at, T v) {
  const T n = to_network_order(v);
  std::memcpy(at, &n, sizeof(T));
}

/// Reads network-order integers from bytes that others wrote. A read past the end returns zero and
/// makes ok() false for good, so a parser checks once, at its end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  T read() {
    if (bytes_.size() - at_ < sizeof(T)) {
      ok_ = false;
      return 0;
    }
    T v;
    std::memcpy(&v, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return to_network_order(v);
  }

  std::span<const std::byte> rest() const { return bytes_.subspan(at_); }
  bool ok() const { return ok_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

/// Writes network-order integers. A write past the end is dropped and makes ok() false for good.
class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  void write(T v) {
    if (bytes_.size() - at_ < sizeof(T)) {
      ok_ = false;
      return;
    }
    const T n = to_network_order(v);
    std::memcpy(bytes_.data() + at_, &n, sizeof(T));
    at_ += sizeof(T);
  }

  std::size_t size() const { return at_; }
  bool ok() const { return ok_; }

 private:
  std::span<std::byte> bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace gradplane
