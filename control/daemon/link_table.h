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

/// What the poll loops have measured of the links to this node. A snapshot has only some links, so
/// this keeps the latest value of each. Each core sees only the packets to itself. When several
/// cores have measured one link, the values are joined: the highest rate that is not much older
/// than the others, because the packets of other cores make a rate look lower; the smallest round
/// trip; and the loss with the highest confidence. Control thread.
class LinkTable {
 public:
  /// Takes the links of a snapshot that a core has just filled.
  void update(const api::EngineSnapshot& snapshot, Instant now, std::size_t core = 0);
  /// The links that were updated at this time, at most as many as fit one report. The next call
  /// goes on with the others.
  std::vector<api::LinkSnapshot> take_updated(Instant now);
  /// The links of which something is known now, by node. Ages and confidences are those of `now`,
  /// not of the snapshot.
  std::vector<api::LinkSnapshot> links(Instant now) const;

 private:
  struct Entry {
    api::LinkSnapshot link;
    Instant taken_at;
  };
  using Key = std::pair<std::uint16_t, std::size_t>;  // node, core
  std::map<Key, Entry> entries_;
  std::size_t next_ = 0;  // where the next report begins, if there are too many links for one
};

}  // namespace gradplane::daemon
