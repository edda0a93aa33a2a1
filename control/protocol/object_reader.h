// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "control/protocol/parsed.h"

namespace gradplane::protocol {

enum class Presence : std::uint8_t { kRequired, kOptional };

/// Reads the members of a JSON object that is not trusted. It remembers the first wrong member with
/// its name. After that every read returns zero, so a parser needs to check ok() only at its end.
class ObjectReader {
 public:
  /// `where` prefixes the names in a rejection: "tensors[3].".
  ObjectReader(const nlohmann::json& object, Rejection& rejection, std::string where = "");

  std::uint64_t integer(const char* name, std::uint64_t min, std::uint64_t max);
  /// A finite number that is not negative.
  double magnitude(const char* name);
  bool boolean(const char* name);
  bool has(const char* name) const { return object_.contains(name); }
  /// Printable text: control characters are replaced, more than `max_bytes` is out of range.
  std::string text(const char* name, std::size_t max_bytes, Presence presence);
  /// The array, or null when it is missing, is no array or has more than `max_count` entries.
  const nlohmann::json* array(const char* name, std::size_t max_count);

  void reject(RejectReason reason, std::string_view name, std::string_view accepted);
  bool ok() const { return rejection_.reason == RejectReason::kCount; }

 private:
  const nlohmann::json* member(const char* name, Presence presence);

  const nlohmann::json& object_;
  Rejection& rejection_;
  std::string where_;
};

}  // namespace gradplane::protocol
