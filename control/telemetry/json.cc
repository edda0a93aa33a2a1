// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "control/telemetry/fields.h"

namespace gradplane::telemetry {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStateNames = {"waiting", "ready", "failed", "ended"};
static_assert(kStateNames.size() == static_cast<std::size_t>(JobState::kEnded) + 1);
// Ranks and peers that a shortened report tries to keep, in turn.
constexpr std::size_t kMaxKept = std::max(kMaxRanks, kMaxNodes);

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    object_[name] = write(value);
  }

  template <typename T>
  static Json write(const T& value) {
    if constexpr (std::same_as<T, JobState>) {
      return std::string(job_state_name(value));
    } else if constexpr (std::is_class_v<T> && !std::is_convertible_v<T, Json>) {
      Writer writer;
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

/// Reads the members that are there. The first wrong one is remembered and ends the reading.
class Reader {
 public:
  Reader(const Json& object, std::string where, std::string& error)
      : object_(object), where_(std::move(where)), error_(error) {
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
      error_ = fmt::format("{}: {} is accepted", where.empty() ? "status" : where, accepted);
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

  void read(const Json& json, const std::string& where, std::string& value) {
    if (!json.is_string() || json.get_ref<const std::string&>().size() > kMaxTextBytes) {
      return fail(where, fmt::format("a text of at most {} bytes", kMaxTextBytes));
    }
    value = json.get<std::string>();
  }

  void read(const Json& json, const std::string& where, JobState& value) {
    const auto name = std::find_if(kStateNames.begin(), kStateNames.end(), [&json](const char* n) {
      return json.is_string() && json.get_ref<const std::string&>() == n;
    });
    if (name == kStateNames.end()) return fail(where, "waiting, ready, failed or ended");
    value = static_cast<JobState>(name - kStateNames.begin());
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
    Reader reader(json, where, error_);
    fields(reader, value);
  }

  static std::size_t max_count(const JobStatus*) { return kMaxJobsReported; }
  static std::size_t max_count(const RankStatus*) { return kMaxRanks; }
  static std::size_t max_count(const PeerStatus*) { return kMaxNodes; }
  static std::size_t max_count(const std::uint32_t*) { return kMaxMissingNamed; }

  const Json& object_;
  std::string where_;
  std::string& error_;
};

/// Leaves at most `kept` entries and counts the others.
template <typename T>
void shorten(std::vector<T>& entries, std::size_t kept, std::uint32_t& omitted) {
  if (entries.size() <= kept) return;
  omitted += static_cast<std::uint32_t>(entries.size() - kept);
  entries.resize(kept);
}

std::string dump(const StatusReport& report) {
  return Writer::write(report).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string_view job_state_name(JobState state) {
  return kStateNames[static_cast<std::size_t>(state)];
}

double PollStatus::busy_share() const {
  return total_ns == 0 ? 0.0 : static_cast<double>(busy_ns) / static_cast<double>(total_ns);
}

std::string to_json(const StatusReport& report, std::size_t max_bytes) {
  std::string text = dump(report);
  StatusReport shorter;
  for (std::size_t kept = kMaxKept; max_bytes > 0 && text.size() > max_bytes && kept > 0;) {
    kept /= 2;
    shorter = report;
    shorten(shorter.peers, kept, shorter.peers_omitted);
    for (JobStatus& job : shorter.jobs) {
      // Ranks of this host first: nobody else reports those.
      std::stable_partition(job.ranks.begin(), job.ranks.end(),
                            [](const RankStatus& rank) { return rank.attached; });
      shorten(job.ranks, kept, job.ranks_omitted);
    }
    text = dump(shorter);
  }
  return text;
}

Result<StatusReport> from_json(std::string_view text) {
  if (text.size() > kMaxStatusBytes) return Error{"status: longer than any daemon's"};
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Error{"status: not JSON"};
  StatusReport report;
  std::string error;
  Reader reader(json, "", error);
  if (error.empty()) fields(reader, report);
  if (!error.empty()) return Error{error};
  return report;
}

}  // namespace gradplane::telemetry
