// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "trainer-shim/group/exchange_schedule.h"
#include "trainer-shim/group/group_session.h"
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// The parameters of one DDP reducer on this rank.
struct Replica {
  explicit Replica(const Tensors& of) : parameters(of) {}

  const Tensors parameters;
  const std::shared_ptr<ExchangeSchedule> schedule = std::make_shared<ExchangeSchedule>();
  std::mutex mutex;
  std::weak_ptr<GroupSession> session;  // the one that carried its last gradients
};

/// The replicas of this process, by the address of their reducer. Any thread.
class Replicas {
 public:
  void add(const void* reducer, const Tensors& parameters);
  void remove(const void* reducer);
  std::shared_ptr<Replica> find(const void* reducer);

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Replica>> replicas_;
};

/// Averages the parameters, or measures their drift, if the schedule says that it is due. Call it
/// at the beginning of a forward pass, in the trainer's thread. It waits for the other ranks as an
/// all_reduce does, and throws what an all_reduce throws.
void average_if_due(Replica& replica);

}  // namespace gradplane::shim
