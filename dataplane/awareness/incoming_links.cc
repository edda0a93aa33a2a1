// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/incoming_links.h"

namespace gradplane::awareness {

IncomingLinks::IncomingLinks(std::size_t nodes) : link_of_node_(nodes, kUnheard) {
  GP_ASSERT(nodes <= kUnheard);
  links_.reserve(nodes);
}

void IncomingLinks::begin(std::uint16_t node) {
  link_of_node_[node] = static_cast<std::uint16_t>(links_.size());
  links_.push_back({.node = node, .estimate = {}});
}

const LinkEstimate* IncomingLinks::find(std::uint16_t node) const {
  if (node >= link_of_node_.size() || link_of_node_[node] == kUnheard) return nullptr;
  return &links_[link_of_node_[node]].estimate;
}

}  // namespace gradplane::awareness
