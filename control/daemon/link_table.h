// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "dataplane/api/snapshot.h"
#include "dataplane/base/time.h"

namespace gradplane::daemon {

/// What the poll loop has measured of the links to this node. A snapshot has a part of them, so
/// this keeps the latest of each. Control thread.
class LinkTable {
 public:
  /// Links of a snapshot that has just been filled.
  void update(const api::EngineSnapshot& snapshot, Instant now);
  /// In the order of their nodes: the links of which something is known now. Ages and confidences
  /// go on since the snapshot.
  std::vector<api::LinkSnapshot> links(Instant now) const;

 private:
  struct Entry {
    api::LinkSnapshot link;
    Instant taken_at;
  };
  std::map<std::uint16_t, Entry> entries_;  // by node
};

}  // namespace gradplane::daemon
