// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Blocks on several paths to one peer. Each path has its own losses, echoes and window.
#include "dataplane/hop/block_receiver.h"
#include "dataplane/hop/block_sender.h"
#include "dataplane/hop/peer_table.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::hop;

namespace {

constexpr Duration kWindow = Duration::us(200);
constexpr Instant kStart = Instant::from_ns(1'000'000'000);

/// Blocks 0 to 3, sent at 0 us over the paths 0, 1, 2 and 0.
BlockSender sent_over_paths() {
  BlockSender sender(64);
  sender.open({0, 4}, 0);
  sender.offer_all();
  for (const std::size_t path : {0, 1, 2, 0}) (void)sender.take(0, false, path);
  return sender;
}

Peer peer_with_routes() {
  return Peer({.node = 3, .has_routes = true}, {}, {}, kDefaultBlockBytes);
}

}  // namespace

TEST_CASE("an ack takes blocks from the paths that they went over") {
  BlockSender sender = sent_over_paths();
  CHECK(sender.in_flight_by_path().direct() == 2);
  const PathBlocks acked = sender.on_ack(0, std::vector<std::uint64_t>{0b0111});
  CHECK(acked.all == 3);
  CHECK(acked.direct() == 1);
  CHECK(acked.over_route == std::array<std::uint32_t, kMaxRoutes>{1, 1});
  CHECK(sender.in_flight_by_path().direct() == 1);
  const PathBlocks rest = sender.close();
  CHECK(rest.all == 1);
  CHECK(rest.direct() == 1);
}

TEST_CASE("what arrived over one path proves no loss on another") {
  BlockSender sender = sent_over_paths();
  CHECK(sender.find_lost(10'000, kWindow, 1).blocks == 1);
  CHECK(sender.in_flight_by_path().direct() == 2);
  CHECK(sender.peek() == 1U);
  CHECK(sender.find_lost(10'000, kWindow, 2).blocks == 1);
  CHECK(sender.find_lost(10'000, kWindow).blocks == 2);
  CHECK(sender.in_flight() == 0);
}

TEST_CASE("a block that is sent again is on its new path alone") {
  BlockSender sender = sent_over_paths();
  REQUIRE(sender.find_lost(10'000, kWindow, 1).blocks == 1);
  CHECK(sender.take(20'000).block == 1);
  CHECK(sender.in_flight_by_path().over_route[0] == 0);
  const PathBlocks acked = sender.on_arrived(1);
  CHECK(acked.direct() == 1);
}

TEST_CASE("a round that ends leaves no path behind for the next one") {
  BlockSender sender = sent_over_paths();
  (void)sender.close();
  sender.open({0, 4}, 0);
  sender.offer_all();
  (void)sender.take(0);
  (void)sender.take(0);
  CHECK(sender.on_complete().direct() == 2);
}

TEST_CASE("what take() takes next is known before, and copies are not told of") {
  BlockSender sender(64);
  sender.open({8, 12}, 2);
  CHECK_FALSE(sender.peek());
  sender.offer_all();
  for (const std::uint32_t expected : {10, 11, 8, 9}) {
    CHECK(sender.peek() == expected);
    CHECK(sender.take(0).block == expected);
  }
  sender.copy_tail(0, Duration::us(10));
  CHECK(sender.has_queued());
  CHECK_FALSE(sender.peek());
}

TEST_CASE("each path has an echo, and an ack tells of one") {
  BlockReceiver receiver(64);
  receiver.open({0, 8});
  (void)receiver.accept(0);
  (void)receiver.note_packet({.timestamp_us = 500, .path = 0}, kStart);
  (void)receiver.accept(1);
  (void)receiver.note_packet({.timestamp_us = 100, .path = 1}, kStart + Duration::us(30));
  BlockReceiver::Ack ack;
  receiver.fill_ack(ack, kStart + Duration::us(50));
  CHECK(ack.path == 1);
  CHECK(ack.body.echo_us == 100);
  CHECK(ack.body.ack_delay_us == 20);
  CHECK(receiver.owes_ack());
  receiver.fill_ack(ack, kStart + Duration::us(50));
  CHECK(ack.path == 0);
  CHECK(ack.body.echo_us == 500);
  CHECK_FALSE(receiver.owes_ack());
}

TEST_CASE("every flow to a peer loses the blocks that were its own") {
  Peer peer = peer_with_routes();
  for (std::size_t path = 0; path <= kMaxRoutes; ++path) {
    for (std::size_t n = 0; n <= path; ++n) peer.flow_of(path).on_sent(kStart, 1500, false);
  }
  CHECK(peer.in_flight() == 6);
  peer.on_acked(kStart, {.all = 3, .over_route = {1, 1}});
  CHECK(peer.flow.in_flight() == 0);
  CHECK(peer.flow_of(1).in_flight() == 1);
  CHECK(peer.flow_of(2).in_flight() == 2);
  peer.on_forgotten({.all = 2, .over_route = {0, 2}});
  CHECK(peer.in_flight() == 1);
}

TEST_CASE("marks count for the path on which they were made") {
  Peer peer = peer_with_routes();
  CHECK(peer.newly_marked(1, 5) == 5);
  CHECK(peer.newly_marked(0, 2) == 2);
  CHECK(peer.newly_marked(1, 5) == 0);
}

TEST_CASE(
    "a route is worth it when the direct wait is longer than the route and its relay's wait") {
  Flow direct({});
  Flow route({});
  const std::uint32_t window = direct.window();
  CHECK_FALSE(is_worth_a_route(direct, 1000, route, {}));  // the direct path has not been measured
  direct.on_rtt(kStart, Duration::ms(2));
  CHECK(wait_of(direct, direct.window() * 3) == Duration::ms(6));
  CHECK_FALSE(is_worth_a_route(direct, window, route, {}));
  CHECK(is_worth_a_route(direct, window + 1, route, {}));
  route.on_rtt(kStart, Duration::ms(10));
  CHECK_FALSE(is_worth_a_route(direct, window * 5, route, {}));
  CHECK(is_worth_a_route(direct, window * 5 + 1, route, {}));
  CHECK_FALSE(is_worth_a_route(direct, window * 9, route, Duration::ms(4)));
  CHECK(is_worth_a_route(direct, window * 9 + 1, route, Duration::ms(4)));
}

TEST_CASE("a route that does not answer rests longer each time, until it does") {
  Peer peer = peer_with_routes();
  Detour& detour = (*peer.detours)[0];
  detour.on_silence(kStart);
  CHECK(detour.rests_until == kStart + kFirstRouteRest);
  detour.on_silence(kStart);
  CHECK(detour.rests_until == kStart + kFirstRouteRest * 2);
  for (int n = 0; n < 20; ++n) detour.on_silence(kStart);
  CHECK(detour.rests_until == kStart + kMaxRouteRest);
  detour.on_heard(kStart);
  detour.on_silence(kStart);
  CHECK(detour.rests_until == kStart + kFirstRouteRest);
}

TEST_CASE("a route over other relays is measured anew") {
  Peer peer = peer_with_routes();
  Detour& detour = (*peer.detours)[0];
  detour.flow.on_forward_delay(kStart, 1'000);
  detour.flow.on_rtt(kStart, Duration::ms(2));
  detour.on_silence(kStart);
  const std::uint32_t window = detour.flow.window();
  detour.on_other_way();
  CHECK(detour.flow.min_rtt() == Duration{});
  CHECK(detour.flow.smoothed_rtt() == Duration{});
  CHECK(detour.flow.window() == window);
  CHECK(detour.rests_until <= kStart);
  CHECK(detour.rest == kFirstRouteRest);
  // The longer delay of the new path is not taken for a queue, so the window does not shrink.
  for (int n = 1; n <= 20; ++n) {
    const Instant now = kStart + Duration::ms(100 * n);
    detour.flow.on_forward_delay(now, 41'000);
    detour.flow.on_rtt(now, Duration::ms(82));
  }
  CHECK(detour.flow.min_rtt() == Duration::ms(82));
  CHECK(detour.flow.window() == window);
}
