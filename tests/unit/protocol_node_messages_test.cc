// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <limits>
#include <variant>
#include <vector>

#include "control/protocol/node_messages.h"
#include "dataplane/model/staleness.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::protocol;

namespace {

const JobKey kKey = *job_key_from_hex("00112233445566778899aabbccddeeff");

/// In both messages no field has its default value.
const JobSettings kOddSettings{512,    65536,    false, Compensation::kCarry, 3,
                               800000, 30000000, 5,     GrantChoice::kFalse,  7,
                               250,    6,        2};

const Report kOddReport{kKey, 98, 99,   0xfffffff1, 100, 97,         true, false,
                        101,  6,  1000, 8,          3,   "train.py", true};

std::vector<NodeMessage> one_of_each() {
  return {Join{kKey, 1, 1000, 8, {0, 7}, "train.py", true},
          WaitingFor{kKey, 2, 6, {1, 2, 3}, {7}},
          Refused{kKey, 3, {7}, "rank 7 is there twice"},
          Prepare{kKey,
                  4,
                  98,
                  99,
                  8,
                  kOddSettings,
                  "train.py",
                  std::vector<std::byte>(300, std::byte{5}),
                  true,
                  true,
                  {0, 0xffff}},
          Prepared{kKey, 99, true, 0xfffffff0},
          Commit{kKey, 99, 0xfffffff1},
          Leave{kKey, 99, 7, true},
          Failed{kKey, 99, "node w2 is silent"},
          Finished{kKey, 99},
          DescribeBucket{kKey, 99, std::vector<std::byte>(700, std::byte{6})},
          BucketBounds{kKey, 99, 0.25F, std::vector<std::byte>(700, std::byte{7})},
          PlanRefused{kKey, 99, "no memory"},
          Abort{kKey, 99, "node w2 does not answer the plan"},
          PlanEnded{kKey, 98},
          Replan{kKey, 5, PlanKind::kSharded, {1023, 0}, {7}},
          ReplanAnswer{kKey, 5, true, 99, 0xfffffff1, "sharded"},
          EndPlan{kKey, 98},
          Dismiss{kKey, 98},
          ReportLinks{{},
                      {{7, 0, 155'000'000, true, 80, 1000, 30000, 2000, 15000, 100, 3000},
                       {0, 0, 0, false, 0, 0, 0, 0, 0, 0, 0}}},
          kOddReport,
          AskReport{kKey, 98},
          AskPlan{kKey, 98, 99},
          PlanIs{kKey, 98, 99, std::vector<std::byte>(300, std::byte{8})},
          AskTables{kKey, 98}};
}

RejectReason reason_of(const std::vector<std::byte>& bytes) {
  const auto parsed = parse_node_message(bytes);
  return parsed.ok() ? RejectReason::kCount : parsed.rejection.reason;
}

}  // namespace

TEST_CASE("node messages come through unchanged") {
  for (const NodeMessage& message : one_of_each()) {
    INFO("message " << message.index());
    const std::vector<std::byte> bytes = encode(message);
    const auto parsed = parse_node_message(bytes);
    REQUIRE(parsed.ok());
    CHECK(parsed.message->index() == message.index());
    CHECK(encode(*parsed.message) == bytes);
  }
  const auto join = parse_node_message(encode(one_of_each()[0]));
  CHECK(std::get<Join>(*join.message).key == kKey);
  CHECK(std::get<Join>(*join.message).user == 1000);
  CHECK(std::get<Join>(*join.message).ranks == std::vector<std::uint16_t>{0, 7});
  CHECK(std::get<Join>(*join.message).label == "train.py");
  CHECK(std::get<Join>(*join.message).may_grant);
  const auto prepare = parse_node_message(encode(one_of_each()[3]));
  CHECK(std::get<Prepare>(*prepare.message).plan.size() == 300);
  CHECK(std::get<Prepare>(*prepare.message).epoch == 99);
  CHECK(std::get<Prepare>(*prepare.message).attempt == 4);
  CHECK(std::get<Prepare>(*prepare.message).settings == kOddSettings);
  CHECK(std::get<Prepare>(*prepare.message).learn_bounds);
  CHECK(std::get<Prepare>(*prepare.message).grants);
  const auto bounds = parse_node_message(encode(one_of_each()[10]));
  CHECK(std::get<BucketBounds>(*bounds.message).learn_budget == 0.25F);
  CHECK(std::get<BucketBounds>(*bounds.message).part.size() == 700);
  const auto replan = parse_node_message(encode(one_of_each()[14]));
  CHECK(std::get<Replan>(*replan.message).kind == PlanKind::kSharded);
  CHECK(std::get<Replan>(*replan.message).roots == std::vector<std::uint16_t>{1023, 0});
}

TEST_CASE("a report is whole, or says that there is nothing to report") {
  const auto parsed = parse_node_message(encode(kOddReport));
  REQUIRE(parsed.ok());
  const Report& report = std::get<Report>(*parsed.message);
  CHECK(report.next_epoch == 100);
  CHECK(report.epoch_before == 97);
  CHECK(report.ending);
  CHECK_FALSE(report.has_part);
  CHECK(report.newest_epoch == 101);
  CHECK(report.table_parts == 3);
  CHECK(report.grants);
  CHECK(report.label == "train.py");
  Report nothing;
  nothing.first_epoch = 98;
  CHECK(reason_of(encode(nothing)) == RejectReason::kCount);
  Report same = kOddReport;
  same.next_epoch = same.epoch;
  CHECK(reason_of(encode(same)) == RejectReason::kOutOfRange);
  Report empty = kOddReport;
  empty.world_size = 0;
  CHECK(reason_of(encode(empty)) == RejectReason::kOutOfRange);
  Report endless = kOddReport;
  endless.epoch_before = 0;
  CHECK(reason_of(encode(endless)) == RejectReason::kOutOfRange);
}

TEST_CASE("the first bytes of a join are what the wire says") {
  const std::vector<std::byte> bytes =
      encode(Join{kKey, 0x01020304, 0x05060708, 8, {0x0007}, "a", true});
  const std::uint8_t golden[] = {1,    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
                                 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 1,    2,    3,
                                 4,    5,    6,    7,    8,    0,    0,    0,    8,    0,
                                 1,    0,    7,    0,    1,    'a',  1};
  REQUIRE(bytes.size() == sizeof golden);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    INFO("byte " << i);
    CHECK(std::to_integer<std::uint8_t>(bytes[i]) == golden[i]);
  }
}

TEST_CASE("the bytes of what is said about a plan are what the wire says") {
  const auto golden = [](const NodeMessage& message, std::vector<std::uint8_t> after_key) {
    const std::vector<std::byte> bytes = encode(message);
    REQUIRE(bytes.size() == 1 + kKey.size() + after_key.size());
    for (std::size_t i = 0; i < after_key.size(); ++i) {
      INFO("byte " << i << " after the key");
      CHECK(std::to_integer<std::uint8_t>(bytes[1 + kKey.size() + i]) == after_key[i]);
    }
    return std::to_integer<int>(bytes[0]);
  };
  CHECK(golden(Prepared{kKey, 0x01020304, true, 0x05060708}, {1, 2, 3, 4, 1, 5, 6, 7, 8}) == 5);
  CHECK(golden(Commit{kKey, 0x01020304, 0x05060708}, {1, 2, 3, 4, 5, 6, 7, 8}) == 6);
  CHECK(golden(PlanRefused{kKey, 0x01020304, "no"}, {1, 2, 3, 4, 0, 2, 'n', 'o'}) == 12);
  CHECK(golden(Abort{kKey, 0x01020304, "no"}, {1, 2, 3, 4, 0, 2, 'n', 'o'}) == 13);
  CHECK(golden(PlanEnded{kKey, 0x01020304}, {1, 2, 3, 4}) == 14);
  CHECK(golden(Replan{kKey, 0x01020304, PlanKind::kSharded, {0x0102}, {0x0304}},
               {1, 2, 3, 4, 1, 0, 1, 1, 2, 0, 1, 3, 4}) == 15);
  CHECK(golden(ReplanAnswer{kKey, 0x01020304, true, 5, 6, "x"},
               {1, 2, 3, 4, 1, 0, 0, 0, 5, 0, 0, 0, 6, 0, 1, 'x'}) == 16);
  CHECK(golden(EndPlan{kKey, 0x01020304}, {1, 2, 3, 4}) == 17);
  CHECK(golden(Dismiss{kKey, 0x01020304}, {1, 2, 3, 4}) == 18);
}

TEST_CASE("settings that no configuration can have are rejected") {
  const auto reason = [](JobSettings settings) {
    return reason_of(encode(Prepare{kKey, 1, 1, 1, 1, settings, "", {}}));
  };
  CHECK(reason({}) == RejectReason::kCount);
  CHECK(reason({kMinBlockBytes, kMinBlockBytes, true}) == RejectReason::kCount);
  CHECK(reason({kMaxBlockBytes, kMaxRoundBytes, true}) == RejectReason::kCount);
  CHECK(reason({0, kMaxRoundBytes, true}) == RejectReason::kOutOfRange);
  CHECK(reason({kMinBlockBytes - 64, kMaxRoundBytes, true}) == RejectReason::kOutOfRange);
  CHECK(reason({kMaxBlockBytes + 64, kMaxRoundBytes, true}) == RejectReason::kOutOfRange);
  CHECK(reason({kMinBlockBytes + 32, kMaxRoundBytes, true}) == RejectReason::kOutOfRange);
  CHECK(reason({kMinBlockBytes, 0, true}) == RejectReason::kOutOfRange);
  CHECK(reason({kMinBlockBytes, kMinBlockBytes - 64, true}) == RejectReason::kOutOfRange);
  CHECK(reason({kMinBlockBytes, kMaxRoundBytes + 64, true}) == RejectReason::kOutOfRange);
  CHECK(reason({kMinBlockBytes, kMaxRoundBytes - 32, true}) == RejectReason::kOutOfRange);

  CHECK(reason({512, 512, true, static_cast<Compensation>(3)}) == RejectReason::kOutOfRange);
  CHECK(reason({512, 512, true, Compensation::kZero, UINT32_MAX, 1000001}) ==
        RejectReason::kOutOfRange);
  CHECK(reason({512, 512, true, Compensation::kZero, 0, 0, UINT64_MAX}) ==
        RejectReason::kOutOfRange);
  CHECK(reason({512, 512, true, Compensation::kZero, 0, 0, 0, UINT64_MAX}) ==
        RejectReason::kOutOfRange);
  CHECK(reason({.grants = static_cast<GrantChoice>(3)}) == RejectReason::kOutOfRange);
  CHECK(reason({.selections = kMaxSelections, .average_every = UINT32_MAX}) ==
        RejectReason::kCount);
  CHECK(reason({.selections = kMaxSelections + 1}) == RejectReason::kOutOfRange);
  CHECK(reason({.staleness = kMaxStalenessSteps}) == RejectReason::kCount);
  CHECK(reason({.staleness = kMaxStalenessSteps + 1}) == RejectReason::kOutOfRange);

  constexpr std::size_t kAuthenticateAt = 1 + 16 + 4 * 4 + 2 * 4;
  std::vector<std::byte> bytes = encode(Prepare{kKey, 1, 1, 1, 1, {}, "", {}});
  REQUIRE(bytes[kAuthenticateAt] == std::byte{1});
  bytes[kAuthenticateAt] = std::byte{2};
  CHECK(reason_of(bytes) == RejectReason::kOutOfRange);
}

TEST_CASE("a node message that is cut or goes on is rejected") {
  for (const NodeMessage& message : one_of_each()) {
    std::vector<std::byte> bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      INFO("message " << message.index() << " cut to " << size);
      CHECK(reason_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}) !=
            RejectReason::kCount);
    }
    bytes.push_back(std::byte{0});
    CHECK(reason_of(bytes) == RejectReason::kTruncated);
  }
}

TEST_CASE("a node message out of range is rejected") {
  CHECK(reason_of(encode(Join{kKey, 0, 0, 8, {0}, ""})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Join{kKey, 1, 0, 0, {0}, ""})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Join{kKey, 1, 0, 1025, {0}, ""})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Join{kKey, 1, 0, 8, {8}, ""})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Join{kKey, 1, 0, 8, {3, 2, 3}, ""})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Commit{kKey, 0})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Leave{kKey, 1, 1024, true})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Refused{kKey, 1, {1024}, ""})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Prepare{kKey, 1, 2, 1, 1, {}, "", {}})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Prepare{kKey, 1, 0, 1, 1, {}, "", {}})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Prepared{kKey, 0, true, 1})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(EndPlan{kKey, 0})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Dismiss{kKey, 0})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Replan{kKey, 0, PlanKind::kStar, {}})) == RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Replan{kKey, 1, static_cast<PlanKind>(kPlanKindNames.size()), {}})) ==
        RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Replan{kKey, 1, PlanKind::kStar, {kMaxNodes}})) ==
        RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Replan{kKey, 1, PlanKind::kStar, {3, 4, 3}})) ==
        RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Replan{kKey, 1, PlanKind::kStar, {}, {3, 3}})) ==
        RejectReason::kOutOfRange);
  CHECK(reason_of(encode(Replan{kKey, 1, PlanKind::kStar, {}, {kMaxNodes}})) ==
        RejectReason::kOutOfRange);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float budget : {-0.1F, 0.51F, nan})
    CHECK(reason_of(encode(BucketBounds{kKey, 1, budget, {}})) == RejectReason::kOutOfRange);
  std::vector<std::byte> leave = encode(Leave{kKey, 1, 3, true});
  leave.back() = std::byte{2};
  CHECK(reason_of(leave) == RejectReason::kOutOfRange);
  std::vector<std::byte> unknown = encode(Commit{kKey, 1});
  unknown.front() = std::byte{std::variant_size_v<NodeMessage> + 1};
  CHECK(reason_of(unknown) == RejectReason::kUnknownType);
  unknown.front() = std::byte{0};
  CHECK(reason_of(unknown) == RejectReason::kUnknownType);
  CHECK(reason_of(std::vector<std::byte>(kMaxNodeMessageBytes + 1)) == RejectReason::kTooLong);
}

TEST_CASE("the longest node messages fit") {
  std::vector<std::uint16_t> ranks(kMaxRanks);
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<std::uint16_t>(i);
  std::vector<std::uint16_t> nodes(kMaxNodes);
  std::iota(nodes.begin(), nodes.end(), std::uint16_t{0});
  const auto waiting = parse_node_message(encode(WaitingFor{kKey, 1, kMaxRanks, ranks, nodes}));
  REQUIRE(waiting.ok());
  CHECK(std::get<WaitingFor>(*waiting.message).missing == ranks);
  CHECK(std::get<WaitingFor>(*waiting.message).unheard == nodes);

  const std::vector<std::byte> part(kMaxBucketPartBytes, std::byte{1});
  const auto describe = parse_node_message(encode(DescribeBucket{kKey, 1, part}));
  REQUIRE(describe.ok());
  CHECK(std::get<DescribeBucket>(*describe.message).part == part);

  const std::vector<std::byte> plan(kMaxPlanBytes, std::byte{1});
  const std::string label(5000, 'l');
  const auto prepare =
      parse_node_message(encode(Prepare{kKey, 1, 1, 1, kMaxRanks, {}, label, plan}));
  REQUIRE(prepare.ok());
  CHECK(std::get<Prepare>(*prepare.message).plan == plan);
  CHECK(std::get<Prepare>(*prepare.message).label.size() == kMaxNodeTextBytes);
}

TEST_CASE("a report of links has so many, of different senders, and in range") {
  const auto reason = [](auto change) {
    LinkSample sample{3, 0, 1000, false, 50, 10, 20, 10, 30, 40, 10};
    change(sample);
    return reason_of(encode(ReportLinks{{}, {sample}}));
  };
  CHECK(reason([](LinkSample&) {}) == RejectReason::kCount);
  const auto out_of_range = RejectReason::kOutOfRange;
  CHECK(reason([](LinkSample& s) { s.from = kMaxNodes; }) == out_of_range);
  CHECK(reason([](LinkSample& s) { s.bits_per_s = kMaxLinkBitsPerSecond + 1; }) == out_of_range);
  CHECK(reason([](LinkSample& s) { s.rate_confidence = 101; }) == out_of_range);
  CHECK(reason([](LinkSample& s) { s.rate_age_ms = kMaxLinkAgeMs + 1; }) == out_of_range);
  CHECK(reason([](LinkSample& s) { s.rtt_us = kMaxLinkRttUs + 1; }) == out_of_range);
  CHECK(reason([](LinkSample& s) { s.loss_ppm = kMaxLinkLossPpm + 1; }) == out_of_range);
  CHECK(reason([](LinkSample& s) { s.loss_confidence = 101; }) == out_of_range);
  CHECK(reason_of(encode(ReportLinks{{}, {LinkSample{}, LinkSample{}}})) == out_of_range);
  std::vector<LinkSample> many(kMaxReportedLinks);
  for (std::size_t i = 0; i < many.size(); ++i) many[i].from = static_cast<std::uint16_t>(i);
  std::vector<std::byte> bytes = encode(ReportLinks{{}, many});
  CHECK(reason_of(bytes) == RejectReason::kCount);
  constexpr std::size_t kCountAt = 1 + sizeof(JobKey);
  bytes[kCountAt + 1] = std::byte{kMaxReportedLinks + 1};
  CHECK(reason_of(bytes) == out_of_range);
  bytes[kCountAt + 1] = std::byte{kMaxReportedLinks - 1};
  CHECK(reason_of(bytes) == RejectReason::kTruncated);
}
