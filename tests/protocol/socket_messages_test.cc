// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/protocol/socket_messages.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::protocol;

namespace {

const std::string kKeyText = "00112233445566778899aabbccddeeff";

struct Row {
  std::string text;
  RejectReason reason;
  std::string says;  // a part of the rejection's text
};

std::string attach_with(const std::string& rank, const std::string& world_size,
                        const std::string& rest = "") {
  return R"({"type":"attach","key":")" + kKeyText + R"(","rank":)" + rank + R"(,"world_size":)" +
         world_size + rest + "}";
}

/// A valid bucket message, in which `members` replace its own members.
std::string bucket_with(const std::string& members) {
  const std::vector<std::pair<std::string, std::string>> sound = {
      {"bucket", "1"},
      {"element_type", "1"},
      {"total", "4"},
      {"first", "0"},
      {"tensors", R"([{"offset":0,"elements":1}])"}};
  std::string text = R"({"type":"bucket",)" + members;
  for (const auto& [name, value] : sound)
    if (members.find("\"" + name + "\"") == std::string::npos) text += ",\"" + name + "\":" + value;
  return text + "}";
}

template <typename Message, typename Variant>
const Message& only(const Parsed<Variant>& parsed) {
  REQUIRE(parsed.ok());
  REQUIRE(std::holds_alternative<Message>(*parsed.message));
  return std::get<Message>(*parsed.message);
}

void check_rejected(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    INFO(row.text.substr(0, 200));
    const auto parsed = parse_client_message(row.text);
    REQUIRE(!parsed.ok());
    CHECK(parsed.rejection.reason == row.reason);
    INFO(parsed.rejection.text);
    CHECK(parsed.rejection.text.find(row.says) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("what a client may not say is rejected by name") {
  const std::vector<Row> rows = {
      {"", RejectReason::kNotAnObject, "JSON"},
      {"\x01\x02\xff", RejectReason::kNotAnObject, "JSON"},
      {"[]", RejectReason::kNotAnObject, "JSON"},
      {"{\"type\":\"status\"", RejectReason::kNotAnObject, "JSON"},
      {"{\"type\":\"status\"} x", RejectReason::kNotAnObject, "JSON"},
      {"{\"type\":\"st\xff\"}", RejectReason::kNotAnObject, "JSON"},
      {"{}", RejectReason::kMissingMember, "type"},
      {R"({"type":7})", RejectReason::kWrongType, "type"},
      {R"({"type":"nonsense"})", RejectReason::kUnknownType, "type"},
      {R"({"type":"attached"})", RejectReason::kUnknownType, "type"},
      {R"({"type":"hello","role":"rank","pid":1})", RejectReason::kMissingMember, "version"},
      {R"({"type":"hello","version":1,"role":"king","pid":1})", RejectReason::kOutOfRange, "role"},
      {R"({"type":"hello","version":1,"role":"rank"})", RejectReason::kMissingMember, "pid"},
      {R"({"type":"hello","version":1.0,"role":"rank","pid":1})", RejectReason::kWrongType,
       "version"},
      {R"({"type":"hello","version":1,"role":"rank","pid":4294967296})", RejectReason::kOutOfRange,
       "pid"},
      {attach_with("-1", "4"), RejectReason::kOutOfRange, "rank"},
      {attach_with("4", "4"), RejectReason::kOutOfRange, "rank"},
      {attach_with("0", "0"), RejectReason::kOutOfRange, "world_size"},
      {attach_with("0", "1025"), RejectReason::kOutOfRange, "world_size"},
      {attach_with("\"0\"", "4"), RejectReason::kWrongType, "rank"},
      {attach_with("0", "18446744073709551616"), RejectReason::kWrongType, "world_size"},
      {attach_with("0", "4", R"(,"label":5)"), RejectReason::kWrongType, "label"},
      {attach_with("0", "4", ",\"label\":\"" + std::string(257, 'x') + "\""),
       RejectReason::kOutOfRange, "label"},
      {R"({"type":"attach","key":"0011","rank":0,"world_size":1})", RejectReason::kOutOfRange,
       "key"},
      {R"({"type":"attach","key":")" + std::string(32, 'g') + R"(","rank":0,"world_size":1})",
       RejectReason::kOutOfRange, "key"},
      {R"({"type":"attach","rank":0,"world_size":1})", RejectReason::kMissingMember, "key"},
      {R"({"type":"bounds","job":1,"bucket":0})", RejectReason::kMissingMember, "tensor"},
      {R"({"type":"bounds","job":-1,"bucket":0,"tensor":0})", RejectReason::kOutOfRange, "job"},
      {R"({"type":"rounds","job":1,"epoch":0,"after":-1,"last":1})", RejectReason::kOutOfRange,
       "after"},
      {R"({"type":"detach"})", RejectReason::kMissingMember, "clean"},
      {R"({"type":"replan","job":0,"plan":"star","roots":[]})", RejectReason::kOutOfRange, "job"},
      {R"({"type":"replan","job":1,"plan":"best","roots":[]})", RejectReason::kOutOfRange, "plan"},
      {R"({"type":"replan","job":1,"plan":"star"})", RejectReason::kMissingMember, "roots"},
      {R"({"type":"replan","job":1,"plan":"star","roots":[7]})", RejectReason::kOutOfRange,
       "roots"},
      {R"({"type":"replan","job":1,"plan":"star","roots":["a","a"]})", RejectReason::kOutOfRange,
       "roots: must name each node once"},
      {R"({"type":"drift","step":1,"distance":0})", RejectReason::kMissingMember, "norm"},
      {R"({"type":"drift","step":-1,"distance":0,"norm":1})", RejectReason::kOutOfRange, "step"},
      {R"({"type":"drift","step":1,"distance":-1e-9,"norm":1})", RejectReason::kOutOfRange,
       "distance"},
      {R"({"type":"drift","step":1,"distance":-1,"norm":1})", RejectReason::kOutOfRange,
       "distance"},
      {R"({"type":"drift","step":1,"distance":0,"norm":-0.5})", RejectReason::kOutOfRange, "norm"},
      {R"({"type":"drift","step":1,"distance":null,"norm":1})", RejectReason::kWrongType,
       "distance"},
      {R"({"type":"drift","step":1,"distance":1e999,"norm":1})", RejectReason::kNotAnObject,
       "JSON"},
      {R"({"type":"detach","clean":1})", RejectReason::kWrongType, "clean"},
      {std::string(kMaxSocketMessageBytes + 1, ' '), RejectReason::kTooLong, "64 KiB"},
      {std::string(kMaxSocketMessageBytes, '['), RejectReason::kTooComplex, "nested"},
  };
  check_rejected(rows);
}

TEST_CASE("what a rank may not say of a bucket is rejected by name") {
  check_rejected({
      {bucket_with(R"("bucket":0)"), RejectReason::kOutOfRange, "bucket"},
      {bucket_with(R"("bucket":4097)"), RejectReason::kOutOfRange, "bucket"},
      {bucket_with(R"("element_type":0)"), RejectReason::kOutOfRange, "element_type"},
      {bucket_with(R"("element_type":7)"), RejectReason::kOutOfRange, "element_type"},
      {bucket_with(R"("element_type":"fp32")"), RejectReason::kWrongType, "element_type"},
      {bucket_with(R"("total":0)"), RejectReason::kOutOfRange, "total"},
      {bucket_with(R"("total":16385)"), RejectReason::kOutOfRange, "total"},
      {bucket_with(R"("first":4)"), RejectReason::kOutOfRange, "first"},
      {bucket_with(R"("tensors":{})"), RejectReason::kWrongType, "tensors"},
      {bucket_with(R"("tensors":[])"), RejectReason::kOutOfRange, "tensors"},
      {bucket_with(R"("tensors":[1])"), RejectReason::kWrongType, "tensors[0]"},
      {bucket_with(R"("first":3,"tensors":[{"offset":0,"elements":1},{"offset":1,"elements":1}])"),
       RejectReason::kOutOfRange, "tensors"},
      {bucket_with(R"("tensors":[{"offset":0,"elements":1},{"offset":1}])"),
       RejectReason::kMissingMember, "tensors[1].elements"},
      {bucket_with(R"("tensors":[{"offset":0,"elements":0}])"), RejectReason::kOutOfRange,
       "tensors[0].elements"},
      {bucket_with(R"("tensors":[{"offset":0,"elements":2},{"offset":1,"elements":1}])"),
       RejectReason::kOutOfRange, "tensors[1].offset"},
      {bucket_with(R"("tensors":[{"offset":2097152,"elements":1}])"), RejectReason::kOutOfRange,
       "tensors[0].offset"},
      {bucket_with(R"("tensors":[{"offset":1,"elements":2097152}])"), RejectReason::kOutOfRange,
       "tensors[0].elements"},
      {R"({"type":"bucket","bucket":1,"total":1,"first":0,"tensors":[]})",
       RejectReason::kMissingMember, "element_type"},
  });
}

TEST_CASE("what the daemon may not say is rejected by name") {
  const std::vector<Row> rows = {
      {R"({"type":"attach"})", RejectReason::kUnknownType, "type"},
      {R"({"type":"attached","slot_count":0,"slot_bytes":1,"total_bytes":1})",
       RejectReason::kOutOfRange, "slot_count"},
      {R"({"type":"attached","slot_count":1,"slot_bytes":1})", RejectReason::kMissingMember,
       "total_bytes"},
      {R"({"type":"waiting","missing":[1024],"missing_count":1,"reason":""})",
       RejectReason::kOutOfRange, "missing"},
      {R"({"type":"waiting","missing":[-1],"missing_count":1,"reason":""})",
       RejectReason::kOutOfRange, "missing"},
      {R"({"type":"waiting","missing":["1"],"missing_count":1,"reason":""})",
       RejectReason::kOutOfRange, "missing"},
      {R"({"type":"ready","epoch":1,"nodes":0})", RejectReason::kOutOfRange, "nodes"},
      {R"({"type":"ready","epoch":1,"nodes":1,"selections":9})", RejectReason::kOutOfRange,
       "selections"},
      {R"({"type":"ready","epoch":1,"nodes":1,"selections":true})", RejectReason::kWrongType,
       "selections"},
      {R"({"type":"ready","epoch":1,"nodes":1,"average_every":4294967296})",
       RejectReason::kOutOfRange, "average_every"},
      {R"({"type":"ready","epoch":1,"nodes":1,"staleness":65})", RejectReason::kOutOfRange,
       "staleness"},
      {R"({"type":"failed"})", RejectReason::kMissingMember, "reason"},
      {R"({"type":"error","reason":null})", RejectReason::kWrongType, "reason"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const auto parsed = parse_daemon_message(row.text);
    REQUIRE(!parsed.ok());
    CHECK(parsed.rejection.reason == row.reason);
    INFO(parsed.rejection.text);
    CHECK(parsed.rejection.text.find(row.says) != std::string::npos);
  }
}

TEST_CASE("a client's messages come through unchanged") {
  const auto hello =
      parse_client_message(encode(ClientMessage(ClientHello{1, Role::kOperator, 77})));
  CHECK(only<ClientHello>(hello).role == Role::kOperator);
  CHECK(only<ClientHello>(hello).pid == 77);

  const JobKey key = *job_key_from_hex(kKeyText);
  const auto attach =
      parse_client_message(encode(ClientMessage(Attach{key, 3, 1024, "train.py", "run"})));
  CHECK(only<Attach>(attach).key == key);
  CHECK(only<Attach>(attach).rank == 3);
  CHECK(only<Attach>(attach).world_size == 1024);
  CHECK(only<Attach>(attach).label == "train.py");
  CHECK(only<Attach>(attach).run_id == "run");

  const auto bucket = parse_client_message(encode(ClientMessage(
      RegisterBucket{9, ElementType::kBfloat16, 10, 8, {{"fc.weight", 5, 6}, {"", 11, 1}}})));
  REQUIRE(only<RegisterBucket>(bucket).tensors.size() == 2);
  CHECK(only<RegisterBucket>(bucket).bucket == 9);
  CHECK(only<RegisterBucket>(bucket).element_type == ElementType::kBfloat16);
  CHECK(only<RegisterBucket>(bucket).total == 10);
  CHECK(only<RegisterBucket>(bucket).first == 8);
  CHECK(only<RegisterBucket>(bucket).tensors[0].name == "fc.weight");
  CHECK(only<RegisterBucket>(bucket).tensors[1].offset_elements == 11);
  CHECK(only<RegisterBucket>(bucket).tensors[1].elements == 1);

  CHECK(only<Detach>(parse_client_message(encode(ClientMessage(Detach{true})))).clean);
  CHECK(!only<Detach>(parse_client_message(encode(ClientMessage(Detach{false})))).clean);
  const auto drift = parse_client_message(
      encode(ClientMessage(Drift{0xffff'ffff'ffff'ffff, 0.1, 1.7976931348623157e308})));
  CHECK(only<Drift>(drift).step == 0xffff'ffff'ffff'ffff);
  CHECK(only<Drift>(drift).distance == 0.1);
  CHECK(only<Drift>(drift).norm == 1.7976931348623157e308);
  const auto whole = parse_client_message(R"({"type":"drift","step":0,"distance":0,"norm":3})");
  CHECK(only<Drift>(whole).norm == 3.0);
  only<StatusRequest>(parse_client_message(encode(ClientMessage(StatusRequest{}))));
  const auto bounds = parse_client_message(encode(ClientMessage(BoundsRequest{7, 8, 9})));
  CHECK(only<BoundsRequest>(bounds).job == 7);
  CHECK(only<BoundsRequest>(bounds).bucket == 8);
  CHECK(only<BoundsRequest>(bounds).tensor == 9);
  const auto rounds =
      parse_client_message(encode(ClientMessage(RoundsRequest{7, 8, 0xffff'ffff'ffff'ffff, 9})));
  CHECK(only<RoundsRequest>(rounds).job == 7);
  CHECK(only<RoundsRequest>(rounds).epoch == 8);
  CHECK(only<RoundsRequest>(rounds).after == 0xffff'ffff'ffff'ffff);
  CHECK(only<RoundsRequest>(rounds).last == 9);
  for (const bool why : {false, true}) {
    const ClientMessage topology = TopologyRequest{why};
    CHECK(only<TopologyRequest>(parse_client_message(encode(topology))).why == why);
  }
  const auto replan = parse_client_message(
      encode(ClientMessage(ReplanRequest{7, PlanKind::kSharded, {"w0", "agg"}, {"w2"}})));
  CHECK(only<ReplanRequest>(replan).job == 7);
  CHECK(only<ReplanRequest>(replan).plan == PlanKind::kSharded);
  CHECK(only<ReplanRequest>(replan).roots == std::vector<std::string>{"w0", "agg"});
  CHECK(only<ReplanRequest>(replan).without == std::vector<std::string>{"w2"});
}

TEST_CASE("the daemon's messages come through unchanged") {
  const auto attached =
      parse_daemon_message(encode(DaemonMessage(Attached{16, 4 << 20, (64 << 20) + 12288})));
  CHECK(only<Attached>(attached).slot_count == 16);
  CHECK(only<Attached>(attached).slot_bytes == 4 << 20);
  CHECK(only<Attached>(attached).total_bytes == (64 << 20) + 12288);

  for (const bool require : {false, true}) {
    const DaemonMessage hello = DaemonHello{1, "n0", "0.1.0", require};
    CHECK(only<DaemonHello>(parse_daemon_message(encode(hello))).require == require);
    const DaemonMessage error = SocketError{"no", require};
    CHECK(only<SocketError>(parse_daemon_message(encode(error))).require == require);
  }

  const auto waiting = parse_daemon_message(encode(DaemonMessage(Waiting{{0, 2}, 2, "two"})));
  CHECK(only<Waiting>(waiting).missing == std::vector<std::uint32_t>{0, 2});
  CHECK(only<Waiting>(waiting).missing_count == 2);
  CHECK(only<Waiting>(waiting).reason == "two");

  const auto ready = parse_daemon_message(encode(DaemonMessage(Ready{0xffffffff, 5, 77})));
  CHECK(only<Ready>(ready).first_round == 77);
  const auto old = parse_daemon_message(R"({"type":"ready","epoch":1,"nodes":1})");
  CHECK(only<Ready>(old).first_round == 0);
  CHECK(only<Ready>(old).selections == 0);
  CHECK(only<Ready>(old).average_every == 0);
  CHECK(only<Ready>(old).staleness == 0);
  const auto selective = parse_daemon_message(encode(DaemonMessage(
      Ready{.epoch = 1, .nodes = 3, .selections = 8, .average_every = 100, .staleness = 64})));
  CHECK(only<Ready>(selective).selections == 8);
  CHECK(only<Ready>(selective).average_every == 100);
  CHECK(only<Ready>(selective).staleness == 64);
  CHECK(only<Ready>(ready).epoch == 0xffffffff);
  CHECK(only<Ready>(ready).nodes == 5);
  CHECK(only<JobFailed>(parse_daemon_message(encode(DaemonMessage(JobFailed{"why"})))).reason ==
        "why");
  CHECK(only<SocketError>(parse_daemon_message(encode(DaemonMessage(SocketError{"no"})))).reason ==
        "no");
  const auto hello = parse_daemon_message(encode(DaemonMessage(DaemonHello{1, "n0", "0.1.0"})));
  CHECK(only<DaemonHello>(hello).node == "n0");
  CHECK(only<DaemonHello>(hello).software == "0.1.0");
  CHECK(only<StatusReply>(parse_daemon_message(encode(DaemonMessage(StatusReply{R"({"a":[1]})"}))))
            .json == R"({"a":[1]})");
  const auto replanned =
      parse_daemon_message(encode(DaemonMessage(Replanned{0xffffffff, 0xfffffffe, "star"})));
  CHECK(only<Replanned>(replanned).epoch == 0xffffffff);
  CHECK(only<Replanned>(replanned).activation_round == 0xfffffffe);
  CHECK(only<Replanned>(replanned).text == "star");
  CHECK(only<RoundsReply>(parse_daemon_message(encode(DaemonMessage(RoundsReply{R"({"b":2})"}))))
            .json == R"({"b":2})");
  const DaemonMessage topology = TopologyReply{R"({"c":3})"};
  CHECK(only<TopologyReply>(parse_daemon_message(encode(topology))).json == R"({"c":3})");
}

TEST_CASE("members of a newer peer are tolerated, optional ones may be left out") {
  const auto parsed = parse_client_message(attach_with("1", "2", R"(,"colour":{"x":[1,2]})"));
  CHECK(only<Attach>(parsed).label.empty());
  CHECK(only<Attach>(parsed).run_id.empty());
}

TEST_CASE("text that reaches people holds no control character") {
  const auto parsed =
      parse_client_message(attach_with("0", "1", ",\"label\":\"a\\u001b[2Jb\\n\\u009bc\\u00e9\""));
  CHECK(only<Attach>(parsed).label == "a?[2Jb???c\u00e9");
  CHECK(printable("abc\u00e9", 4) == "abc");
  CHECK(printable("abc\u00e9", 5) == "abc\u00e9");
  CHECK(printable("\u00e9", 1).empty());
  CHECK(printable("\xc2r\xc2", 9) == "\xc2r\xc2");
}

TEST_CASE("what does not fit is cut or refused when it is encoded") {
  std::vector<std::uint32_t> all(1000);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto waiting =
      parse_daemon_message(encode(DaemonMessage(Waiting{all, 1000, std::string(5000, 'r')})));
  CHECK(only<Waiting>(waiting).missing.size() == kMaxMissingNamed);
  CHECK(only<Waiting>(waiting).missing_count == 1000);
  CHECK(only<Waiting>(waiting).reason.size() == kMaxReasonBytes);

  const std::string long_json = "{\"a\":\"" + std::string(kMaxSocketMessageBytes, 'x') + "\"}";
  only<SocketError>(parse_daemon_message(encode(DaemonMessage(StatusReply{long_json}))));
  only<SocketError>(parse_daemon_message(encode(DaemonMessage(StatusReply{"[1]"}))));
  only<JobFailed>(parse_daemon_message(encode(DaemonMessage(JobFailed{"bad \xff bytes"}))));
}

TEST_CASE("a key is 32 hex digits, and its id tells nothing of it") {
  const auto key = job_key_from_hex(kKeyText);
  REQUIRE(key.has_value());
  CHECK(to_hex(*key) == kKeyText);
  CHECK(job_key_from_hex("00112233445566778899AABBCCDDEEFF") == key);
  CHECK(!job_key_from_hex(kKeyText + "0").has_value());
  CHECK(!job_key_from_hex(kKeyText.substr(1)).has_value());
  JobKey other = *key;
  other[15] ^= std::byte{1};
  CHECK(job_id_of(*key) != job_id_of(other));
  CHECK(job_id_of(*key) == job_id_of(*key));
}

namespace {

std::string repeated(const std::string& head, const std::string& item, const std::string& tail) {
  std::string text = head + item;
  while (text.size() + item.size() + tail.size() < kMaxSocketMessageBytes) text += "," + item;
  return text + tail;
}

}  // namespace

TEST_CASE("a message of many values is refused before anything is built of it") {
  for (const char* item : {"{}", "[]", "0", "{\"a\":0}", "[[]]"}) {
    const auto parsed = parse_client_message(repeated(R"({"type":"status","a":[)", item, "]}"));
    REQUIRE(!parsed.ok());
    CHECK(parsed.rejection.reason == RejectReason::kTooComplex);
  }
  std::string members = R"({"type":"status")";
  while (members.size() < kMaxSocketMessageBytes - 8) members += R"(,"":0)";
  CHECK(parse_client_message(members + "}").rejection.reason == RejectReason::kTooComplex);
}

TEST_CASE("a message that is nested deep is refused") {
  const auto nested = [](std::size_t depth) {
    return R"({"type":"status","a":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(parse_client_message(nested(kMaxClientDepth - 1)).ok());
  CHECK(parse_client_message(nested(kMaxClientDepth)).rejection.reason ==
        RejectReason::kTooComplex);
}

TEST_CASE("text with brackets and commas in it, and the densest table, are simple") {
  const std::string many(2 * kMaxClientValues, ',');
  CHECK(parse_client_message(R"({"type":"status","a":"\"[[[[[[[[[[)" + many + "\"}").ok());
  std::string tensors = repeated("", R"({"offset":0,"elements":1})", std::string(100, ' '));
  std::size_t count = 1;
  for (const char c : tensors) count += c == '}' ? 1 : 0;
  const auto dense = parse_client_message(
      R"({"type":"bucket","bucket":1,"element_type":1,"total":16384,"first":0,"tensors":[)" +
      tensors.substr(0, tensors.size() - 100) + "]}");
  // All tensors begin at 0, so the message is invalid, but not because it is so dense.
  CHECK(dense.rejection.reason == RejectReason::kOutOfRange);
}
