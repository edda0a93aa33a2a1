// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdint>
#include <string_view>

#include "control/protocol/socket_messages.h"
#include "dataplane/base/assert.h"

using namespace gradplane::protocol;

namespace {

/// A message that was accepted must be equal after it is encoded and parsed again.
template <typename Message, typename Parse>
void check(const Parsed<Message>& parsed, Parse parse) {
  if (!parsed.ok()) {
    GP_ASSERT(parsed.rejection.reason != RejectReason::kCount);
    GP_ASSERT(!parsed.rejection.text.empty());
    return;
  }
  const std::string text = encode(*parsed.message);
  // A name may be longer when it is encoded again, because of escapes, and then be too long.
  if (text.size() > kMaxSocketMessageBytes) return;
  const Parsed<Message> again = parse(text);
  GP_ASSERT(again.ok());
  GP_ASSERT(again.message->index() == parsed.message->index());
  GP_ASSERT(encode(*again.message) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(parse_client_message(text), parse_client_message);
  check(parse_daemon_message(text), parse_daemon_message);
  return 0;
}
