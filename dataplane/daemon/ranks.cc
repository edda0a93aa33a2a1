// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/daemon/ranks.h"

#include "dataplane/ipc/doorbell.h"

namespace gradplane::daemon {

Result<NewChannel> make_channel(std::size_t round_bytes) {
  auto channel = ipc::Channel::create({.slot_count = kRoundSlots, .slot_bytes = round_bytes});
  if (!channel) return channel.error();
  auto wake = ipc::create_doorbell();
  if (!wake) return wake.error();
  return NewChannel{.channel = std::make_shared<engine::RankChannel>(engine::RankChannel{
                        std::move(channel.value()), std::move(wake.value().ring)}),
                    .trainer_listens = std::move(wake.value().listen)};
}

}  // namespace gradplane::daemon
