// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/telemetry/topology_fields.h"
#include "dataplane/base/result.h"
#include "dataplane/model/core_part.h"
#include "dataplane/model/round_report.h"

/// The archives of fields.h: structs to JSON and back.
namespace gradplane::telemetry {

using Json = nlohmann::ordered_json;

inline constexpr std::array kJobStateNames = {"waiting", "ready", "failed", "ended"};
static_assert(kJobStateNames.size() == static_cast<std::size_t>(JobState::kEnded) + 1);

class JsonWriter {
 public:
  /// One JSON object. Bytes that are not UTF-8 are replaced.
  template <typename Struct>
  static std::string text(const Struct& value) {
    return write(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  template <typename T>
  void operator()(const char* name, const T& value) {
    object_[name] = write(value);
  }

  template <typename T>
  static Json write(const T& value) {
    if constexpr (std::same_as<T, JobState>) {
      return std::string(job_state_name(value));
    } else if constexpr (std::is_class_v<T> && !std::is_convertible_v<T, Json>) {
      JsonWriter writer;
      fields(writer, value);
      return std::move(writer.object_);
    } else {
      return value;
    }
  }

  template <typename T>
  requires(!std::is_arithmetic_v<T>) static Json write(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(write(value));
    return list;
  }

 private:
  Json object_ = Json::object();
};

/// Reads the members that the JSON has. The first wrong one becomes the error and ends the reading.
class JsonReader {
 public:
  /// Reads a struct from untrusted text. `what` names the struct in errors.
  template <typename Struct>
  static Result<Struct> parse(std::string_view text, const char* what) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return Error{std::string(what) + ": not JSON"};
    Struct read;
    std::string error;
    JsonReader reader(json, "", error, what);
    if (error.empty()) fields(reader, read);
    if (!error.empty()) return Error{error};
    return read;
  }

  JsonReader(const Json& object, std::string where, std::string& error, const char* what)
      : object_(object), where_(std::move(where)), error_(error), what_(what) {
    if (!object.is_object()) fail(where_, "an object");
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    if (!error_.empty()) return;
    const auto it = object_.find(name);
    if (it != object_.end()) read(*it, where_.empty() ? name : where_ + "." + name, value);
  }

 private:
  void fail(const std::string& where, std::string_view accepted) {
    if (error_.empty()) {
      error_ = fmt::format("{}: {} is accepted", where.empty() ? what_ : where, accepted);
    }
  }

  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) void read(const Json& json, const std::string& where, T& value) {
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() > std::numeric_limits<T>::max()) {
      fail(where, fmt::format("an integer from 0 to {}", std::numeric_limits<T>::max()));
      return;
    }
    value = json.get<T>();
  }

  void read(const Json& json, const std::string& where, bool& value) {
    if (!json.is_boolean()) return fail(where, "true or false");
    value = json.get<bool>();
  }

  void read(const Json& json, const std::string& where, double& value) {
    if (!json.is_number()) return fail(where, "a number");
    value = json.get<double>();
  }

  void read(const Json& json, const std::string& where, std::string& value) {
    if (!json.is_string() || json.get_ref<const std::string&>().size() > kMaxTextBytes) {
      return fail(where, fmt::format("a text of at most {} bytes", kMaxTextBytes));
    }
    value = json.get<std::string>();
  }

  void read(const Json& json, const std::string& where, JobState& value) {
    const auto name =
        std::find_if(kJobStateNames.begin(), kJobStateNames.end(), [&json](const char* n) {
          return json.is_string() && json.get_ref<const std::string&>() == n;
        });
    if (name == kJobStateNames.end()) return fail(where, "waiting, ready, failed or ended");
    value = static_cast<JobState>(name - kJobStateNames.begin());
  }

  void read(const Json& json, const std::string& where, ReasonCounts& value) {
    if (!json.is_object() || json.size() > kMaxReasons) {
      return fail(where, fmt::format("an object of at most {} counts", kMaxReasons));
    }
    value.clear();
    for (const auto& [reason, count] : json.items()) {
      if (reason.size() > kMaxTextBytes) return fail(where, "a short reason");
      read(count, where + "." + reason, value[reason]);
    }
  }

  template <typename T>
  void read(const Json& json, const std::string& where, std::vector<T>& values) {
    const std::size_t limit = max_count(static_cast<const T*>(nullptr));
    if (!json.is_array() || json.size() > limit) {
      return fail(where, fmt::format("a list of at most {} entries", limit));
    }
    values.assign(json.size(), T{});
    for (std::size_t i = 0; i < values.size() && error_.empty(); ++i) {
      read(json[i], fmt::format("{}[{}]", where, i), values[i]);
    }
  }

  template <typename T>
  requires std::is_class_v<T>
  void read(const Json& json, const std::string& where, T& value) {
    JsonReader reader(json, where, error_, what_);
    fields(reader, value);
  }

  static std::size_t max_count(const JobStatus*) { return kMaxJobsReported; }
  static std::size_t max_count(const RankStatus*) { return kMaxRanks; }
  static std::size_t max_count(const DriftStatus*) { return kMaxLocalRanks; }
  static std::size_t max_count(const CoreStatus*) { return kMaxCores; }
  static std::size_t max_count(const PeerStatus*) { return kMaxNodes; }
  static std::size_t max_count(const LinkStatus*) { return kMaxNodes; }
  static std::size_t max_count(const TopologyNode*) { return kMaxNodes; }
  static std::size_t max_count(const TopologyLink*) { return kMaxTopologyLinks; }
  static std::size_t max_count(const TopologyUse*) { return kMaxTopologyLinks; }
  static std::size_t max_count(const TopologyEdge*) { return kMaxNodes; }
  static std::size_t max_count(const TopologyTree*) { return kMaxTrees; }
  static std::size_t max_count(const TopologyPlan*) { return kMaxTopologyPlanners; }
  static std::size_t max_count(const TopologyJob*) { return kMaxJobs; }
  static std::size_t max_count(const FlowStatus*) { return kMaxNodes; }
  static std::size_t max_count(const std::uint32_t*) { return kMaxMissingNamed; }
  static std::size_t max_count(const BoundsSource*) { return kMaxSourcesNamed; }
  static std::size_t max_count(const BoundsTensor*) { return kMaxTensorsPerPage; }
  static std::size_t max_count(const RoundEntry*) { return kKeptRounds; }
  static std::size_t max_count(const RoundSource*) { return kReportedSources; }
  static std::size_t max_count(const RoundTensor*) { return kReportedTensors; }
  static std::size_t max_count(const std::string*) { return kMaxRootsNamed; }

  const Json& object_;
  std::string where_;
  std::string& error_;
  const char* what_;
};

/// Keeps at most `kept` entries, and adds the number of the others to `omitted`.
template <typename T>
void shorten(std::vector<T>& entries, std::size_t kept, std::uint32_t& omitted) {
  if (entries.size() <= kept) return;
  omitted += static_cast<std::uint32_t>(entries.size() - kept);
  entries.resize(kept);
}

}  // namespace gradplane::telemetry
