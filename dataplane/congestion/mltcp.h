// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>

#include "dataplane/congestion/controller.h"
#include "dataplane/model/congestion_settings.h"

namespace gradplane::congestion {

/// MLTCP (Rajasekaran et al., arXiv 2402.09589 and HotNets 2024) over any controller. It multiplies
/// every increase of that controller by F(share of the iteration that is done). The job that is
/// ahead grows faster, until jobs that share a link take turns. Reductions do not change.
class Mltcp final : public Controller {
 public:
  Mltcp(std::unique_ptr<Controller> base, MltcpFunction function);

  std::string_view name() const override { return base_->name(); }
  void on_sent(Instant now, std::uint32_t wire_bytes, std::uint32_t in_flight_blocks) override {
    base_->on_sent(now, wire_bytes, in_flight_blocks);
  }
  void on_ack(const AckEvent& event) override { base_->on_ack(event); }
  void on_loss(const LossEvent& event) override { base_->on_loss(event); }
  void on_tick(Instant now) override { base_->on_tick(now); }
  Instant next_tick() const override { return base_->next_tick(); }
  void on_phase(const Phase& phase) override { set_gain(function_.at(phase.ratio)); }
  void set_link_rate(std::uint64_t bits_per_second) override {
    base_->set_link_rate(bits_per_second);
  }
  void set_gain(double gain) override {
    gain_ = gain;
    base_->set_gain(gain);
  }
  Decision decide(Instant now) const override { return base_->decide(now); }
  Stats stats() const override {
    Stats stats = base_->stats();
    stats.gain = gain_;
    return stats;
  }

 private:
  std::unique_ptr<Controller> base_;
  MltcpFunction function_;
  double gain_ = 1;
};

}  // namespace gradplane::congestion
