// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/core_node.h"

#include <cstring>

#include "dataplane/base/assert.h"
#include "tests/support/hosts.h"

namespace gradplane::testing {

CoreNode::CoreNode(job::JobConfig config, const job::Node::Link& link) : node_(config.self, link) {
  if (config.hosts.empty()) name_hosts(config);
  for (aggregate::LocalRank& rank : config.local_ranks) {
    arenas_.push_back(std::make_unique<std::byte[]>(kRoundSlots * config.round_bytes));
    rank.arena = arenas_.back().get();
  }
  job_ = std::make_unique<job::Job>(std::move(config));
  GP_ASSERT(node_.add(job_.get()) == JobRefusal::kNone);
}

const std::byte* CoreNode::slot(std::size_t local_rank, std::uint32_t round) const {
  return arenas_[local_rank].get() + (round % kRoundSlots) * job_->config().round_bytes;
}

job::SubmitResult CoreNode::submit(std::size_t local_rank, std::uint32_t round,
                                   std::uint32_t elements) {
  const std::uint32_t rank = job_->config().local_ranks[local_rank].rank;
  std::byte* at = const_cast<std::byte*>(slot(local_rank, round));
  for (std::uint32_t e = 0; e < elements; ++e) {
    const float value = contribution(round, rank, e);
    std::memcpy(at + e * sizeof value, &value, sizeof value);
  }
  return job_->submit(local_rank, round, elements, ElementType::kFloat32);
}

void CoreNode::deliver(std::uint16_t from, std::span<const std::byte> bytes, Instant now,
                       bool marked) {
  // Copies the packet into a buffer of exactly its size, so that the sanitizer sees reads past its
  // end.
  const std::vector<std::byte> copy(bytes.begin(), bytes.end());
  (void)node_.handle(from, copy, marked, {.at = now, .waited = {}});
}

std::vector<Sent> CoreNode::drain(Instant now, std::size_t buffer_bytes) {
  std::vector<Sent> out;
  while (node_.sum_local(64)) {
  }
  for (;;) {
    std::vector<std::byte> buffer(buffer_bytes);
    const auto packet = node_.poll_transmit(buffer, now);
    if (!packet) return out;
    buffer.resize(packet->length_bytes);
    const auto place = buffer.end() - (packet->lent.empty() ? 0 : wire::kTagBytes);
    buffer.insert(place, packet->lent.begin(), packet->lent.end());
    GP_ASSERT(see(buffer).has_value());
    out.push_back({packet->node, std::move(buffer), packet->group});
  }
}

std::vector<job::Event> CoreNode::events() {
  std::vector<job::Event> out;
  job::Event event;
  while (job_->poll_event(event)) out.push_back(event);
  return out;
}

float CoreNode::element(std::size_t local_rank, std::uint32_t round, std::uint32_t index) const {
  float value;
  std::memcpy(&value, slot(local_rank, round) + index * sizeof value, sizeof value);
  return value;
}

float* CoreNode::at(std::size_t local_rank, std::uint32_t round, std::uint32_t index) {
  std::byte* begin = arenas_[local_rank].get() + (round % kRoundSlots) * job_->config().round_bytes;
  return reinterpret_cast<float*>(begin) + index;
}

bool CoreNode::holds_sum(std::size_t local_rank, std::uint32_t round,
                         std::uint32_t elements) const {
  std::vector<std::uint16_t> ranks;
  for (std::uint16_t r = 0; r < job_->config().world_size; ++r) ranks.push_back(r);
  return holds_sum_of(ranks, local_rank, round, elements);
}

bool CoreNode::holds_sum_of(std::span<const std::uint16_t> ranks, std::size_t local_rank,
                            std::uint32_t round, std::uint32_t elements) const {
  for (std::uint32_t e = 0; e < elements; ++e) {
    float sum = 0;
    for (const std::uint16_t rank : ranks) sum += contribution(round, rank, e);
    if (element(local_rank, round, e) != sum) return false;
  }
  return true;
}

std::uint64_t CoreNode::drops(hop::Drop reason) const {
  const auto i = static_cast<std::size_t>(reason);
  return job_->counters().drops[i] + node_.counters().drops[i];
}

}  // namespace gradplane::testing
