// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace gradplane::wire {

using Key = std::array<std::byte, 16>;

/// AES-128-GMAC (NIST SP 800-38D) under one key. libipsec-mb computes it, with the widest
/// instructions of the processor, or OpenSSL if that library is missing. Both give the same tags.
/// The constructor prepares the key, which takes a microsecond and a kilobyte, so a plan does it
/// once.
class Gmac {
 public:
  /// Use each nonce only once under a key: with a repeated nonce, others can compute the hash key.
  using Nonce = std::array<std::byte, 12>;
  using Tag = std::array<std::byte, 16>;

  explicit Gmac(const Key& key);
  Gmac(const Gmac&) = delete;
  Gmac& operator=(const Gmac&) = delete;
  ~Gmac();

  /// The tag of `bytes` followed by `more`, of any length. One piece takes less time than two.
  /// Allocates nothing. One thread at a time.
  Tag tag(const Nonce& nonce, std::span<const std::byte> bytes,
          std::span<const std::byte> more = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gradplane::wire
