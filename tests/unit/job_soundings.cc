// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How a node handles soundings from others. TableNode is node 1. Nodes 0, 2 and 3 are its peers.
#include <vector>

#include "dataplane/engine/local_plan.h"
#include "dataplane/hop/clock.h"
#include "dataplane/wire/sounding.h"
#include "tests/support/catch.h"
#include "tests/support/table_node.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

/// Sends sounding packets to node 1.
struct Sounder {
  TableNode node;
  std::uint64_t number = 0x10'0000;  // packet number

  void deliver(std::uint16_t from, const wire::Sounding& sounding) {
    deliver(from, sounding, sent_us());
  }
  void deliver(std::uint16_t from, const wire::Sounding& sounding, std::uint32_t sent_us) {
    std::vector<std::byte> bytes(wire::sounding_bytes(kDefaultBlockBytes));
    bytes.resize(
        wire::write_sounding(bytes,
                             {.type = wire::PacketType::kSounding,
                              .flags = sounding.is_answer ? wire::kFlagAnswer : std::uint8_t{0},
                              .job = 1,
                              .sender = from,
                              .timestamp_us = sent_us},
                             sounding));
    wire::seal(bytes, wire::Gmac(TableNode::kKey),
               {from, wire::Receiver::node(TableNode::kSelf), ++number});
    node.core().deliver(from, bytes, node.now());
  }
  std::uint32_t sent_us() const { return hop::clock_us(node.now()) - 1000; }
  const hop::Counters& counters() { return node.core().job().counters(); }
  /// Returns the answers among the packets that node 1 sends.
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
  CHECK(sounder.counters().sounding_packets_received == 0);
}

TEST_CASE("who never sounded takes no answer") {
  Sounder sounder;
  const hop::Peer& peer = sounder.node.core().job().peers()[1];
  sounder.deliver(2, {.epoch = 1, .number = 0, .echo_us = sounder.sent_us(), .is_answer = true});
  CHECK(peer.flow.sounding().round_trip == Duration{});
  CHECK(sounder.node.core().drops(hop::Drop::kMalformed) == 1);
}

TEST_CASE("answers say that a link is slow, until its packets come faster") {
  struct Row {
    Duration apart;
    int packets;
    bool is_slow;
  };
  Sounder sounder;
  std::uint32_t number = 0;
  for (const Row& row : {Row{Duration::us(300), 24, true}, Row{Duration::us(100), 24, false},
                         Row{Duration::us(300), 24, true}, Row{Duration::us(100), 48, false},
                         Row{Duration::us(300), 24, true}, Row{Duration::us(20), 24, false}}) {
    CAPTURE(row.apart.count_ns(), row.packets);
    ++number;
    sounder.node.pass(Duration::seconds(2));
    const std::uint32_t sent_us = hop::clock_us(sounder.node.now());
    for (int i = 0; i < row.packets; ++i) {
      sounder.node.pass(row.apart);
      sounder.deliver(2, {.epoch = 1, .number = number}, sent_us);
    }
    sounder.node.pass(Duration::ms(1));
    const auto end_train = [&] {  // a packet that has not waited ends the train
      sounder.node.pass(Duration::ms(1));
      sounder.deliver(2, {.epoch = 1, .number = ++number}, hop::clock_us(sounder.node.now()));
    };
    end_train();
    (void)sounder.answers();
    end_train();
    const std::vector<Sent> answers = sounder.answers();
    REQUIRE(answers.size() == 1);
    CHECK(((answers[0].seen().flags & wire::kFlagSlow) != 0) == row.is_slow);
  }
}

TEST_CASE("acks say how long a sounding should be") {
  TableNode node;
  const hop::Peer& peer = node.core().job().peers()[0];
  REQUIRE(peer.node == 0);
  node.deliver(node.push_ack().flags(wire::kFlagSlow));
  CHECK(peer.flow.sounding().is_slow);
  node.deliver(node.push_ack());
  CHECK_FALSE(peer.flow.sounding().is_slow);
}

TEST_CASE("a sounding from a peer that only an ended plan had is dropped") {
  job::JobConfig config;
  config.job = config.epoch = 1;
  config.block_bytes = config.round_bytes = kMinBlockBytes;
  config.local_ranks = {{.arena = nullptr, .rank = 0}};
  api::Plan alone{.epoch = 1, .activation_round = 0, .members = {{0, {0}}}, .trees = {}};
  alone.trees = {{.weight = 1, .root = 0, .parent = {api::kNoNode}}};
  engine::fill_local_plan(config, alone, 0, {});
  config.peers = {{.node = 1}};
  config.sounders = {hop::PeerIndex(0)};
  CoreNode node(config);
  const Instant now = Instant::from_ns(1'000'000'000);
  std::uint64_t packets = 0;
  const auto sound = [&](std::uint16_t epoch) {
    std::vector<std::byte> bytes(wire::sounding_bytes(kMinBlockBytes));
    (void)wire::write_sounding(bytes, {.type = wire::PacketType::kSounding, .job = 1, .sender = 1},
                               {.epoch = epoch, .number = static_cast<std::uint32_t>(packets + 1)});
    wire::number_unsealed(bytes, ++packets);
    node.deliver(1, bytes, now);
    return node.drain(now).size();
  };
  CHECK(sound(1) == 1);
  alone.epoch = 2;
  auto next = std::make_unique<job::Plan>(engine::local_plan(alone, 0, {}, false), config);
  const std::uint32_t activation = node.job().prepare(next).horizon;
  REQUIRE(node.job().commit(2, activation));
  for (std::uint32_t round = 0; round <= activation; ++round) {
    REQUIRE(node.submit(0, round, 8) == job::SubmitResult::kAccepted);
    (void)node.drain(now);
    REQUIRE(node.events().size() == 1);
  }
  REQUIRE(node.job().take_ended_plan() != nullptr);
  CHECK(sound(1) == 0);
  CHECK(sound(2) == 0);
  CHECK(node.drops(hop::Drop::kNotPeer) == 2);
  CHECK(node.job().counters().sounding_packets_received == 1);
}
