// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/model/loss_bounds.h"
#include "tests/shim/client_fake_daemon.h"

using namespace gradplane;
using namespace gradplane::test;

namespace {

struct Answer {
  int status;
  std::string error;
};

Answer wait_ready(gp_session* session, int timeout_ms) {
  char error[2048];
  const int status = gp_wait_ready(session, timeout_ms, error, sizeof(error));
  return {status, error};
}

}  // namespace

TEST_CASE("a rank that waits says for whom") {
  AttachedRank rank;
  const int connection = rank.peer.connection.get();
  CHECK(wait_ready(rank.session, 0).status == GP_TIMEOUT);
  CHECK(wait_ready(rank.session, 0).error == "gradplaned has not said for whom it waits");

  send(connection, protocol::Waiting{{0}, 1, "not attached"});
  CHECK(wait_ready(rank.session, 0).error == "waited for rank 0; gradplaned says: not attached");
  send(connection, protocol::Waiting{{0, 3}, 7, ""});
  const Answer late = wait_ready(rank.session, 10);
  CHECK(late.status == GP_TIMEOUT);
  CHECK(late.error == "waited for ranks 0 3 and 5 more");
  send(connection, protocol::Waiting{{}, 0, "the aggregator does not answer"});
  CHECK(wait_ready(rank.session, 0).error == "the aggregator does not answer");

  send(connection, protocol::Ready{1, 2});
  CHECK(wait_ready(rank.session, 1000).status == GP_OK);
  CHECK(wait_ready(rank.session, 0).status == GP_OK);
  CHECK(wait_ready(rank.session, 0).error.empty());

  send(connection, protocol::Waiting{{0}, 1, ""});
  CHECK(wait_ready(rank.session, 0).status == GP_TIMEOUT);
}

TEST_CASE("a rank that joins a job that runs begins with the round that it is told") {
  AttachedRank rank;
  const int connection = rank.peer.connection.get();
  send(connection, protocol::Ready{1, 2, 0xfffffffe});
  REQUIRE(wait_ready(rank.session, 1000).status == GP_OK);
  CHECK(gp_next_round(rank.session) == 0xfffffffe);
  CHECK(rank.submit(0) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0xfffffffe) == GP_OK);
  // Once rounds have begun, the first round does not change.
  send(connection, protocol::Ready{1, 2, 5});
  REQUIRE(wait_ready(rank.session, 1000).status == GP_OK);
  CHECK(rank.submit(0xffffffff) == GP_OK);
  CHECK(rank.submit(0) == GP_OK);
  CHECK(gp_next_round(nullptr) == 0);
}

TEST_CASE("a rank learns whether its job exchanges updates") {
  AttachedRank rank;
  CHECK(gp_selections(rank.session) == 0);
  send(rank.peer.connection.get(),
       protocol::Ready{
           .epoch = 1, .nodes = 2, .selections = 5, .average_every = 100, .staleness = 4});
  REQUIRE(wait_ready(rank.session, 1000).status == GP_OK);
  CHECK(gp_selections(rank.session) == 5);
  CHECK(gp_average_every(rank.session) == 100);
  CHECK(gp_staleness(rank.session) == 4);
  CHECK(gp_selections(nullptr) == 0);
  CHECK(gp_average_every(nullptr) == 0);
  CHECK(gp_staleness(nullptr) == 0);
}

TEST_CASE("a rank tells how far its parameters are from the mean") {
  AttachedRank rank;
  const int connection = rank.peer.connection.get();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const auto& [distance, norm] : {std::pair(kNan, 1.0), std::pair(1.0, kInfinite),
                                       std::pair(-1.0, 1.0), std::pair(1.0, -1.0)}) {
    CHECK(gp_report_drift(rank.session, 7, distance, norm) == GP_BAD_ARGUMENT);
  }
  REQUIRE(gp_report_drift(rank.session, 7, 0.125, 2.5) == GP_OK);
  const auto drift = receive<protocol::Drift>(connection);
  CHECK(drift.step == 7);
  CHECK(drift.distance == 0.125);
  CHECK(drift.norm == 2.5);
  // The rank does not wait for a daemon that does not read.
  for (int i = 0; i < 2000; ++i) REQUIRE(gp_report_drift(rank.session, 8, 1, 1) == GP_OK);
  gp_leave(rank.session);
  CHECK(gp_report_drift(rank.session, 8, 1, 1) != GP_OK);
  CHECK(gp_report_drift(nullptr, 8, 1, 1) == GP_BAD_ARGUMENT);
}

TEST_CASE("a wait for the job ends with what ends the job") {
  AttachedRank rank;
  const int connection = rank.peer.connection.get();
  SECTION("it failed") {
    send(connection, protocol::JobFailed{"two ranks 0"});
    const Answer answer = wait_ready(rank.session, 1000);
    CHECK(answer.status == GP_JOB_FAILED);
    CHECK(answer.error == "two ranks 0");
  }
  SECTION("the daemon had enough") {
    send(connection, protocol::SocketError{"shutting down"});
    const Answer answer = wait_ready(rank.session, 1000);
    CHECK(answer.status == GP_BROKEN);
    CHECK(answer.error.find("shutting down") != std::string::npos);
  }
  SECTION("nonsense") {
    send_text(connection, "nonsense");
    CHECK(wait_ready(rank.session, 1000).status == GP_BROKEN);
  }
  SECTION("a message out of turn") {
    send(connection, attached(), rank.peer.descriptors());
    CHECK(wait_ready(rank.session, 1000).status == GP_BROKEN);
  }
  CHECK(wait_ready(rank.session, 1000).status != GP_OK);
}

TEST_CASE("descriptors that nobody asked for are closed") {
  AttachedRank rank;
  const std::size_t before_count = open_descriptors_count();
  for (int i = 0; i < 20; ++i) {
    send(rank.peer.connection.get(), protocol::Ready{1, 2}, rank.peer.descriptors());
    REQUIRE(wait_ready(rank.session, 1000).status == GP_OK);
    REQUIRE(gp_wait(rank.session, 0) == GP_OK);
  }
  CHECK(open_descriptors_count() == before_count);
}

TEST_CASE("a bucket's tensors reach the daemon") {
  AttachedRank rank;
  const gp_tensor tensors[] = {{"fc.weight", 0, 100}, {nullptr, 100, 7}};
  REQUIRE(gp_register_bucket(rank.session, 4, 3, tensors, 2) == GP_OK);
  const auto bucket = receive<protocol::RegisterBucket>(rank.peer.connection.get());
  CHECK(bucket.bucket == 4);
  CHECK(bucket.element_type == ElementType::kFloat16);
  CHECK(bucket.total == 2);
  CHECK(bucket.first == 0);
  REQUIRE(bucket.tensors.size() == 2);
  CHECK(bucket.tensors[0].name == "fc.weight");
  CHECK(bucket.tensors[1].name.empty());
  CHECK(bucket.tensors[1].offset_elements == 100);
  CHECK(bucket.tensors[1].elements == 7);
}

TEST_CASE("a tensor's name that is no text is registered all the same") {
  AttachedRank rank;
  const std::string name(1000, '\xfe');
  const gp_tensor tensor{name.c_str(), 0, 1};
  REQUIRE(gp_register_bucket(rank.session, 4, 1, &tensor, 1) == GP_OK);
  CHECK(receive<protocol::RegisterBucket>(rank.peer.connection.get()).tensors.size() == 1);
}

TEST_CASE("a bucket of many tensors goes in parts, and none loses its name") {
  AttachedRank rank;
  std::string name;
  // So many registrations fit into the socket while the daemon does not read.
  std::size_t count = 0;
  SECTION("short names") {
    name = "layer4.0.conv2.weight";
    count = 1000;
  }
  SECTION("long names of which every byte takes two") {
    name = std::string(protocol::kMaxTensorNameBytes, '"');
    count = 200;
  }
  SECTION("names that are no text") {
    name = std::string(protocol::kMaxTensorNameBytes, '\xfe');
    count = 400;
  }
  std::vector<gp_tensor> tensors;
  for (std::uint64_t i = 0; i < count; ++i) tensors.push_back({name.c_str(), i, 1});
  REQUIRE(gp_register_bucket(rank.session, 4, 1, tensors.data(), count) == GP_OK);
  std::size_t parts = 0;
  for (std::size_t next = 0; next < count; ++parts) {
    const auto part = receive<protocol::RegisterBucket>(rank.peer.connection.get());
    REQUIRE(part.bucket == 4);
    REQUIRE(part.total == count);
    REQUIRE(part.first == next);
    REQUIRE_FALSE(part.tensors.empty());
    for (const auto& tensor : part.tensors) {
      REQUIRE(tensor.offset_elements == next++);
      REQUIRE_FALSE(tensor.name.empty());
    }
  }
  CHECK(parts > 1);
}

TEST_CASE("a bucket that cannot be is refused, and the session goes on") {
  AttachedRank rank;
  const auto refused = [&](std::uint32_t bucket, std::uint8_t type,
                           const std::vector<gp_tensor>& tensors) {
    return gp_register_bucket(rank.session, bucket, type, tensors.data(), tensors.size()) ==
           GP_BAD_ARGUMENT;
  };
  const gp_tensor tensor{"a", 0, 1};
  CHECK(refused(0, 1, {tensor}));
  CHECK(refused(kMaxBuckets + 1, 1, {tensor}));
  CHECK(refused(1, 0, {tensor}));
  CHECK(refused(1, 5, {tensor}));  // int32
  CHECK(refused(1, 6, {tensor}));  // int64
  CHECK(refused(1, 7, {tensor}));
  CHECK(refused(1, 1, {}));
  CHECK(gp_register_bucket(rank.session, 1, 1, nullptr, 1) == GP_BAD_ARGUMENT);
  CHECK(refused(1, 1, {{"a", 0, 1025}}));  // 4100 bytes in a slot of 4096
  CHECK(refused(1, 2, {{"a", 0, 513}}));
  CHECK(refused(1, 1, {{"a", 1024, 1}}));
  CHECK(refused(1, 1, {{"a", 1, UINT64_MAX}}));
  CHECK(refused(1, 1, {{"a", 0, 0}}));
  CHECK(refused(1, 1, {{"a", 0, 5}, {"b", 4, 5}}));
  CHECK(refused(1, 1, {{"b", 5, 5}, {"a", 0, 5}}));
  CHECK(refused(1, 1, std::vector<gp_tensor>(kMaxTensorsPerBucket + 1, tensor)));
  CHECK(gp_register_bucket(rank.session, kMaxBuckets, 1, &tensor, 1) == GP_OK);
  // The daemon has heard of none of the others.
  CHECK(receive<protocol::RegisterBucket>(rank.peer.connection.get()).bucket == kMaxBuckets);
}

TEST_CASE("a daemon that does not read its socket ends the session within a bound") {
  AttachedRank rank;
  const gp_tensor tensor{"a", 0, 1};
  int status = GP_OK;
  for (int i = 0; i < 100000 && status == GP_OK; ++i) {
    status = gp_register_bucket(rank.session, 1, 1, &tensor, 1);
  }
  CHECK(status == GP_BROKEN);
  CHECK(std::string(gp_failure(rank.session)).find("does not read") != std::string::npos);
}
