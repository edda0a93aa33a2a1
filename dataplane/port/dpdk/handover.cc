// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/handover.h"

#include <rte_mbuf.h>

namespace gradplane::port {

Handover::Handover(std::size_t queue_count) : queue_count_(queue_count) {
  if (queue_count == 1) return;
  for (std::size_t pair = 0; pair < queue_count * queue_count; ++pair) {
    rings_.push_back(std::make_unique<Ring>(kHandoverFrames));
  }
}

Handover::~Handover() {
  for (const auto& ring : rings_) {
    for (rte_mbuf** frame = ring->front(); frame != nullptr; frame = ring->front()) {
      rte_pktmbuf_free(*frame);
      ring->pop();
    }
  }
}

std::size_t Handover::take(std::size_t to, std::span<rte_mbuf*> out) noexcept {
  std::size_t count = 0;
  if (rings_.empty()) return count;
  for (std::size_t from = 0; from < queue_count_; ++from) {
    while (count < out.size()) {
      rte_mbuf** frame = ring(from, to).front();
      if (frame == nullptr) break;
      out[count++] = *frame;
      ring(from, to).pop();
    }
  }
  return count;
}

}  // namespace gradplane::port
