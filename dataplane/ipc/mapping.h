// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <utility>

#include "dataplane/base/result.h"

namespace gradplane::ipc {

/// A shared, writable mapping of the first `bytes` of a file. The destructor unmaps it.
class Mapping {
 public:
  enum class Fault { kNow, kLater };

  static Result<Mapping> map(int fd, std::size_t bytes, Fault fault);
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~Mapping();

  std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }

 private:
  Mapping(std::byte* data, std::size_t bytes) noexcept : data_(data), size_bytes_(bytes) {}

  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace gradplane::ipc
