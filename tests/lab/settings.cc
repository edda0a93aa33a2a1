// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/settings.h"

#include <algorithm>
#include <array>

#include "control/config/units.h"

namespace gradplane::lab {
namespace {

constexpr std::size_t kMaxNameBytes = 16;
// Shares are integers of 1e-9.
constexpr std::int64_t kWhole = 1'000'000'000;
constexpr std::array kShareUnits = {config::Unit{"%", kWhole / 100}};
// With this limit, a frame's bits in nanoseconds times the longest delay fit into 64 bits.
constexpr std::int64_t kMaxRate = 1'000'000'000'000;
constexpr Duration kMaxTime = Duration::seconds(3600);

template <typename T>
void lay_over(const std::optional<T>& change, T& value) {
  if (change) value = *change;
}

}  // namespace

void SettingsChange::apply_to(LinkSettings& settings) const {
  lay_over(rate_bits_per_second, settings.rate_bits_per_second);
  lay_over(delay, settings.delay);
  lay_over(jitter, settings.jitter);
  lay_over(queue_bytes, settings.queue_bytes);
  lay_over(ecn_threshold_bytes, settings.ecn_threshold_bytes);
  lay_over(loss, settings.loss);
  lay_over(reorder, settings.reorder);
  lay_over(duplicate_share, settings.duplicate_share);
}

void Reader::error(const Tree& at, const std::string& key, std::string reason) {
  std::optional<std::string> value;
  if (at.kind == Tree::Kind::kScalar) value = at.scalar;
  errors_.push_back({file_, at.line, key, value, std::move(reason)});
}

bool Reader::is_map(const Tree& tree, const std::string& key) {
  if (tree.kind == Tree::Kind::kMap) return true;
  error(tree, key, "accepted: a map");
  return false;
}

std::optional<Duration> Reader::time(const Tree& tree, const std::string& key) {
  const auto ns = config::parse_with_unit(tree.scalar, config::time_units());
  if (ns && *ns <= kMaxTime.count_ns()) return Duration::ns(*ns);
  error(tree, key, "accepted: a time up to 60 min, such as 20 ms, in ns, us, ms, s or min");
  return std::nullopt;
}

std::optional<double> Reader::share(const Tree& tree, const std::string& key) {
  const auto value = config::parse_with_unit(tree.scalar, kShareUnits);
  if (value && *value <= kWhole) {
    return static_cast<double>(*value) / static_cast<double>(kWhole);
  }
  error(tree, key, "accepted: a share from 0 % to 100 %, such as 0.5 %");
  return std::nullopt;
}

std::optional<std::int64_t> Reader::size(const Tree& tree, const std::string& key) {
  const auto value = config::parse_with_unit(tree.scalar, config::size_units());
  if (!value) error(tree, key, "accepted: a size such as 256 KiB, in B, KiB, MiB or GiB");
  return value;
}

std::optional<std::int64_t> Reader::rate(const Tree& tree, const std::string& key) {
  if (tree.scalar == "unlimited") return 0;
  const auto value = config::parse_with_unit(tree.scalar, config::rate_units());
  if (value && *value > 0 && *value <= kMaxRate) return value;
  error(tree, key,
        "accepted: unlimited, or a rate such as 200 Mbit/s, in bit/s, kbit/s, Mbit/s or Gbit/s");
  return std::nullopt;
}

std::optional<std::string> Reader::name(const Tree& tree, const std::string& key) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  const std::string& text = tree.scalar;
  if (!text.empty() && text.size() <= kMaxNameBytes && std::ranges::all_of(text, fits)) return text;
  error(tree, key, "accepted: a name of 1 to 16 lower-case letters, digits and hyphens");
  return std::nullopt;
}

std::optional<GilbertElliott> Reader::bursts(const Tree& tree, const std::string& key) {
  if (!is_map(tree, key)) return std::nullopt;
  std::optional<double> enter, leave, bad = 1.0, good = 0.0;
  for (const auto& entry : tree.entries) {
    const std::string path = key + "." + entry.key;
    if (entry.key == "enter") {
      enter = share(entry.value, path);
    } else if (entry.key == "leave") {
      leave = share(entry.value, path);
    } else if (entry.key == "bad") {
      bad = share(entry.value, path);
    } else if (entry.key == "good") {
      good = share(entry.value, path);
    } else {
      error(entry.value, path, "unknown; accepted: enter, leave, bad, good");
    }
  }
  if (enter && leave && bad && good) return GilbertElliott{*enter, *leave, *bad, *good};
  error(tree, key, "accepted: a map with enter, leave and, if wanted, bad and good");
  return std::nullopt;
}

std::optional<LossModel> Reader::loss(const Tree& tree, const std::string& key) {
  if (tree.kind != Tree::Kind::kMap) {
    const auto random = share(tree, key);
    return random ? std::optional(LossModel{*random, std::nullopt}) : std::nullopt;
  }
  LossModel model;
  for (const auto& entry : tree.entries) {
    const std::string path = key + "." + entry.key;
    if (entry.key == "random") {
      model.random = share(entry.value, path).value_or(0);
    } else if (entry.key == "gilbert_elliott") {
      model.bursts = bursts(entry.value, path);
    } else {
      error(entry.value, path, "unknown; accepted: random, gilbert_elliott");
    }
  }
  return model;
}

std::optional<Reordering> Reader::reordering(const Tree& tree, const std::string& key) {
  if (!is_map(tree, key)) return std::nullopt;
  std::optional<double> part;
  std::optional<Duration> late;
  for (const auto& entry : tree.entries) {
    const std::string path = key + "." + entry.key;
    if (entry.key == "share") {
      part = share(entry.value, path);
    } else if (entry.key == "delay") {
      late = time(entry.value, path);
    } else {
      error(entry.value, path, "unknown; accepted: share, delay");
    }
  }
  if (part && late) return Reordering{*part, *late};
  error(tree, key, "accepted: a map with share and delay, such as {share: 1 %, delay: 2 ms}");
  return std::nullopt;
}

bool Reader::settings_entry(const config::TreeEntry& entry, const std::string& path,
                            SettingsChange& into) {
  const std::string key = path.empty() ? entry.key : path + "." + entry.key;
  const Tree& value = entry.value;
  if (entry.key == "rate") {
    into.rate_bits_per_second = rate(value, key);
  } else if (entry.key == "delay") {
    into.delay = time(value, key);
  } else if (entry.key == "jitter") {
    into.jitter = time(value, key);
  } else if (entry.key == "queue") {
    into.queue_bytes = size(value, key);
  } else if (entry.key == "ecn_threshold") {
    into.ecn_threshold_bytes = size(value, key);
  } else if (entry.key == "loss") {
    into.loss = loss(value, key);
  } else if (entry.key == "reorder") {
    into.reorder = reordering(value, key);
  } else if (entry.key == "duplicate") {
    into.duplicate_share = share(value, key);
  } else {
    return false;
  }
  return true;
}

SettingsChange Reader::settings(const Tree& tree, const std::string& path) {
  SettingsChange change;
  if (!is_map(tree, path)) return change;
  for (const auto& entry : tree.entries) {
    if (settings_entry(entry, path, change)) continue;
    error(entry.value, path.empty() ? entry.key : path + "." + entry.key,
          "unknown; accepted: rate, delay, jitter, queue, ecn_threshold, loss, reorder, duplicate");
  }
  return change;
}

}  // namespace gradplane::lab
