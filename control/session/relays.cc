// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/relays.h"

#include <algorithm>
#include <iterator>

namespace gradplane::session {

void Relays::watch(Instant now) {
  silent_.clear();
  std::set_difference(nodes_.begin(), nodes_.end(), answering_.begin(), answering_.end(),
                      std::inserter(silent_, silent_.end()));
  settled_at_ = now + kRelayGrace;
}

void Relays::on_connected(api::NodeId node) {
  if (!nodes_.contains(node)) return;
  answering_.insert(node);
  if (silent_.erase(node) != 0) ++version_;
}

void Relays::on_lost(api::NodeId node) {
  answering_.erase(node);
  if (nodes_.contains(node) && silent_.insert(node).second) ++version_;
}

}  // namespace gradplane::session
