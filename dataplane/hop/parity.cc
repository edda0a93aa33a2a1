// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/parity.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "dataplane/base/assert.h"

namespace gradplane::hop {
namespace {

/// Rows cover this many standard deviations more than the expected losses.
constexpr double kParityMargin = 3.5;

std::uint8_t* bytes_of(std::byte* at) {
  return reinterpret_cast<std::uint8_t*>(at);
}

/// The library takes its input as a pointer to non-const, but does not write to it.
std::uint8_t* bytes_of(const std::byte* at) {
  return bytes_of(const_cast<std::byte*>(at));
}

}  // namespace

std::uint8_t parity_factor(std::uint32_t block, std::size_t row) {
  // The finaliser of MurmurHash3.
  std::uint32_t h = block * static_cast<std::uint32_t>(kMaxParityRows);
  h += static_cast<std::uint32_t>(row) + 1;
  h = (h ^ h >> 16) * 0x85ebca6b;
  h = (h ^ h >> 13) * 0xc2b2ae35;
  h ^= h >> 16;
  return static_cast<std::uint8_t>(1 + h % 255);
}

std::size_t parity_rows_for(std::uint32_t blocks, double loss, std::size_t blocks_per_packet) {
  const double lost = loss * blocks;
  const auto at_once = static_cast<double>(blocks_per_packet);
  const double rows = std::ceil(lost + kParityMargin * std::sqrt(lost * at_once)) + at_once;
  if (rows > static_cast<double>(kMaxParityRows)) return 0;
  const std::size_t most = std::max(1U, blocks / kParityShare);
  return std::min(static_cast<std::size_t>(rows), most);
}

Parity::Parity(std::byte* store, std::size_t block_bytes, std::size_t max_blocks)
    : store_(store), block_bytes_(block_bytes), added_(max_blocks) {}

void Parity::open(std::size_t rows, std::uint32_t blocks) {
  GP_ASSERT(rows > 0 && rows <= kMaxParityRows);
  std::memset(store_, 0, rows * block_bytes_);
  added_.reset(blocks);
  added_count_ = 0;
  rows_ = rows;
  types_ = {};
  narrowest_ = WireType::kElements;
  longest_bytes_ = 0;
  taken_ = 0;
}

void Parity::add(std::uint32_t block, std::span<const std::byte> bytes, WireType type) {
  GP_ASSERT(bytes.size() <= block_bytes_);
  if (rows_ == 0 || added_.test(block)) return;
  added_.set(block);
  ++added_count_;
  narrowest_ = narrower(narrowest_, type);
  longest_bytes_ = std::max(longest_bytes_, bytes.size());
  std::array<std::uint8_t, kMaxParityRows> factors{};
  std::array<std::uint8_t*, kMaxParityRows> rows{};
  std::array<std::uint8_t, kMaxParityRows * 32> tables{};
  for (std::size_t r = 0; r < rows_; ++r) {
    factors[r] = parity_factor(block, r);
    rows[r] = bytes_of(store_ + r * block_bytes_);
    types_[r] ^= gf_mul(factors[r], static_cast<std::uint8_t>(type));
  }
  const int count = static_cast<int>(rows_);
  ec_init_tables(1, count, factors.data(), tables.data());
  ec_encode_data_update(static_cast<int>(bytes.size()), 1, count, 0, tables.data(),
                        bytes_of(bytes.data()), rows.data());
}

bool Parity::take_row(std::size_t r, std::span<const std::byte> bytes, std::uint8_t types) {
  GP_ASSERT(r < rows_ && bytes.size() <= block_bytes_);
  if (has_row(r)) return false;
  taken_ |= std::uint64_t{1} << r;
  std::byte* at = store_ + r * block_bytes_;
  for (std::size_t i = 0; i < bytes.size(); ++i) at[i] ^= bytes[i];
  types_[r] ^= types;
  return true;
}

std::uint32_t Parity::rows_taken() const {
  return static_cast<std::uint32_t>(std::popcount(taken_));
}

ParityTable::ParityTable(std::size_t block_bytes, std::size_t max_blocks)
    : block_bytes_(block_bytes),
      store_(std::make_unique_for_overwrite<std::byte[]>(  // NOLINT(modernize-avoid-c-arrays)
          kMaxParities * kMaxParityRows * block_bytes)),
      recovered_(kMaxParityRows * block_bytes),
      tables_(kCells * kTableBytes) {
  parities_.reserve(kMaxParities);
  for (std::size_t p = 0; p < kMaxParities; ++p) {
    parities_.emplace_back(store_.get() + p * kMaxParityRows * block_bytes, block_bytes,
                           max_blocks);
  }
}

Parity* ParityTable::take(std::size_t rows, std::uint32_t blocks) {
  const auto unused = std::find_if(parities_.begin(), parities_.end(),
                                   [](const Parity& parity) { return parity.users_ == 0; });
  if (unused == parities_.end()) return nullptr;
  unused->open(rows, blocks);
  return share(&*unused);
}

void ParityTable::release(Parity*& parity) {
  if (parity == nullptr) return;
  GP_ASSERT(parity->users_ > 0);
  --parity->users_;
  parity = nullptr;
}

std::size_t ParityTable::in_use() const {
  return static_cast<std::size_t>(std::count_if(
      parities_.begin(), parities_.end(), [](const Parity& parity) { return parity.users_ > 0; }));
}

bool ParityTable::recover(const Parity& parity, std::span<const std::uint32_t> missing) {
  const std::size_t count = missing.size();
  GP_ASSERT(count > 0 && count <= parity.rows_taken());
  std::array<std::size_t, kMaxParityRows> chosen{};
  std::size_t n = 0;
  for (std::size_t r = parity.rows(); r-- > 0 && n < count;) {
    if (parity.has_row(r)) chosen[n++] = r;
  }
  std::array<std::uint8_t*, kMaxParityRows> from{};
  std::array<std::uint8_t*, kMaxParityRows> to{};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t m = 0; m < count; ++m) {
      factors_[i * count + m] = parity_factor(missing[m], chosen[i]);
    }
    from[i] = bytes_of(parity.row(chosen[i]).data());
    to[i] = bytes_of(recovered_.data() + i * block_bytes_);
  }
  const int size = static_cast<int>(count);
  if (gf_invert_matrix(factors_.data(), inverse_.data(), size) != 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    recovered_types_[i] = 0;
    for (std::size_t m = 0; m < count; ++m)
      recovered_types_[i] ^= gf_mul(inverse_[i * count + m], parity.types(chosen[m]));
  }
  ec_init_tables(size, size, inverse_.data(), tables_.data());
  ec_encode_data(static_cast<int>(block_bytes_), size, size, tables_.data(), from.data(),
                 to.data());
  return true;
}

}  // namespace gradplane::hop
