// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/relays.h"

namespace gradplane::session {

void Relays::watch(Instant now) {
  silent_ = nodes_;
  settled_at_ = now + kRelayGrace;
}

void Relays::on_connected(api::NodeId node) {
  if (!nodes_.contains(node)) return;
  if (silent_.erase(node) != 0) ++version_;
}

void Relays::on_lost(api::NodeId node) {
  if (nodes_.contains(node) && silent_.insert(node).second) ++version_;
}

}  // namespace gradplane::session
