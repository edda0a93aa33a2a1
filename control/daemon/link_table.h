// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "dataplane/api/snapshot.h"
#include "dataplane/base/time.h"

namespace gradplane::daemon {

/// What the poll loops have measured of the links to this node. A snapshot has a part of them, so
/// this keeps the latest of each. Each core sees the packets to itself alone: of what they say of
/// one link the highest rate counts, because the others' packets are in the way of each, unless it
/// is much older; the smallest round trip; and the loss that is surest. Control thread.
class LinkTable {
 public:
  /// Links of a snapshot that a core has just filled.
  void update(const api::EngineSnapshot& snapshot, Instant now, std::size_t core = 0);
  /// Of the links that an update at this time was about, as many as one report has room for; the
  /// next report goes on with the others.
  std::vector<api::LinkSnapshot> take_updated(Instant now);
  /// In the order of their nodes: the links of which something is known now. Ages and confidences
  /// go on since the snapshot.
  std::vector<api::LinkSnapshot> links(Instant now) const;

 private:
  struct Entry {
    api::LinkSnapshot link;
    Instant taken_at;
  };
  using Key = std::pair<std::uint16_t, std::size_t>;  // node, core
  std::map<Key, Entry> entries_;
  std::size_t next_ = 0;  // that a report begins with, where there are too many for one
};

}  // namespace gradplane::daemon
