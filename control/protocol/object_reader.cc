// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/protocol/object_reader.h"

#include <cmath>
#include <utility>

namespace gradplane::protocol {

ObjectReader::ObjectReader(const nlohmann::json& object, Rejection& rejection, std::string where)
    : object_(object), rejection_(rejection), where_(std::move(where)) {}

void ObjectReader::reject(RejectReason reason, std::string_view name, std::string_view accepted) {
  if (!ok()) return;
  rejection_.reason = reason;
  rejection_.text = where_;
  rejection_.text += name;
  rejection_.text += ": ";
  rejection_.text += accepted;
}

const nlohmann::json* ObjectReader::member(const char* name, Presence presence) {
  if (!ok()) return nullptr;
  const auto found = object_.find(name);
  if (found != object_.end()) return &*found;
  if (presence == Presence::kRequired) reject(RejectReason::kMissingMember, name, "is missing");
  return nullptr;
}

std::uint64_t ObjectReader::integer(const char* name, std::uint64_t min, std::uint64_t max) {
  const nlohmann::json* value = member(name, Presence::kRequired);
  if (value == nullptr) return 0;
  const std::string accepted =
      "must be a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  if (!value->is_number_integer()) {
    reject(RejectReason::kWrongType, name, accepted);
    return 0;
  }
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() < min ||
      value->get<std::uint64_t>() > max) {
    reject(RejectReason::kOutOfRange, name, accepted);
    return 0;
  }
  return value->get<std::uint64_t>();
}

double ObjectReader::magnitude(const char* name) {
  const nlohmann::json* value = member(name, Presence::kRequired);
  if (value == nullptr) return 0;
  constexpr std::string_view kAccepted = "must be a finite number that is not negative";
  if (!value->is_number()) {
    reject(RejectReason::kWrongType, name, kAccepted);
    return 0;
  }
  const auto number = value->get<double>();
  if (!std::isfinite(number) || number < 0) {
    reject(RejectReason::kOutOfRange, name, kAccepted);
    return 0;
  }
  return number;
}

bool ObjectReader::boolean(const char* name) {
  const nlohmann::json* value = member(name, Presence::kRequired);
  if (value == nullptr) return false;
  if (!value->is_boolean()) {
    reject(RejectReason::kWrongType, name, "must be true or false");
    return false;
  }
  return value->get<bool>();
}

std::string ObjectReader::text(const char* name, std::size_t max_bytes, Presence presence) {
  const nlohmann::json* value = member(name, presence);
  if (value == nullptr) return {};
  const std::string accepted = "must be text of at most " + std::to_string(max_bytes) + " bytes";
  if (!value->is_string()) {
    reject(RejectReason::kWrongType, name, accepted);
    return {};
  }
  const auto& raw = value->get_ref<const std::string&>();
  if (raw.size() > max_bytes) {
    reject(RejectReason::kOutOfRange, name, accepted);
    return {};
  }
  return printable(raw, max_bytes);
}

const nlohmann::json* ObjectReader::array(const char* name, std::size_t max_count) {
  const nlohmann::json* value = member(name, Presence::kRequired);
  if (value == nullptr) return nullptr;
  const std::string accepted = "must be a list of at most " + std::to_string(max_count);
  if (!value->is_array()) {
    reject(RejectReason::kWrongType, name, accepted);
    return nullptr;
  }
  if (value->size() > max_count) {
    reject(RejectReason::kOutOfRange, name, accepted);
    return nullptr;
  }
  return value;
}

}  // namespace gradplane::protocol
