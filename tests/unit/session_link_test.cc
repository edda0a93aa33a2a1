// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "control/session/peer_link.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;

namespace {

using Bytes = std::vector<std::byte>;

ClusterKey test_key() {
  ClusterKey key{};
  key.fill(std::byte{3});
  return key;
}

Bytes message_of(std::size_t size, std::uint8_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed + i % 251);
  return bytes;
}

/// Two links and the datagrams between them.
struct Pair {
  Pair() { restart_a(11), restart_b(22); }

  static LinkConfig config(api::NodeId self, std::uint64_t incarnation) {
    LinkConfig c;
    c.self = self;
    c.peer = static_cast<api::NodeId>(1 - self);
    c.incarnation = incarnation;
    c.key = test_key();
    c.heartbeat = Duration::ms(250);
    c.suspect_after = Duration::seconds(3);
    return c;
  }
  void restart_a(std::uint64_t incarnation) { a.emplace(config(0, incarnation), now); }
  void restart_b(std::uint64_t incarnation) { b.emplace(config(1, incarnation), now); }

  void collect() {
    for (Bytes& bytes : a->take_datagrams()) to_b.push_back(std::move(bytes));
    for (Bytes& bytes : b->take_datagrams()) to_a.push_back(std::move(bytes));
    if (!tapped) return;
    recorded_to_a.insert(recorded_to_a.end(), to_a.begin(), to_a.end());
    recorded_to_b.insert(recorded_to_b.end(), to_b.begin(), to_b.end());
  }
  void replay() {
    to_a.insert(to_a.end(), recorded_to_a.begin(), recorded_to_a.end());
    to_b.insert(to_b.end(), recorded_to_b.begin(), recorded_to_b.end());
  }
  static DatagramDrop give(PeerLink& link, const Bytes& bytes, Instant at) {
    Datagram datagram;
    const DatagramDrop drop = decode_datagram(test_key(), bytes, datagram);
    return drop == DatagramDrop::kCount ? link.receive(datagram, at) : drop;
  }
  /// Delivers all datagrams and the answers to them. A side that is deaf gets none.
  void exchange() {
    collect();
    while (!to_a.empty() || !to_b.empty()) {
      now = now + Duration::us(100);
      std::deque<Bytes> for_a = std::exchange(to_a, {});
      std::deque<Bytes> for_b = std::exchange(to_b, {});
      for (const Bytes& bytes : for_a)
        if (!a_deaf) give(*a, bytes, now);
      for (const Bytes& bytes : for_b)
        if (!b_deaf) give(*b, bytes, now);
      collect();
      for (LinkReport report : {a->take_report()}) note(heard_by_a, report);
      for (LinkReport report : {b->take_report()}) note(heard_by_b, report);
    }
  }
  void run(Duration span) {
    const Instant end = now + span;
    exchange();
    while (std::min(a->next_deadline(), b->next_deadline()) <= end) {
      now = std::max(now, std::min(a->next_deadline(), b->next_deadline()));
      a->tick(now);
      b->tick(now);
      note(heard_by_a, a->take_report());
      note(heard_by_b, b->take_report());
      exchange();
    }
    now = std::max(now, end);
  }
  struct Heard {
    std::vector<Bytes> messages;
    std::vector<std::string> lost;
    int connected = 0;
  };
  static void note(Heard& heard, const LinkReport& report) {
    if (!report.lost.empty()) heard.lost.push_back(report.lost);
    if (report.connected) ++heard.connected;
    heard.messages.insert(heard.messages.end(), report.messages.begin(), report.messages.end());
  }

  Instant now = Instant::from_ns(1000);
  std::optional<PeerLink> a, b;
  std::deque<Bytes> to_a, to_b;
  bool tapped = false;
  std::vector<Bytes> recorded_to_a, recorded_to_b;
  bool a_deaf = false, b_deaf = false;
  Heard heard_by_a, heard_by_b;
};

/// A pair that is connected, because one side has watched the other for a second.
struct WatchedPair : Pair {
  WatchedPair() {
    a->set_watched(true, now);
    run(Duration::seconds(1));
  }
};

}  // namespace

TEST_CASE("a datagram comes through unchanged, and any damage is seen by its tag") {
  const Bytes body = message_of(100, 1);
  Datagram d;
  d.flags = kHasFrame | kFirstFrame;
  d.source = 3;
  d.destination = 4;
  d.source_incarnation = 0x0102030405060708;
  d.destination_incarnation = 9;
  d.timestamp = 10;
  d.echo = 11;
  d.acknowledged = 12;
  d.selective = 13;
  d.sequence = 14;
  d.body = body;
  const Bytes bytes = encode_datagram(test_key(), d);
  REQUIRE(bytes.size() == kDatagramHeaderBytes + body.size());
  CHECK(bytes[8] == std::byte{kDatagramVersion});
  CHECK(bytes[11] == std::byte{3});
  CHECK(bytes[14] == std::byte{1});
  Datagram out;
  REQUIRE(decode_datagram(test_key(), bytes, out) == DatagramDrop::kCount);
  CHECK(encode_datagram(test_key(), out) == bytes);
  CHECK(out.sequence == 14);

  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    REQUIRE(decode_datagram(test_key(), damaged, out) == DatagramDrop::kBadTag);
  }
  ClusterKey other = test_key();
  other[0] ^= std::byte{1};
  CHECK(decode_datagram(other, bytes, out) == DatagramDrop::kBadTag);
  CHECK(decode_datagram(test_key(), std::span(bytes).first(kDatagramHeaderBytes - 1), out) ==
        DatagramDrop::kTruncated);
  CHECK(decode_datagram(test_key(), Bytes(kMaxControlBytes + 1), out) == DatagramDrop::kTruncated);
  d.flags = 16;
  CHECK(decode_datagram(test_key(), encode_datagram(test_key(), d), out) ==
        DatagramDrop::kBadFlags);
  d.flags = 0;
  CHECK(decode_datagram(test_key(), encode_datagram(test_key(), d), out) ==
        DatagramDrop::kBadFlags);
}

TEST_CASE("messages of every size arrive once and in order") {
  Pair pair;
  std::vector<Bytes> sent;
  for (const std::size_t size : {std::size_t{1}, kMaxFrameBytes - 1, kMaxFrameBytes,
                                 kMaxFrameBytes + 1, protocol::kMaxNodeMessageBytes}) {
    sent.push_back(message_of(size, static_cast<std::uint8_t>(size)));
    pair.a->send(sent.back(), pair.now);
  }
  pair.run(Duration::seconds(2));
  CHECK(pair.heard_by_b.messages == sent);
  CHECK(pair.heard_by_b.connected == 1);
  CHECK(pair.heard_by_b.lost.empty());
  CHECK(pair.a->rtt() > Duration());
  CHECK(pair.a->next_deadline() == Instant::never());
  CHECK(pair.b->next_deadline() == Instant::never());
}

TEST_CASE("a lost frame is sent again, a doubled one is taken once") {
  WatchedPair pair;
  pair.b_deaf = true;
  pair.a->send(message_of(10, 1), pair.now);
  pair.exchange();
  pair.b_deaf = false;
  pair.a->send(message_of(10, 2), pair.now);
  pair.collect();
  pair.to_b.push_back(pair.to_b.front());
  pair.run(Duration::seconds(1));
  CHECK(pair.heard_by_b.messages == std::vector<Bytes>{message_of(10, 1), message_of(10, 2)});
  CHECK(pair.a->retransmissions() == 1);
}

TEST_CASE("a frame that is lost again and again is sent ever more rarely") {
  WatchedPair pair;
  pair.b_deaf = true;
  pair.a->send(message_of(10, 1), pair.now);
  pair.run(Duration::ms(2500));
  CHECK(pair.a->retransmissions() > 4);
  CHECK(pair.a->retransmissions() < 12);
}

TEST_CASE("silence of a watched peer is reported once, and its return too") {
  WatchedPair pair;
  REQUIRE(pair.heard_by_a.connected == 1);
  pair.b_deaf = true;
  pair.run(Duration::ms(2500));
  CHECK(pair.heard_by_a.lost.empty());
  pair.run(Duration::seconds(30));
  REQUIRE(pair.heard_by_a.lost.size() == 1);
  CHECK(pair.heard_by_a.lost[0].find("silent for 3.") != std::string::npos);
  pair.b_deaf = false;
  pair.run(Duration::seconds(1));
  CHECK(pair.heard_by_a.connected == 2);
  // A side that the other one gave up must learn it, because nothing of the old conversation goes
  // on.
  REQUIRE(pair.heard_by_b.lost.size() == 1);
  CHECK(pair.heard_by_b.lost[0].find("restarted") != std::string::npos);
}

TEST_CASE(
    "a peer that says goodbye is lost at once, and neither its silence nor a replay is news") {
  WatchedPair pair;
  pair.b_deaf = true;  // from now on nobody is there
  pair.b->say_goodbye(pair.now);
  pair.tapped = true;
  pair.exchange();
  CHECK(pair.heard_by_a.lost == std::vector<std::string>{"was stopped"});
  pair.run(Duration::seconds(30));
  pair.b_deaf = false;
  pair.restart_b(33);
  pair.run(Duration::seconds(1));
  REQUIRE(pair.heard_by_a.connected == 2);
  pair.replay();
  pair.run(Duration::seconds(1));
  CHECK(pair.heard_by_a.connected == 2);
  CHECK(pair.heard_by_a.lost.size() == 1);
}

TEST_CASE("nobody is suspected for a pause of our own") {
  WatchedPair pair;
  pair.now = pair.now + Duration::seconds(10);
  pair.a->tick(pair.now);
  CHECK(pair.a->take_report().lost.empty());
  pair.run(Duration::seconds(1));
  CHECK(pair.heard_by_a.lost.empty());
}

TEST_CASE("a peer that was restarted is noticed, and what was meant for its past is dropped") {
  WatchedPair pair;
  pair.b_deaf = true;
  pair.a->send(message_of(10, 1), pair.now);
  pair.exchange();
  pair.b_deaf = false;
  pair.restart_b(33);
  pair.run(Duration::seconds(1));
  REQUIRE(pair.heard_by_a.lost.size() == 1);
  CHECK(pair.heard_by_a.connected == 2);
  pair.a->send(message_of(10, 2), pair.now);
  pair.run(Duration::seconds(1));
  CHECK(pair.heard_by_b.messages == std::vector<Bytes>{message_of(10, 2)});
}

TEST_CASE("what a restarted peer has yet to say is not taken for acknowledged") {
  Pair pair;
  pair.b->send(message_of(10, 1), pair.now);
  pair.run(Duration::seconds(1));
  pair.restart_b(33);
  pair.b->send(message_of(10, 2), pair.now);
  pair.run(Duration::seconds(1));
  CHECK(pair.heard_by_a.messages == std::vector<Bytes>{message_of(10, 1), message_of(10, 2)});
}

TEST_CASE("recorded datagrams neither open, end nor repeat a conversation") {
  Pair pair;
  std::vector<Bytes> recorded;
  pair.a->set_watched(true, pair.now);
  pair.b->set_watched(true, pair.now);
  for (int i = 0; i < 20; ++i) {
    pair.a->send(message_of(10, static_cast<std::uint8_t>(i)), pair.now);
    pair.collect();
    recorded.insert(recorded.end(), pair.to_b.begin(), pair.to_b.end());
    pair.run(Duration::ms(100));
  }
  REQUIRE(pair.heard_by_b.messages.size() == 20);
  SECTION("into the same conversation") {}
  SECTION("after the sender was restarted") {
    pair.restart_a(44);
    pair.a->set_watched(true, pair.now);
    pair.run(Duration::seconds(1));
    REQUIRE(pair.heard_by_b.lost.size() == 1);
  }
  SECTION("after both were restarted") {
    pair.restart_a(44);
    pair.restart_b(55);
    pair.a->set_watched(true, pair.now);
    pair.b->set_watched(true, pair.now);
    pair.run(Duration::seconds(1));
  }
  const std::size_t lost_before = pair.heard_by_b.lost.size();
  for (int turn = 0; turn < 3; ++turn) {
    for (const Bytes& bytes : recorded) pair.to_b.push_back(bytes);
    pair.run(Duration::ms(200));
  }
  CHECK(pair.heard_by_b.messages.size() == 20);
  CHECK(pair.heard_by_b.lost.size() == lost_before);
  CHECK(pair.heard_by_a.lost.empty());
  pair.a->send(message_of(5, 7), pair.now);
  pair.run(Duration::seconds(1));
  CHECK(pair.heard_by_b.messages.size() == 21);
}

TEST_CASE("recorded datagrams do not keep a dead peer alive") {
  Pair pair;
  pair.tapped = true;
  pair.a->set_watched(true, pair.now);
  pair.b->set_watched(true, pair.now);
  pair.a->send(message_of(10, 1), pair.now);
  pair.b->send(message_of(10, 2), pair.now);
  pair.run(Duration::seconds(1));
  pair.tapped = false;
  REQUIRE(pair.recorded_to_a.size() > 4);
  const bool all = GENERATE(true, false);
  if (!all) pair.recorded_to_a = {pair.recorded_to_a.back()};

  pair.b.emplace(Pair::config(1, 33), pair.now);  // stays silent, because it does not watch a
  pair.b_deaf = true;
  for (int second = 1; second <= 10; ++second) {
    INFO("second " << second);
    for (const Bytes& bytes : pair.recorded_to_a) pair.to_a.push_back(bytes);
    pair.run(Duration::seconds(1));
    if (second < 3) CHECK(pair.heard_by_a.lost.empty());
  }
  CHECK(pair.heard_by_a.lost.size() == 1);
  CHECK(pair.heard_by_a.connected == 1);
  CHECK(pair.a->suspicion() < Duration::seconds(4));
}

TEST_CASE("recorded datagrams do not stretch the round trip") {
  Pair pair;
  pair.tapped = true;
  pair.a->set_watched(true, pair.now);
  pair.b->set_watched(true, pair.now);
  pair.run(Duration::seconds(1));
  pair.tapped = false;
  // A restarted peer gets datagrams for its earlier incarnation. It answers with an old echo and
  // its new incarnation.
  if (GENERATE(false, true)) {
    pair.restart_a(44);
    pair.a->set_watched(true, pair.now);
    pair.run(Duration::seconds(1));
  }
  const std::size_t lost_before = pair.heard_by_a.lost.size() + pair.heard_by_b.lost.size();
  for (int second = 0; second < 30; ++second) {
    pair.replay();
    pair.run(Duration::seconds(1));
    CHECK(pair.a->rtt() < Duration::ms(1));
    CHECK(pair.b->rtt() < Duration::ms(1));
    CHECK(pair.a->suspicion() < Duration::ms(3010));
    CHECK(pair.b->suspicion() < Duration::ms(3010));
  }
  CHECK(pair.heard_by_a.lost.size() + pair.heard_by_b.lost.size() == lost_before);
}

TEST_CASE("a peer that takes nothing is given up before memory is") {
  Pair pair;
  pair.a->set_watched(true, pair.now);
  std::size_t sent = 0;
  while (pair.heard_by_a.lost.empty()) {
    pair.a->send(message_of(10, 1), pair.now);
    pair.note(pair.heard_by_a, pair.a->take_report());
    REQUIRE(++sent <= kMaxQueuedFrames + 1);
  }
  CHECK(sent == kMaxQueuedFrames + 1);
}

TEST_CASE("what speaks to nobody yet, and proves nothing, opens no conversation") {
  Pair pair;
  pair.tapped = true;
  pair.a->set_watched(true, pair.now);
  for (std::uint8_t i = 0; i < 5; ++i) pair.a->send(message_of(10, i), pair.now);
  pair.run(Duration::seconds(1));
  REQUIRE(pair.heard_by_b.messages.size() == 5);
  // The link is as it was before it heard anything. The recorded datagrams come again.
  pair.restart_b(22);
  for (const Bytes& bytes : pair.recorded_to_b)
    CHECK(Pair::give(*pair.b, bytes, pair.now) != DatagramDrop::kCount);
  CHECK(!pair.b->connected());
  CHECK(pair.b->take_report().messages.empty());
}
