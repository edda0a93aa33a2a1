// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What peers may send to this node in this job. The node's scheduler decides; a job tells.
#include <algorithm>

#include "dataplane/base/assert.h"
#include "dataplane/job/job.h"

namespace gradplane::job {

bool Job::join(grants::GrantScheduler& grants, std::uint16_t index) {
  GP_ASSERT(grants_ == nullptr && config_.grants);
  grants_ = &grants;
  grant_index_ = index;
  while (sources_.size() < config_.peers.size()) {
    const auto source = grants.add_source(index);
    if (!source) {
      leave();
      return false;
    }
    sources_.push_back(*source);
  }
  return true;
}

void Job::leave() {
  if (grants_ == nullptr) return;
  for (const grants::GrantScheduler::Source source : sources_) grants_->remove_source(source);
  sources_.clear();
  grants_ = nullptr;
}

/// So many blocks of the round have come, or will never: the progress of the job's iteration here,
/// which is what MLTCP calls bytes_ratio.
void Job::note_come(std::size_t slot, std::uint32_t blocks) {
  if (grants_ == nullptr) return;
  incoming_->on_settled(slot, 0, blocks);
  grants_->set_job_progress(grant_index_, incoming_->ratio(0));
}

/// Who may have few blocks on their way waits for each ack: it comes when half of them are here.
std::uint32_t Job::ack_every() const {
  if (sources_.empty()) return hop::kAckEveryPackets;
  return std::clamp<std::uint32_t>(grants_->unscheduled_for(sources_[0]) / 2, 1,
                                   hop::kAckEveryPackets);
}

wire::GrantBody Job::grant_of(std::uint16_t peer) const {
  return {.total_blocks = grants_->view(sources_[peer]).total_blocks,
          .unscheduled_blocks = grants_->unscheduled_for(sources_[peer])};
}

Job::Outgoing Job::write_grant(std::uint16_t peer, std::span<std::byte> out, Instant now) {
  const wire::Header h = header_for(wire::PacketType::kGrant, 0, 0, now);
  const std::size_t bytes = wire::write_grant(out, h, grant_of(peer));
  ++counters_.grants_sent;
  return finish_packet(peer, out.first(bytes));
}

}  // namespace gradplane::job
