// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/config/tree.h"
#include "tests/lab/link.h"

namespace gradplane::lab {

/// New settings of a link. Settings that are not given stay as they are.
struct SettingsChange {
  std::optional<std::int64_t> rate_bits_per_second;
  std::optional<Duration> delay;
  std::optional<Duration> jitter;
  std::optional<std::int64_t> queue_bytes;
  std::optional<std::int64_t> ecn_threshold_bytes;
  std::optional<LossModel> loss;
  std::optional<Reordering> reorder;
  std::optional<double> duplicate_share;

  void apply_to(LinkSettings& settings) const;
};

/// Reads YAML, and so JSON, and collects the errors in it. Each error has its line and says what
/// would be accepted.
class Reader {
 public:
  using Tree = config::Tree;
  using Errors = std::vector<config::ConfigError>;

  Reader(std::string file, Errors& errors) : file_(std::move(file)), errors_(errors) {}

  void error(const Tree& at, const std::string& key, std::string reason);

  /// Adds an error if `tree` is not a map.
  bool is_map(const Tree& tree, const std::string& key);
  /// Reads an entry of a map if its key is a link setting. Returns false for other keys.
  bool settings_entry(const config::TreeEntry& entry, const std::string& path,
                      SettingsChange& into);
  /// Reads a map that has only link settings.
  SettingsChange settings(const Tree& tree, const std::string& path);

  std::optional<Duration> time(const Tree& tree, const std::string& key);
  std::optional<double> share(const Tree& tree, const std::string& key);
  std::optional<std::int64_t> size(const Tree& tree, const std::string& key);
  std::optional<std::int64_t> rate(const Tree& tree, const std::string& key);
  /// Reads the name of a host, a site or a link: lower-case letters, digits and hyphens.
  std::optional<std::string> name(const Tree& tree, const std::string& key);

 private:
  std::optional<LossModel> loss(const Tree& tree, const std::string& key);
  std::optional<GilbertElliott> bursts(const Tree& tree, const std::string& key);
  std::optional<Reordering> reordering(const Tree& tree, const std::string& key);

  std::string file_;
  Errors& errors_;
};

}  // namespace gradplane::lab
