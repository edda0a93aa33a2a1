// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gradplane::session {

/// Appends numbers of up to 32 bits, the highest bit first. The last byte is padded with zeros.
class BitWriter {
 public:
  void write(std::uint32_t value, unsigned bits) {
    while (bits > 0) {
      if (free_ == 0) {
        bytes_.push_back(std::byte{0});
        free_ = 8;
      }
      --bits;
      --free_;
      const auto bit = static_cast<std::byte>(value >> bits & 1U);
      bytes_.back() |= bit << free_;
    }
  }
  std::size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  unsigned free_ = 0;  // bits of the last byte
};

/// Reads such numbers from untrusted bytes. A read past the end returns zero and makes ok() false
/// for good.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint32_t read(unsigned bits) {
    if (bytes_.size() * 8 - at_ < bits) {
      ok_ = false;
      return 0;
    }
    std::uint32_t value = 0;
    for (; bits > 0; --bits, ++at_) {
      const auto byte = std::to_integer<std::uint32_t>(bytes_[at_ / 8]);
      value = value << 1 | (byte >> (7 - at_ % 8) & 1U);
    }
    return value;
  }
  bool ok() const { return ok_; }
  /// Whether only the padding of the last byte is left.
  bool at_end() const {
    if (bytes_.size() * 8 - at_ >= 8) return false;
    BitReader rest = *this;
    return rest.read(static_cast<unsigned>(bytes_.size() * 8 - at_)) == 0;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;  // in bits
  bool ok_ = true;
};

}  // namespace gradplane::session
