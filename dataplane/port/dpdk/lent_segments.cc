// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/lent_segments.h"

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "dataplane/base/assert.h"

namespace gradplane::port {

rte_mbuf_ext_shared_info* LentSegments::uses_of(std::span<const std::byte> lent,
                                                std::size_t tail_bytes) noexcept {
  if (!can_lend() || tail_bytes > kMaxTailBytes) return nullptr;
  return dma_ == nullptr ? &copied_ : dma_->find(lent, last_region_);
}

bool LentSegments::insert(rte_mbuf* frame, std::span<const std::byte> lent, std::size_t tail_bytes,
                          rte_mbuf_ext_shared_info& uses) noexcept {
  GP_ASSERT(frame->nb_segs == 1 && tail_bytes <= kMaxTailBytes &&
            tail_bytes <= rte_pktmbuf_data_len(frame));
  std::array<rte_mbuf*, 2> segments;
  if (rte_pktmbuf_alloc_bulk(pool_, segments.data(), segments.size()) != 0) return false;
  auto& [middle, tail] = segments;

  const auto tail_count = static_cast<std::uint16_t>(tail_bytes);
  rte_pktmbuf_data_len(frame) = static_cast<std::uint16_t>(frame->data_len - tail_count);
  std::memcpy(rte_pktmbuf_mtod(tail, void*),
              rte_pktmbuf_mtod_offset(frame, void*, rte_pktmbuf_data_len(frame)), tail_bytes);
  rte_pktmbuf_data_len(tail) = tail_count;

  const auto lent_count = static_cast<std::uint16_t>(lent.size());
  rte_mbuf_ext_refcnt_update(&uses, 1);
  // Memory for DMA has its virtual addresses on the bus. Drivers that copy need no bus address.
  const rte_iova_t bus =
      dma_ == nullptr ? RTE_BAD_IOVA : reinterpret_cast<std::uintptr_t>(lent.data());
  // Nothing writes to a buffer that is sent.
  rte_pktmbuf_attach_extbuf(middle, const_cast<std::byte*>(lent.data()), bus, lent_count, &uses);
  rte_pktmbuf_data_len(middle) = lent_count;

  frame->next = middle;
  middle->next = tail;
  frame->nb_segs = 3;
  rte_pktmbuf_pkt_len(frame) += lent_count;
  return true;
}

}  // namespace gradplane::port
