// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What a node does with soundings of others. TableNode is node 1; 0, 2 and 3 are its peers.
#include <vector>

#include "dataplane/hop/clock.h"
#include "dataplane/wire/sounding.h"
#include "tests/support/catch.h"
#include "tests/support/table_node.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

/// Sends node 1 packets that carry no block.
struct Sounder {
  TableNode node;
  std::uint64_t number = 0x10'0000;  // of packets

  void deliver(std::uint16_t from, const wire::Sounding& sounding) {
    std::vector<std::byte> bytes(wire::sounding_bytes(kDefaultBlockBytes));
    bytes.resize(
        wire::write_sounding(bytes,
                             {.type = wire::PacketType::kSounding,
                              .flags = sounding.is_answer ? wire::kFlagAnswer : std::uint8_t{0},
                              .job = 1,
                              .sender = from,
                              .timestamp_us = sent_us()},
                             sounding));
    wire::seal(bytes, TableNode::kKey, wire::Receiver::node(TableNode::kSelf), ++number);
    node.core().deliver(from, bytes, node.now());
  }
  std::uint32_t sent_us() const { return hop::clock_us(node.now()) - 1000; }
  const hop::Counters& counters() { return node.core().job().counters(); }
  /// Of what node 1 sends, the answers.
  std::vector<Sent> answers() {
    std::vector<Sent> found;
    for (const Sent& packet : node.core().drain(node.now())) {
      if (packet.seen().type == wire::PacketType::kSounding) found.push_back(packet);
    }
    return found;
  }
};

}  // namespace

TEST_CASE("each sounding is answered once, with the time of its first packet") {
  Sounder sounder;
  const wire::Sounding said{.epoch = 1, .number = 7};
  const std::uint32_t first_us = sounder.sent_us();
  sounder.deliver(2, said);
  CHECK(sounder.node.core().job().next_timer() <= sounder.node.now());
  sounder.node.pass(Duration::us(300));
  sounder.deliver(2, said);
  const std::vector<Sent> answers = sounder.answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].to == 2);
  CHECK(answers[0].bytes.size() == wire::kSoundingAnswerBytes);
  CHECK(answers[0].seen().sounding.is_answer);
  CHECK(answers[0].seen().sounding.number == 7);
  CHECK(answers[0].seen().sounding.echo_us == first_us);
  sounder.deliver(2, said);
  CHECK(sounder.answers().empty());
  sounder.deliver(2, {.epoch = 1, .number = 8});
  CHECK(sounder.answers().size() == 1);
  CHECK(sounder.counters().sounding_packets_received == 4);
}

TEST_CASE("soundings of a stranger, of another plan and with a wrong tag are dropped") {
  Sounder sounder;
  sounder.deliver(4, {.epoch = 1, .number = 7});
  CHECK(sounder.node.core().drops(hop::Drop::kNotPeer) == 1);
  sounder.deliver(2, {.epoch = 2, .number = 7});
  CHECK(sounder.node.core().drops(hop::Drop::kWrongEpoch) == 1);
  sounder.number -= 1;
  sounder.deliver(2, {.epoch = 1, .number = 7});
  sounder.number -= 1;
  sounder.deliver(2, {.epoch = 1, .number = 7});
  CHECK(sounder.node.core().drops(hop::Drop::kReplayed) == 1);
  CHECK(sounder.counters().sounding_packets_received == 1);
  CHECK(sounder.answers().size() == 1);
}

TEST_CASE("an answer to another sounding than the last one says nothing") {
  Sounder sounder;
  const hop::Peer& peer = sounder.node.core().job().peers()[1];
  REQUIRE(peer.node == 2);
  sounder.deliver(2, {.epoch = 1, .number = 3, .echo_us = sounder.sent_us(), .is_answer = true});
  CHECK(peer.flow.sounding().round_trip == Duration{});
  sounder.deliver(2, {.epoch = 1, .number = 0, .echo_us = sounder.sent_us(), .is_answer = true});
  CHECK(peer.flow.sounding().round_trip == Duration::ms(1));
  CHECK(sounder.counters().sounding_packets_received == 0);
}
