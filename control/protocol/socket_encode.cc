// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <nlohmann/json.hpp>

#include "control/protocol/socket_messages.h"

namespace gradplane::protocol {

namespace {

using nlohmann::json;

json object_of(const ClientHello& m) {
  return {{"type", "hello"},
          {"version", m.version},
          {"role", m.role == Role::kRank ? "rank" : "operator"},
          {"pid", m.pid}};
}

json object_of(const Attach& m) {
  return {{"type", "attach"},
          {"key", to_hex(m.key)},
          {"rank", m.rank},
          {"world_size", m.world_size},
          {"label", printable(m.label, kMaxLabelBytes)},
          {"run_id", printable(m.run_id, kMaxRunIdBytes)}};
}

json object_of(const RegisterBucket& m) {
  json tensors = json::array();
  for (const BucketTensor& tensor : m.tensors) {
    tensors.push_back({{"name", printable(tensor.name, kMaxTensorNameBytes)},
                       {"offset", tensor.offset_elements},
                       {"elements", tensor.elements}});
  }
  return {{"type", "bucket"},
          {"bucket", m.bucket},
          {"element_type", static_cast<std::uint8_t>(m.element_type)},
          {"total", m.total},
          {"first", m.first},
          {"tensors", std::move(tensors)}};
}

json object_of(const Detach& m) {
  return {{"type", "detach"}, {"clean", m.clean}};
}
json object_of(const Drift& m) {
  return {{"type", "drift"}, {"step", m.step}, {"distance", m.distance}, {"norm", m.norm}};
}
json object_of(const StatusRequest&) {
  return {{"type", "status"}};
}
json object_of(const BoundsRequest& m) {
  return {{"type", "bounds"}, {"job", m.job}, {"bucket", m.bucket}, {"tensor", m.tensor}};
}

json object_of(const RoundsRequest& m) {
  return {
      {"type", "rounds"}, {"job", m.job}, {"epoch", m.epoch}, {"after", m.after}, {"last", m.last}};
}

json object_of(const TopologyRequest& m) {
  return {{"type", "topology"}, {"why", m.why}};
}

json object_of(const ReplanRequest& m) {
  const auto names = [](const std::vector<std::string>& nodes) {
    std::vector<std::string> clean;
    for (const std::string& node : nodes) clean.push_back(printable(node, kMaxLabelBytes));
    return clean;
  };
  return {{"type", "replan"},
          {"job", m.job},
          {"plan", plan_kind_name(m.plan)},
          {"roots", names(m.roots)},
          {"without", names(m.without)}};
}

json object_of(const DaemonHello& m) {
  return {{"type", "hello"},
          {"version", m.version},
          {"node", m.node},
          {"software", m.software},
          {"require", m.require}};
}

json object_of(const Attached& m) {
  return {{"type", "attached"},
          {"slot_count", m.slot_count},
          {"slot_bytes", m.slot_bytes},
          {"total_bytes", m.total_bytes},
          {"core_count", m.core_count}};
}

json object_of(const Waiting& m) {
  const std::size_t named = std::min(m.missing.size(), kMaxMissingNamed);
  return {
      {"type", "waiting"},
      {"missing", std::vector<std::uint32_t>(
                      m.missing.begin(), m.missing.begin() + static_cast<std::ptrdiff_t>(named))},
      {"missing_count", m.missing_count},
      {"reason", printable(m.reason, kMaxReasonBytes)}};
}

json object_of(const Ready& m) {
  return {{"type", "ready"},
          {"epoch", m.epoch},
          {"nodes", m.nodes},
          {"first_round", m.first_round},
          {"selections", m.selections},
          {"average_every", m.average_every},
          {"staleness", m.staleness}};
}

json object_of(const JobFailed& m) {
  return {{"type", "failed"}, {"reason", printable(m.reason, kMaxReasonBytes)}};
}

json object_of(const Replanned& m) {
  return {{"type", "replanned"},
          {"epoch", m.epoch},
          {"activation_round", m.activation_round},
          {"text", printable(m.text, kMaxReasonBytes)}};
}

json object_of(const SocketError& m) {
  return {
      {"type", "error"}, {"reason", printable(m.reason, kMaxReasonBytes)}, {"require", m.require}};
}

json reply_object(const std::string& text, const char* type) {
  json object = json::parse(text, nullptr, false);
  if (!object.is_object()) {
    return object_of(SocketError{std::string("the answer to ") + type + " is not available"});
  }
  object["type"] = type;
  return object;
}

json object_of(const StatusReply& m) {
  return reply_object(m.json, "status");
}
json object_of(const BoundsReply& m) {
  return reply_object(m.json, "bounds");
}
json object_of(const RoundsReply& m) {
  return reply_object(m.json, "rounds");
}
json object_of(const TopologyReply& m) {
  return reply_object(m.json, "topology");
}

template <typename Message>
std::string encode_any(const Message& message) {
  const json object = std::visit([](const auto& m) { return object_of(m); }, message);
  // Bytes that are no UTF-8, as a path may have, are replaced; otherwise dump() would throw.
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string encode(const ClientMessage& message) {
  return encode_any(message);
}

std::string encode(const DaemonMessage& message) {
  std::string text = encode_any(message);
  if (text.size() <= kMaxSocketMessageBytes) return text;
  return encode_any(DaemonMessage(SocketError{"the answer has " + std::to_string(text.size()) +
                                              " bytes, more than one message may have"}));
}

}  // namespace gradplane::protocol
