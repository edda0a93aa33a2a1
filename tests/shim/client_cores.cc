// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A rank whose job is shared by several cores of its daemon.
#include <sys/socket.h>

#include <array>

#include "tests/shim/client_fake_daemon.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::test;

namespace {

constexpr ipc::ChannelSizes kTwoCores{.slot_count = 16, .slot_bytes = 4096, .core_count = 2};

/// What a correct daemon with two cores holds for one rank.
struct TwoCores {
  FakeDaemon daemon;
  ipc::UniqueFd connection;
  ipc::Channel channel{std::move(ipc::Channel::create(kTwoCores).value())};
  std::array<ipc::Doorbell, 2> bells{std::move(ipc::create_doorbell().value()),
                                     std::move(ipc::create_doorbell().value())};
  ipc::Doorbell trainer_bell{std::move(ipc::create_doorbell().value())};
  gp_session* session = nullptr;

  TwoCores() {
    const Attempt result = attach(2, descriptors());
    INFO(result.error);
    REQUIRE(result.status == GP_OK);
    session = result.session;
  }
  ~TwoCores() { gp_detach(session, 1); }
  TwoCores(const TwoCores&) = delete;
  TwoCores& operator=(const TwoCores&) = delete;

  std::vector<int> descriptors() const {
    return {channel.fd(), bells[0].ring.get(), trainer_bell.listen.get(), bells[1].ring.get()};
  }
  Attempt attach(std::uint32_t told_cores, const std::vector<int>& passed) {
    return attempt(daemon, [&](ipc::UniqueFd peer) {
      receive<protocol::ClientHello>(peer.get());
      send(peer.get(), hello());
      receive<protocol::Attach>(peer.get());
      const auto& sizes = channel.sizes();
      send(peer.get(),
           protocol::Attached{sizes.slot_count, sizes.slot_bytes, sizes.total_bytes(), told_cores},
           passed);
      connection = std::move(peer);
    });
  }
  int submit(std::uint32_t round) {
    const gp_statement said{8, 1, 1, 0, 0, 0};
    return gp_submit(session, round, &said);
  }
  bool rang(std::size_t core) const {
    char ring;
    return ::recv(bells[core].listen.get(), &ring, sizeof(ring), MSG_DONTWAIT) == sizeof(ring);
  }
};

}  // namespace

TEST_CASE("a round goes to all cores, and wakes those that sleep") {
  TwoCores rank;
  std::array<ipc::RingConsumer<ipc::Submission>, 2> rings{
      ipc::RingConsumer<ipc::Submission>(rank.channel.submissions(0)),
      ipc::RingConsumer<ipc::Submission>(rank.channel.submissions(1))};
  ipc::announce_sleep(rank.channel.daemon_sleeps(1));
  REQUIRE(rank.submit(0) == GP_OK);
  CHECK_FALSE(rank.rang(0));
  CHECK(rank.rang(1));
  for (auto& ring : rings) {
    ipc::Submission read{};
    REQUIRE(ring.pop(read));
    CHECK(read.round == 0);
    CHECK(read.elements == 8);
  }
}

TEST_CASE("a round is complete when all cores have completed it, and what it lacks adds up") {
  TwoCores rank;
  std::array<ipc::RingProducer<ipc::Completion>, 2> rings{
      ipc::RingProducer<ipc::Completion>(rank.channel.completions(0)),
      ipc::RingProducer<ipc::Completion>(rank.channel.completions(1))};
  for (std::uint32_t round = 0; round < 3; ++round) REQUIRE(rank.submit(round) == GP_OK);
  gp_completion completion{};
  // One core may be rounds ahead of the other.
  for (std::uint32_t round = 0; round < 3; ++round)
    REQUIRE(rings[0].push({.round = round, .contributors = 2, .partial_blocks = round}));
  CHECK(gp_poll(rank.session, &completion) == 0);
  REQUIRE(rings[1].push({.round = 1, .contributors = 1, .partial_blocks = 5}));
  REQUIRE(gp_poll(rank.session, &completion) == 1);
  CHECK(completion.round == 1);
  CHECK(completion.contributors == 1);
  CHECK(completion.partial_blocks == 6);
  CHECK(gp_poll(rank.session, &completion) == 0);
  REQUIRE(rings[1].push({.round = 0, .contributors = 2}));
  REQUIRE(gp_poll(rank.session, &completion) == 1);
  CHECK(completion.round == 0);
  CHECK(completion.contributors == 2);
  CHECK(completion.partial_blocks == 0);
}

TEST_CASE("a core that completes a round twice ends the session") {
  TwoCores rank;
  ipc::RingProducer<ipc::Completion> ring(rank.channel.completions(1));
  REQUIRE(rank.submit(0) == GP_OK);
  REQUIRE(ring.push({.round = 0, .contributors = 2}));
  REQUIRE(ring.push({.round = 0, .contributors = 2}));
  gp_completion completion{};
  CHECK(gp_poll(rank.session, &completion) == -GP_BROKEN);
}

TEST_CASE("a daemon that announces other cores than it passes is refused") {
  TwoCores rank;
  std::vector<int> passed = rank.descriptors();
  CHECK(rank.attach(3, passed).status == GP_BROKEN);
  passed.pop_back();
  CHECK(rank.attach(2, passed).status == GP_BROKEN);
  CHECK(rank.attach(1, passed).status == GP_BROKEN);  // the channel has two cores
  passed.push_back(rank.connection.get());
  CHECK(rank.attach(2, passed).status == GP_BROKEN);  // no doorbell
}
