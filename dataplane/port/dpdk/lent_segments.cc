// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/lent_segments.h"

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "dataplane/base/assert.h"

namespace gradplane::port {

bool LentSegments::insert(rte_mbuf* frame, std::span<const std::byte> lent,
                          std::size_t tail_bytes) noexcept {
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
  rte_mbuf_ext_refcnt_update(&uses_, 1);
  // Nothing writes to a buffer that is sent. Drivers that copy need no bus address.
  rte_pktmbuf_attach_extbuf(middle, const_cast<std::byte*>(lent.data()), RTE_BAD_IOVA, lent_count,
                            &uses_);
  rte_pktmbuf_data_len(middle) = lent_count;

  frame->next = middle;
  middle->next = tail;
  frame->nb_segs = 3;
  rte_pktmbuf_pkt_len(frame) += lent_count;
  return true;
}

}  // namespace gradplane::port
