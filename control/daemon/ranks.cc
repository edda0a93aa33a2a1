// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dataplane/ipc/doorbell.h"

namespace gradplane::daemon {
namespace {

session::TablePart table_part(const protocol::RegisterBucket& bucket) {
  session::TablePart part;
  part.bucket = bucket.bucket;
  part.type = bucket.element_type;
  part.total = bucket.total;
  part.first = bucket.first;
  for (const protocol::BucketTensor& tensor : bucket.tensors) {
    api::BoundedTensor& out = part.tensors.emplace_back();
    out.name = tensor.name;
    out.offset_elements = static_cast<std::uint32_t>(tensor.offset_elements);
    out.elements = static_cast<std::uint32_t>(tensor.elements);
  }
  return part;
}

/// The last owner's end gives the memory back to `lent`, which deletes the channel.
std::shared_ptr<engine::RankChannel> share(std::unique_ptr<engine::RankChannel> channel,
                                           const std::shared_ptr<LentMemory>& lent) {
  if (lent == nullptr) return channel;
  lent->add(channel->channel.memory());
  return {channel.release(), [lent](engine::RankChannel* left) {
            lent->remove(left->channel.memory(), [left] { delete left; });
          }};
}

}  // namespace

Result<TakenBucket> take_bucket(Rank& rank, const protocol::RegisterBucket& said) {
  const bool had_room = rank.tables.left_out() == 0;
  auto table = rank.tables.add(table_part(said));
  if (!table) return table.error();
  TakenBucket taken{.whole = std::move(table.value()), .refusal = {}};
  if (had_room && rank.tables.left_out() > 0) {
    taken.refusal = fmt::format("with bucket {} the job has more than {} tensors", said.bucket,
                                session::kMaxTensorsPerJob);
  }
  return taken;
}

Result<NewChannel> make_channel(std::size_t round_bytes, std::size_t core_count,
                                const std::shared_ptr<LentMemory>& lent) {
  auto channel = ipc::Channel::create({.slot_count = kRoundSlots,
                                       .slot_bytes = round_bytes,
                                       .core_count = static_cast<std::uint32_t>(core_count)});
  if (!channel) return channel.error();
  auto wake = ipc::create_doorbell();
  if (!wake) return wake.error();
  auto memory = channel.value().open_for_trainer();
  if (!memory) return memory.error();
  return NewChannel{.channel = share(std::make_unique<engine::RankChannel>(engine::RankChannel{
                                         std::move(channel.value()), std::move(wake.value().ring)}),
                                     lent),
                    .trainer_memory = std::move(memory.value()),
                    .trainer_listens = std::move(wake.value().listen)};
}

void LeftMemory::add(session::RankHandle handle, Rank rank) {
  left_.emplace(handle, Left{.user = rank.user, .channel = std::move(rank.channel)});
}

std::optional<session::RankHandle> LeftMemory::free(Table::iterator left) {
  const std::shared_ptr<engine::RankChannel>& channel = left->second.channel;
  // Jobs that the poll loop has not given back own the channel, too.
  if (channel.use_count() > 1 || !channel->channel.take_back()) return std::nullopt;
  const session::RankHandle handle = left->first;
  left_.erase(left);
  return handle;
}

std::optional<session::RankHandle> LeftMemory::free_one_of(std::uint32_t user) {
  for (auto left = left_.begin(); left != left_.end(); ++left) {
    if (left->second.user != user) continue;
    if (const auto freed = free(left)) return freed;
  }
  return std::nullopt;
}

std::optional<session::RankHandle> LeftMemory::free_one() {
  for (std::size_t look = 0; look < std::min(kLooks, left_.size()); ++look) {
    auto left = left_.upper_bound(looked_at_);
    if (left == left_.end()) left = left_.begin();
    looked_at_ = left->first;
    if (const auto freed = free(left)) return freed;
  }
  return std::nullopt;
}

}  // namespace gradplane::daemon
