// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gradplane::protocol {

/// Why a message was not accepted. Each reason has a counter.
enum class RejectReason : std::uint8_t {
  kTooLong,      // more bytes than any message may have
  kNotAnObject,  // not JSON, or not a JSON object
  kTooComplex,   // more values, or nested deeper, than any message has
  kTruncated,    // ends too early, or has bytes after its end
  kUnknownType,  // no such message in this direction
  kMissingMember,
  kWrongType,
  kOutOfRange,
  kCount,
};
std::string_view reject_reason_name(RejectReason reason);

struct Rejection {
  RejectReason reason = RejectReason::kCount;
  std::string text;  // for a person: which member, and what would have been accepted
};

/// A checked message, or why there is none.
template <typename Message>
struct [[nodiscard]] Parsed {
  std::optional<Message> message;
  Rejection rejection;

  bool ok() const { return message.has_value(); }
};

/// `text` cut to at most `max_bytes`, without control characters, so that any text can be shown on
/// a terminal and in a log line. A cut never splits a UTF-8 character.
std::string printable(std::string_view text, std::size_t max_bytes);

}  // namespace gradplane::protocol
