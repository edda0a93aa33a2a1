// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/group_address.h"

#include <array>
#include <cstddef>
#include <span>

#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"
#include "dataplane/base/siphash.h"

namespace gradplane::port {

// The key is no secret. It only has to be the same at every node, and is part of the protocol.
Group group_of(const GroupName& name, const GroupRange& range, std::uint16_t udp_port) noexcept {
  GP_ASSERT(is_valid(range));
  constexpr std::array<std::byte, 16> kKey{};
  std::array<std::byte, sizeof name.job + sizeof name.epoch + sizeof name.sender +
                            sizeof name.tree + sizeof(std::uint8_t)>
      text;
  std::byte* at = text.data();
  store(at, name.job);
  store(at += sizeof name.job, name.epoch);
  store(at += sizeof name.epoch, name.sender);
  store(at += sizeof name.sender, name.tree);
  store(at += sizeof name.tree, name.selection.value_or(0));
  const std::span<const std::byte> hashed = text;
  const std::size_t bytes = hashed.size() - (name.selection ? 0 : sizeof(std::uint8_t));
  const auto hash = static_cast<std::uint32_t>(siphash24(kKey, hashed.first(bytes)));
  return {.address = {range.first.value | (hash & (address_count(range) - 1))},
          .udp_port = udp_port};
}

}  // namespace gradplane::port
