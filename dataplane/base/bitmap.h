// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradplane {

/// A set of small numbers. Its capacity is fixed when it is built; reset() picks how much of it is
/// in use. No call after construction allocates. Bits past size() are always 0.
class Bitmap {
 public:
  static constexpr std::size_t kWordBits = 64;
  static constexpr std::size_t kNone = SIZE_MAX;

  explicit Bitmap(std::size_t capacity = 0) : words_((capacity + kWordBits - 1) / kWordBits) {}

  /// Empties the set and makes it a set of numbers in [0, size). `size` must be at most the
  /// capacity.
  void reset(std::size_t size) {
    size_ = size;
    for (std::size_t w = 0; w < words_in_use(); ++w) words_[w] = 0;
  }

  bool test(std::size_t i) const { return (words_[i / kWordBits] >> (i % kWordBits) & 1) != 0; }
  void set(std::size_t i) { words_[i / kWordBits] |= bit(i); }
  void clear(std::size_t i) { words_[i / kWordBits] &= ~bit(i); }

  /// Adds the numbers from `begin` to `end` - 1.
  void set_range(std::size_t begin, std::size_t end) {
    while (begin < end) {
      const std::size_t w = begin / kWordBits;
      const std::size_t next = (w + 1) * kWordBits;
      const std::uint64_t from = ~std::uint64_t{0} << (begin % kWordBits);
      const std::uint64_t to = end < next ? bit(end) - 1 : ~std::uint64_t{0};
      words_[w] |= from & to;
      begin = next;
    }
  }

  void set_all() {
    for (std::size_t w = 0; w < words_in_use(); ++w) words_[w] = full_word(w);
  }

  /// The first member at or after `from`; kNone if there is none.
  std::size_t next_set(std::size_t from) const {
    if (from >= size_) return kNone;
    std::size_t w = from / kWordBits;
    std::uint64_t word = words_[w] & (~std::uint64_t{0} << (from % kWordBits));
    while (word == 0) {
      if (++w >= words_in_use()) return kNone;
      word = words_[w];
    }
    return w * kWordBits + static_cast<std::size_t>(std::countr_zero(word));
  }

  std::size_t count() const {
    std::size_t n = 0;
    for (std::size_t w = 0; w < words_in_use(); ++w) {
      n += static_cast<std::size_t>(std::popcount(words_[w]));
    }
    return n;
  }

  std::size_t size() const { return size_; }
  std::size_t words_in_use() const { return (size_ + kWordBits - 1) / kWordBits; }
  std::uint64_t word(std::size_t w) const { return words_[w]; }
  void set_word(std::size_t w, std::uint64_t value) { words_[w] = value & full_word(w); }

  /// The value of word `w` if every number is a member.
  std::uint64_t full_word(std::size_t w) const {
    const std::size_t bits = size_ - w * kWordBits;
    return bits >= kWordBits ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  }

 private:
  static std::uint64_t bit(std::size_t i) { return std::uint64_t{1} << (i % kWordBits); }

  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
};

}  // namespace gradplane
