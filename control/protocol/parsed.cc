// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/protocol/parsed.h"

namespace gradplane::protocol {

std::string_view reject_reason_name(RejectReason reason) {
  switch (reason) {
    case RejectReason::kTooLong:
      return "too_long";
    case RejectReason::kNotAnObject:
      return "not_an_object";
    case RejectReason::kTooComplex:
      return "too_complex";
    case RejectReason::kTruncated:
      return "truncated";
    case RejectReason::kUnknownType:
      return "unknown_type";
    case RejectReason::kMissingMember:
      return "missing_member";
    case RejectReason::kWrongType:
      return "wrong_type";
    case RejectReason::kOutOfRange:
      return "out_of_range";
    case RejectReason::kCount:
      break;
  }
  return "?";
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    std::size_t end = max_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text = text.substr(0, end);
  }
  std::string clean(text);
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const auto byte = static_cast<unsigned char>(clean[i]);
    if (byte < 0x20 || byte == 0x7f) clean[i] = '?';
    // U+0080 to U+009f are control characters, too: U+009b begins an escape sequence of a terminal.
    const bool follows = i + 1 < clean.size() && (clean[i + 1] & 0xe0) == 0x80;
    if (byte == 0xc2 && follows) {
      clean[i] = '?';
      clean[++i] = '?';
    }
  }
  return clean;
}

}  // namespace gradplane::protocol
