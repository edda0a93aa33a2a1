// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/aggregate/coverage.h"

namespace gradplane::aggregate {

/// By sender, the hosts that receive its update, as indices into the plan's hosts.
using Receivers = std::vector<std::vector<std::uint16_t>>;

/// Who receives from whom in the exchanges of a plan (SELMCAST: Luo et al., IEEE TSC 2024, section
/// III). The exchanges of one step of training all name the same selection.
class Selections {
 public:
  Selections(std::size_t hosts, std::size_t host_words, const std::vector<Receivers>& selections)
      : hosts_(hosts),
        words_(host_words),
        count_(selections.size()),
        senders_(count_ * hosts_ * words_) {
    for (std::size_t s = 0; s < count_; ++s) {
      for (std::size_t from = 0; from < selections[s].size(); ++from) {
        for (const std::uint16_t to : selections[s][from]) add_host(senders(s, to), from);
      }
    }
  }

  std::size_t size() const { return count_; }
  /// The hosts whose updates this host receives.
  HostSet senders_to(std::size_t selection, std::size_t to) const {
    return HostSet(senders_).subspan(offset(selection, to), words_);
  }
  bool sends(std::size_t selection, std::size_t from, std::size_t to) const {
    return has_host(senders_to(selection, to), from);
  }

 private:
  std::size_t offset(std::size_t selection, std::size_t to) const {
    return (selection * hosts_ + to) * words_;
  }
  std::span<std::uint64_t> senders(std::size_t selection, std::size_t to) {
    return std::span(senders_).subspan(offset(selection, to), words_);
  }

  std::size_t hosts_;
  std::size_t words_;
  std::size_t count_;
  std::vector<std::uint64_t> senders_;  // a set of hosts for each selection and receiver
};

}  // namespace gradplane::aggregate
