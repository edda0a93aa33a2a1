// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/replicas.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "trainer-shim/group/counters.h"
#include "trainer-shim/torch/carried_work.h"
#include "trainer-shim/torch/element_types.h"

namespace gradplane::shim {
namespace {

/// The elements of one sum, and the sums in flight. Together they bound the memory that averaging
/// needs beside the model.
constexpr std::int64_t kChunkElements = std::int64_t{1} << 20;
constexpr std::size_t kChunksInFlight = 4;

/// The type in which parameters are summed. Sums of 16-bit types would lose bits, and Gloo refuses
/// bf16.
at::ScalarType summed_as(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

bool is_averaged(const at::Tensor& t) {
  const auto type = t.defined() ? element_type_of(t.scalar_type()) : std::nullopt;
  return type && is_floating(*type) && (t.device().is_cpu() || t.is_cuda()) &&
         t.layout() == at::kStrided;
}

/// Takes the mean of parameters over all ranks, by sums through the group's session.
class Averaging {
 public:
  Averaging(GroupSession& session, bool writes_back)
      : session_(session), writes_back_(writes_back) {}

  void add(const at::Tensor& parameter) {
    // The alias has its own version counter, so autograd does not notice that the parameter
    // changes. A graph that still holds the parameter is older than the optimizer's step, which
    // autograd does notice.
    const at::Tensor alias = parameter.variable_data();
    const at::Tensor row = alias.contiguous().view({-1});
    for (std::int64_t at = 0; at < row.numel(); at += kChunkElements) {
      add_piece(row.narrow(0, at, std::min(kChunkElements, row.numel() - at)));
    }
    if (writes_back_ && !alias.is_contiguous())
      copies_.emplace_back(alias, row.view(alias.sizes()));
  }

  /// Returns the drift of this rank's parameters before the average. If they are written back, they
  /// are the mean now.
  GroupSession::Drift finish() {
    if (open_.used > 0) send();
    while (!in_flight_.empty()) take_back();
    for (auto& [parameter, mean] : copies_) parameter.copy_(mean);
    return {0, std::sqrt(distance_squared_), std::sqrt(norm_squared_)};
  }

 private:
  struct Piece {
    at::Tensor own;  // a part of a parameter
    std::int64_t at = 0;
  };
  struct Chunk {
    at::Tensor memory;
    std::int64_t used = 0;
    std::vector<Piece> pieces;
    WorkPtr work;
  };

  void add_piece(const at::Tensor& own) {
    const at::ScalarType type = summed_as(own.scalar_type());
    const bool fits = open_.used > 0 && open_.memory.scalar_type() == type &&
                      open_.used + own.numel() <= kChunkElements;
    if (!fits && open_.used > 0) send();
    if (open_.used == 0) open_.memory = at::empty({kChunkElements}, at::dtype(type));
    open_.memory.narrow(0, open_.used, own.numel()).copy_(own);
    open_.pieces.push_back({own, open_.used});
    open_.used += own.numel();
  }

  void send() {
    if (in_flight_.size() == kChunksInFlight) take_back();
    Chunk chunk = std::exchange(open_, {});
    at::Tensor sum = chunk.memory.narrow(0, 0, chunk.used);
    Collective collective;
    collective.data = static_cast<std::byte*>(sum.data_ptr());
    collective.bytes = sum.nbytes();
    collective.type = *element_type_of(sum.scalar_type());
    const Tensors tensors = {sum};
    auto work = c10::make_intrusive<CarriedWork>(nullptr, CarriedWork::kAllReduce,
                                                 TensorLists{tensors}, tensors);
    session_.enqueue(std::make_shared<WorkCompletion>(work), collective,
                     std::make_shared<HostMemory<Tensors>>(tensors));
    chunk.work = std::move(work);
    in_flight_.push_back(std::move(chunk));
  }

  void take_back() {
    const Chunk chunk = std::move(in_flight_.front());
    in_flight_.pop_front();
    chunk.work->wait();
    for (const Piece& piece : chunk.pieces) {
      const at::Tensor mean =
          chunk.memory.narrow(0, piece.at, piece.own.numel()).div_(session_.size());
      const at::Tensor exact_mean = mean.to(at::kDouble);
      const at::Tensor own = piece.own.to(at::kCPU).to(at::kDouble);
      distance_squared_ += (own - exact_mean).square().sum().item<double>();
      norm_squared_ += exact_mean.square().sum().item<double>();
      if (writes_back_) at::Tensor(piece.own).copy_(mean);
    }
  }

  GroupSession& session_;
  const bool writes_back_;
  Chunk open_;
  std::deque<Chunk> in_flight_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // of parameters that are not contiguous
  double distance_squared_ = 0;
  double norm_squared_ = 0;
};

std::uint64_t drift_ppm(const GroupSession::Drift& drift) {
  constexpr double kPpm = 1e6;
  constexpr double kMost = 1e15;  // also if the quotient is infinite
  const double ppm = kPpm * drift.distance / drift.norm;
  if (std::isnan(ppm)) return 0;
  return ppm < kMost ? static_cast<std::uint64_t>(ppm) : static_cast<std::uint64_t>(kMost);
}

}  // namespace

void Replicas::add(const void* reducer, const Tensors& parameters) {
  auto replica = std::make_shared<Replica>(parameters);
  const std::lock_guard lock(mutex_);
  replicas_[reducer] = std::move(replica);
}

void Replicas::remove(const void* reducer) {
  std::shared_ptr<Replica> last;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto found = replicas_.find(reducer);
  if (found == replicas_.end()) return;
  last = std::move(found->second);
  replicas_.erase(found);
}

std::shared_ptr<Replica> Replicas::find(const void* reducer) {
  const std::lock_guard lock(mutex_);
  const auto found = replicas_.find(reducer);
  return found == replicas_.end() ? nullptr : found->second;
}

void average_if_due(Replica& replica) {
  const auto due = replica.schedule->take_due();
  if (due == ExchangeSchedule::Due::kNothing) return;
  std::shared_ptr<GroupSession> session;
  {
    const std::lock_guard lock(replica.mutex);
    session = replica.session.lock();
  }
  if (!session) return;
  const at::NoGradGuard no_history;
  Averaging averaging(*session, due == ExchangeSchedule::Due::kAverage);
  for (const at::Tensor& parameter : replica.parameters) {
    if (is_averaged(parameter)) averaging.add(parameter);
  }
  GroupSession::Drift drift = averaging.finish();
  drift.step = replica.schedule->passes();
  session->report(drift);
  counters().last_drift_ppm = drift_ppm(drift);
  if (due == ExchangeSchedule::Due::kAverage) counters().averages += 1;
}

}  // namespace gradplane::shim
