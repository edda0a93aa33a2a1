// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "control/protocol/object_reader.h"
#include "control/protocol/socket_messages.h"
#include "dataplane/model/staleness.h"

namespace gradplane::protocol {

namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 48;

std::uint32_t read_u32(ObjectReader& in, const char* name, std::uint64_t min = 0,
                       std::uint64_t max = kMaxU32) {
  return static_cast<std::uint32_t>(in.integer(name, min, max));
}

ClientMessage read_client_hello(ObjectReader& in) {
  ClientHello m;
  m.version = read_u32(in, "version");
  const std::string role = in.text("role", 16, Presence::kRequired);
  if (role != "rank" && role != "operator")
    in.reject(RejectReason::kOutOfRange, "role", "must be rank or operator");
  m.role = role == "rank" ? Role::kRank : Role::kOperator;
  m.pid = read_u32(in, "pid");
  return m;
}

ClientMessage read_attach(ObjectReader& in) {
  Attach m;
  const std::string key = in.text("key", 2 * m.key.size(), Presence::kRequired);
  if (const auto parsed = job_key_from_hex(key))
    m.key = *parsed;
  else
    in.reject(RejectReason::kOutOfRange, "key", "must be 32 hex digits");
  m.world_size = read_u32(in, "world_size", 1, kMaxRanks);
  m.rank = read_u32(in, "rank", 0, m.world_size == 0 ? 0 : m.world_size - 1);
  m.label = in.text("label", kMaxLabelBytes, Presence::kOptional);
  m.run_id = in.text("run_id", kMaxRunIdBytes, Presence::kOptional);
  return m;
}

ClientMessage read_bucket(ObjectReader& in, Rejection& rejection) {
  RegisterBucket m;
  m.bucket = read_u32(in, "bucket", 1, kMaxBuckets);
  const std::uint32_t type = read_u32(in, "element_type", 1, kElementTypes.size());
  if (in.ok()) m.element_type = static_cast<ElementType>(type);
  m.total = read_u32(in, "total", 1, kMaxTensorsPerBucket);
  m.first = read_u32(in, "first", 0, m.total == 0 ? 0 : m.total - 1);
  const json* tensors = in.array("tensors", m.total - m.first);
  if (tensors == nullptr) return m;
  if (tensors->empty()) in.reject(RejectReason::kOutOfRange, "tensors", "must hold at least one");
  m.tensors.reserve(tensors->size());
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < tensors->size() && in.ok(); ++i) {
    const std::string where = "tensors[" + std::to_string(i) + "]";
    if (!(*tensors)[i].is_object()) {
      in.reject(RejectReason::kWrongType, where, "must be an object");
      break;
    }
    ObjectReader tensor((*tensors)[i], rejection, where + ".");
    BucketTensor& out = m.tensors.emplace_back();
    out.name = tensor.text("name", kMaxTensorNameBytes, Presence::kOptional);
    out.offset_elements = tensor.integer("offset", end, kMaxBucketElements - 1);
    out.elements = tensor.integer("elements", 1, kMaxBucketElements - out.offset_elements);
    end = out.offset_elements + out.elements;
  }
  return m;
}

ClientMessage read_drift(ObjectReader& in) {
  Drift m;
  m.step = in.integer("step", 0, kMaxU64);
  m.distance = in.magnitude("distance");
  m.norm = in.magnitude("norm");
  return m;
}

ClientMessage read_rounds(ObjectReader& in) {
  RoundsRequest m;
  m.job = read_u32(in, "job");
  m.epoch = read_u32(in, "epoch");
  m.after = in.integer("after", 0, kMaxU64);
  m.last = read_u32(in, "last");
  return m;
}

std::vector<std::string> read_nodes(ObjectReader& in, const char* member, std::size_t max_count) {
  std::vector<std::string> names;
  const json* list = in.array(member, max_count);
  if (list == nullptr) return names;
  for (const json& node : *list) {
    if (!node.is_string() || node.get_ref<const std::string&>().size() > kMaxLabelBytes) {
      in.reject(RejectReason::kOutOfRange, member, "must be a list of names of nodes");
      break;
    }
    const std::string name = printable(node.get_ref<const std::string&>(), kMaxLabelBytes);
    if (std::find(names.begin(), names.end(), name) != names.end())
      in.reject(RejectReason::kOutOfRange, member, "must name each node once");
    names.push_back(name);
  }
  return names;
}

ClientMessage read_replan(ObjectReader& in) {
  ReplanRequest m;
  m.job = read_u32(in, "job", 1);
  const std::string plan = in.text("plan", 16, Presence::kRequired);
  const auto kind = std::find(kPlanKindNames.begin(), kPlanKindNames.end(), plan);
  if (kind == kPlanKindNames.end())
    in.reject(RejectReason::kOutOfRange, "plan", "must be a kind of plan");
  else
    m.plan = static_cast<PlanKind>(kind - kPlanKindNames.begin());
  m.roots = read_nodes(in, "roots", kMaxTrees);
  if (in.has("without")) m.without = read_nodes(in, "without", kMaxNodes);
  return m;
}

bool read_require(ObjectReader& in) {
  return in.has("require") && in.boolean("require");
}

DaemonMessage read_daemon_hello(ObjectReader& in) {
  DaemonHello m;
  m.version = read_u32(in, "version");
  m.node = in.text("node", kMaxLabelBytes, Presence::kRequired);
  m.software = in.text("software", kMaxLabelBytes, Presence::kRequired);
  m.require = read_require(in);
  return m;
}

DaemonMessage read_replanned(ObjectReader& in) {
  Replanned m;
  m.epoch = read_u32(in, "epoch");
  m.activation_round = read_u32(in, "activation_round");
  m.text = in.text("text", kMaxReasonBytes, Presence::kRequired);
  return m;
}

DaemonMessage read_error(ObjectReader& in) {
  SocketError m;
  m.reason = in.text("reason", kMaxReasonBytes, Presence::kRequired);
  m.require = read_require(in);
  return m;
}

DaemonMessage read_attached(ObjectReader& in) {
  Attached m;
  m.slot_count = read_u32(in, "slot_count", 1);
  m.slot_bytes = in.integer("slot_bytes", 1, kMaxBytes);
  m.total_bytes = in.integer("total_bytes", 1, kMaxBytes);
  m.core_count = read_u32(in, "core_count", 1);
  return m;
}

DaemonMessage read_waiting(ObjectReader& in) {
  Waiting m;
  if (const json* missing = in.array("missing", kMaxMissingNamed)) {
    for (const json& rank : *missing) {
      if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() >= kMaxRanks) {
        in.reject(RejectReason::kOutOfRange, "missing", "must be a list of ranks");
        break;
      }
      m.missing.push_back(rank.get<std::uint32_t>());
    }
  }
  m.missing_count = read_u32(in, "missing_count", 0, kMaxRanks);
  m.reason = in.text("reason", kMaxReasonBytes, Presence::kRequired);
  return m;
}

DaemonMessage read_ready(ObjectReader& in) {
  Ready m;
  m.epoch = read_u32(in, "epoch");
  m.nodes = read_u32(in, "nodes", 1, kMaxNodes);
  if (in.has("first_round")) m.first_round = read_u32(in, "first_round");
  if (in.has("selections")) m.selections = read_u32(in, "selections", 0, kMaxSelections);
  if (in.has("average_every")) m.average_every = read_u32(in, "average_every");
  if (in.has("staleness")) m.staleness = read_u32(in, "staleness", 0, kMaxStalenessSteps);
  return m;
}

/// Whether a text stays within kMaxClientValues and kMaxClientDepth. It looks at each byte once,
/// before anything is built. Every value but the first follows a bracket, a comma or a colon, so
/// the number of brackets and commas bounds the number of values.
bool is_simple(std::string_view text) {
  std::size_t values = 0;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++values;
      if (++depth > kMaxClientDepth) return false;
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
    } else if (c == ',') {
      ++values;
    }
  }
  return values <= kMaxClientValues;
}

/// Reads the object and its `type`, or sets a rejection.
json read_object(std::string_view text, std::string& type, Rejection& rejection) {
  if (text.size() > kMaxSocketMessageBytes) {
    rejection = {RejectReason::kTooLong, "the message has more than 64 KiB"};
    return {};
  }
  json object = json::parse(text, nullptr, false);
  if (!object.is_object()) {
    rejection = {RejectReason::kNotAnObject, "the message is not a JSON object"};
    return {};
  }
  ObjectReader in(object, rejection);
  type = in.text("type", 32, Presence::kRequired);
  return object;
}

template <typename Message>
Parsed<Message> finish(Message message, Rejection rejection, std::string_view type) {
  Parsed<Message> result;
  if (rejection.reason == RejectReason::kCount) {
    result.message = std::move(message);
    return result;
  }
  if (!type.empty()) rejection.text = std::string(type) + ": " + rejection.text;
  result.rejection = std::move(rejection);
  return result;
}

}  // namespace

Parsed<ClientMessage> parse_client_message(std::string_view text) {
  Rejection rejection;
  std::string type;
  if (text.size() <= kMaxSocketMessageBytes && !is_simple(text)) {
    rejection = {RejectReason::kTooComplex,
                 "the message has more than " + std::to_string(kMaxClientValues) +
                     " values, or is nested deeper than " + std::to_string(kMaxClientDepth)};
    return finish(ClientMessage(), std::move(rejection), type);
  }
  const json object = read_object(text, type, rejection);
  ObjectReader in(object, rejection);
  ClientMessage message;
  if (in.ok()) {
    if (type == "hello") {
      message = read_client_hello(in);
    } else if (type == "attach") {
      message = read_attach(in);
    } else if (type == "bucket") {
      message = read_bucket(in, rejection);
    } else if (type == "detach") {
      message = Detach{in.boolean("clean")};
    } else if (type == "drift") {
      message = read_drift(in);
    } else if (type == "status") {
      message = StatusRequest{};
    } else if (type == "bounds") {
      message = BoundsRequest{read_u32(in, "job"), read_u32(in, "bucket"), read_u32(in, "tensor")};
    } else if (type == "rounds") {
      message = read_rounds(in);
    } else if (type == "topology") {
      message = TopologyRequest{in.boolean("why")};
    } else if (type == "replan") {
      message = read_replan(in);
    } else {
      in.reject(RejectReason::kUnknownType, "type", "must be a message that a client sends");
    }
  }
  return finish(std::move(message), std::move(rejection), type);
}

Parsed<DaemonMessage> parse_daemon_message(std::string_view text) {
  Rejection rejection;
  std::string type;
  json object = read_object(text, type, rejection);
  ObjectReader in(object, rejection);
  DaemonMessage message;
  if (in.ok()) {
    if (type == "hello") {
      message = read_daemon_hello(in);
    } else if (type == "attached") {
      message = read_attached(in);
    } else if (type == "waiting") {
      message = read_waiting(in);
    } else if (type == "ready") {
      message = read_ready(in);
    } else if (type == "failed") {
      message = JobFailed{in.text("reason", kMaxReasonBytes, Presence::kRequired)};
    } else if (type == "replanned") {
      message = read_replanned(in);
    } else if (type == "error") {
      message = read_error(in);
    } else if (type == "status" || type == "bounds" || type == "rounds" || type == "topology") {
      object.erase("type");
      if (type == "status") message = StatusReply{object.dump()};
      if (type == "bounds") message = BoundsReply{object.dump()};
      if (type == "rounds") message = RoundsReply{object.dump()};
      if (type == "topology") message = TopologyReply{object.dump()};
    } else {
      in.reject(RejectReason::kUnknownType, "type", "must be a message that the daemon sends");
    }
  }
  return finish(std::move(message), std::move(rejection), type);
}

}  // namespace gradplane::protocol
