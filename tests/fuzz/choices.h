// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/model/element_type.h"
#include "dataplane/model/reduction.h"
#include "tests/support/packet.h"

/// Common parts of fuzz targets whose input is a list of choices.
namespace gradplane::testing {

/// Reads the input choice by choice. After its end all choices are 0.
class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t b = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return b;
  }
  std::uint32_t below(std::uint32_t n) { return byte() % n; }
  std::uint32_t word() {
    std::uint32_t v = 0;
    for (int i = 0; i < 4; ++i) v = v << 8 | byte();
    return v;
  }
  /// A number that is mostly near the ends of the range, where errors are likely.
  std::uint32_t number() {
    switch (below(6)) {
      case 0:
        return byte();
      case 1:
        return 0U - byte();
      case 2:
        return 0x8000'0000U + byte();
      case 3:
        return std::uint32_t{1} << below(32);
      default:
        return word();
    }
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// Changes a field of a packet. `number`: the number of the last packet. Sets `via` to the node
/// from which the packet comes, if that is not its sender.
inline void change(PacketBuilder& packet, Choices& in, std::uint64_t number, int& via) {
  switch (in.below(16)) {
    case 0:
      packet.round(in.number());
      break;
    case 1:
      packet.index(static_cast<std::uint16_t>(in.number()));
      break;
    case 2:
      packet.round_elements(in.number());
      break;
    case 3:
      packet.element_type(kElementTypes[in.below(kElementTypes.size())]);
      packet.reduction(kReductions[in.below(kReductions.size())]);
      break;
    case 4:
      packet.contributors(static_cast<std::uint16_t>(in.number()));
      break;
    case 5:
      packet.tree(in.byte());
      break;
    case 6:
      packet.sender(static_cast<std::uint16_t>(in.below(6)));
      break;
    case 7:
      packet.type(static_cast<wire::PacketType>(1 + in.below(5)));
      break;
    case 8:
      packet.timestamp_us(in.number());
      break;
    case 9:
      packet.flags(in.byte());
      break;
    case 10:
      packet.poke(in.below(kPayloadAt), in.byte());
      break;
    case 11:
      packet.number(number - in.below(8));
      break;
    case 12:
      packet.coverage({in.number(), in.number()});
      break;
    case 13:
      if (in.below(2) == 0) {
        packet.route({1, static_cast<std::uint16_t>(in.below(6))});
      } else {
        packet.route({static_cast<std::uint16_t>(in.below(6)), 1}, 1);
        via = static_cast<int>(in.below(6));
      }
      break;
    case 14:
      packet.operation(static_cast<Operation>(1 + in.below(4)), in.byte() % 8);
      break;
    default:
      packet.cut_to(in.below(wire::kBlockOverheadBytes + 1));
  }
}

}  // namespace gradplane::testing
