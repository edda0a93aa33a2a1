// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/term.h"

#include <algorithm>

#include "dataplane/base/bytes.h"

namespace gradplane::session {

std::vector<std::byte> seal(const Term& term, std::span<const std::byte> message) {
  std::vector<std::byte> bytes(kTermBytes + message.size());
  ByteWriter out(bytes);
  out.write(term.number);
  out.write(term.coordinator);
  std::copy(message.begin(), message.end(), bytes.begin() + kTermBytes);
  return bytes;
}

std::optional<Envelope> open_envelope(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Envelope envelope;
  envelope.term.number = in.read<std::uint32_t>();
  envelope.term.coordinator = in.read<api::NodeId>();
  if (!in.ok() || envelope.term.number > kMaxTermNumber) return std::nullopt;
  envelope.message = in.rest();
  return envelope;
}

}  // namespace gradplane::session
