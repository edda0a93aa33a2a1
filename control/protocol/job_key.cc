// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/protocol/job_key.h"

#include <span>

#include "dataplane/base/siphash.h"

namespace gradplane::protocol {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string to_hex(const JobKey& key) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(key.size() * 2);
  for (const std::byte byte : key) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::optional<JobKey> job_key_from_hex(std::string_view text) {
  JobKey key{};
  if (text.size() != key.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int high = hex_value(text[2 * i]);
    const int low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    key[i] = static_cast<std::byte>(high * 16 + low);
  }
  return key;
}

std::uint32_t job_id_of(const JobKey& key) {
  constexpr std::string_view kPurpose = "gradplane job id";
  const std::uint64_t hash = siphash24(key, std::as_bytes(std::span(kPurpose)));
  const auto id = static_cast<std::uint32_t>(hash);
  return id == 0 ? 1 : id;
}

}  // namespace gradplane::protocol
