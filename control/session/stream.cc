// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/stream.h"

#include <algorithm>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::session {

bool SendStream::push(std::span<const std::byte> message) {
  GP_ASSERT(!message.empty() && message.size() <= protocol::kMaxNodeMessageBytes);
  const std::size_t count = (message.size() + kMaxFrameBytes - 1) / kMaxFrameBytes;
  if (frames_.size() + count > kMaxQueuedFrames) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto piece = message.subspan(
        i * kMaxFrameBytes, std::min(kMaxFrameBytes, message.size() - i * kMaxFrameBytes));
    Frame& frame = frames_.emplace_back();
    frame.body.assign(piece.begin(), piece.end());
    frame.flags = kHasFrame;
    if (i == 0) frame.flags |= kFirstFrame;
    if (i + 1 == count) frame.flags |= kLastFrame;
  }
  return true;
}

void SendStream::on_ack(std::uint32_t acknowledged, std::uint32_t selective) {
  const std::size_t window = std::min<std::size_t>(frames_.size(), kLinkWindow);
  const std::uint32_t done = acknowledged - first_sequence_;
  if (done > window) return;  // an old acknowledgement that came late
  frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(done));
  first_sequence_ = acknowledged;
  for (std::size_t i = 0; i + 1 < kLinkWindow && i + 1 < frames_.size(); ++i)
    if ((selective >> i & 1) != 0) frames_[i + 1].acknowledged = true;
}

SendStream::Frame* SendStream::next_due(Instant now, std::uint32_t& sequence) {
  const std::size_t window = std::min<std::size_t>(frames_.size(), kLinkWindow);
  for (std::size_t i = 0; i < window; ++i) {
    if (frames_[i].acknowledged || frames_[i].due > now) continue;
    sequence = first_sequence_ + static_cast<std::uint32_t>(i);
    return &frames_[i];
  }
  return nullptr;
}

Instant SendStream::next_deadline() const {
  Instant deadline = Instant::never();
  const std::size_t window = std::min<std::size_t>(frames_.size(), kLinkWindow);
  for (std::size_t i = 0; i < window; ++i)
    if (!frames_[i].acknowledged) deadline = std::min(deadline, frames_[i].due);
  return deadline;
}

DatagramDrop ReceiveStream::accept(const Datagram& datagram,
                                   std::vector<std::vector<std::byte>>& messages) {
  const std::uint32_t ahead = datagram.sequence - expected_;
  if (ahead >= UINT32_MAX / 2) return DatagramDrop::kDuplicate;
  if (ahead >= kLinkWindow) return DatagramDrop::kBeyondWindow;
  Slot& slot = slots_[datagram.sequence % kLinkWindow];
  if (slot.filled) return DatagramDrop::kDuplicate;
  slot.filled = true;
  slot.flags = datagram.flags;
  slot.body.assign(datagram.body.begin(), datagram.body.end());

  while (slots_[expected_ % kLinkWindow].filled) {
    Slot& next = slots_[expected_ % kLinkWindow];
    if (!append(next, messages)) return DatagramDrop::kBadMessage;
    next = Slot();
    ++expected_;
  }
  return DatagramDrop::kCount;
}

std::uint32_t ReceiveStream::selective() const {
  std::uint32_t bits = 0;
  for (std::uint32_t i = 0; i + 1 < kLinkWindow; ++i)
    if (slots_[(expected_ + 1 + i) % kLinkWindow].filled) bits |= std::uint32_t{1} << i;
  return bits;
}

bool ReceiveStream::append(Slot& slot, std::vector<std::vector<std::byte>>& messages) {
  const bool first = (slot.flags & kFirstFrame) != 0;
  if (first == inside_message_) return false;
  if (partial_.size() + slot.body.size() > protocol::kMaxNodeMessageBytes) return false;
  partial_.insert(partial_.end(), slot.body.begin(), slot.body.end());
  inside_message_ = (slot.flags & kLastFrame) == 0;
  if (!inside_message_) messages.push_back(std::exchange(partial_, {}));
  return true;
}

}  // namespace gradplane::session
