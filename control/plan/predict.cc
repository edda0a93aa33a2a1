// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/predict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

namespace gradplane::plan {
namespace {

constexpr double kReorderWindowS = 200e-6;
constexpr double kReorderShare = 0.25;
/// Attempts that are less likely than this are left out of the sum.
constexpr double kNegligible = 1e-6;
constexpr std::size_t kNoMember = ~std::size_t{0};

/// The mean number of attempts after the first that the unluckiest of `blocks` blocks needs.
double attempts(double loss, double blocks) {
  double sum = 0;
  for (double lost = loss; lost > 0; lost *= loss) {
    const double some = -std::expm1(blocks * std::log1p(-lost));
    sum += some;
    if (some < kNegligible) break;
  }
  return sum;
}

struct Hop {
  double up_s = 0;
  double down_s = 0;
};

class Predictor {
 public:
  Predictor(Routes& routes, const api::Plan& plan, const Traffic& traffic)
      : routes_(routes), plan_(plan), traffic_(traffic), bits_(routes.resources(), 0) {
    member_of_.fill(kNoMember);
    for (std::size_t m = 0; m < plan.members.size(); ++m) member_of_[plan.members[m].node] = m;
    const double block = static_cast<double>(traffic.block_bytes);
    block_bits_ = 8 * (block + static_cast<double>(traffic.overhead_bytes));
    blocks_ = std::ceil(static_cast<double>(traffic.bytes) / block);
  }

  Result<Prediction> run() {
    std::uint64_t weights = 0;
    for (const api::Tree& tree : plan_.trees) weights += tree.weight;
    for (const api::Tree& tree : plan_.trees) {
      const double share = static_cast<double>(tree.weight) / static_cast<double>(weights);
      if (Status status = add_tree(tree, share); !status.ok()) return status.error();
    }
    return result();
  }

 private:
  Status add_tree(const api::Tree& tree, double share) {
    hops_.assign(plan_.members.size(), {});
    for (std::size_t m = 0; m < plan_.members.size(); ++m) {
      if (tree.parent[m] == api::kNoNode) continue;
      if (Status status = add_edge(plan_.members[m].node, tree.parent[m], share, hops_[m]);
          !status.ok())
        return status;
    }
    add_latency(tree);
    return Nothing{};
  }

  Status add_edge(api::NodeId child, api::NodeId parent, double share, Hop& hop) {
    const Way up = routes_.between_nodes(child, parent);
    const Way& down = routes_.between_nodes(parent, child);
    if (!up.open || !down.open)
      return Error{node_text(routes_.network(), child) + " and " +
                   node_text(routes_.network(), parent) +
                   " do not reach each other over the network"};
    const double blocks = share * blocks_;
    const double rtt_s = (up.rtt_s + down.rtt_s) / 2;
    hop.up_s = add_way(up, blocks, rtt_s);
    hop.down_s = add_way(down, blocks, rtt_s);
    return Nothing{};
  }

  /// Adds the load of a way to its resources, and returns the seconds that its last block takes.
  double add_way(const Way& way, double blocks, double rtt_s) {
    const double bits = blocks * block_bits_ / (1 - way.loss);
    for (const ResourceId resource : way.resources) bits_[resource] += bits;
    const double in_flight = way.bits_per_s * rtt_s / block_bits_;
    const double last = std::max(1.0, std::min(blocks, in_flight));
    const double repair_s = rtt_s + std::max(kReorderWindowS, rtt_s * kReorderShare);
    return way.rtt_s / 2 + block_bits_ * way.s_per_bit + attempts(way.loss, last) * repair_s;
  }

  void add_latency(const api::Tree& tree) {
    constexpr std::uint16_t kUnknown = UINT16_MAX;
    std::vector<std::uint16_t> depth(plan_.members.size(), kUnknown);
    depth[member_of_[tree.root]] = 0;
    hops_[member_of_[tree.root]] = {};
    Hop slowest;
    std::vector<std::size_t> way_up;
    for (std::size_t m = 0; m < plan_.members.size(); ++m) {
      if (depth[m] == kUnknown && tree.parent[m] == api::kNoNode) continue;
      for (std::size_t at = m; depth[at] == kUnknown; at = member_of_[tree.parent[at]])
        way_up.push_back(at);
      for (; !way_up.empty(); way_up.pop_back()) {
        const std::size_t at = way_up.back();
        const std::size_t above = member_of_[tree.parent[at]];
        depth[at] = static_cast<std::uint16_t>(depth[above] + 1);
        hops_[at].up_s += hops_[above].up_s;
        hops_[at].down_s += hops_[above].down_s;
      }
      height_ = std::max(height_, depth[m]);
      slowest.up_s = std::max(slowest.up_s, hops_[m].up_s);
      slowest.down_s = std::max(slowest.down_s, hops_[m].down_s);
    }
    latency_s_ = std::max(latency_s_, slowest.up_s + slowest.down_s);
  }

  Prediction result() const {
    constexpr double kNsPerS = 1e9;
    const auto in_ns = [](double s) {
      return Duration::ns(static_cast<std::int64_t>(
          std::llround(std::min(s * kNsPerS, static_cast<double>(Duration::max().count_ns())))));
    };
    double transfer_s = 0;
    ResourceId slowest = 0;
    for (ResourceId r = 0; r < bits_.size(); ++r) {
      if (bits_[r] == 0) continue;
      const double time_s = bits_[r] / static_cast<double>(routes_.bits_per_s(r));
      if (time_s <= transfer_s) continue;
      transfer_s = time_s;
      slowest = r;
    }
    const double windows =
        static_cast<double>(traffic_.bytes) / static_cast<double>(traffic_.window_bytes);
    Prediction prediction;
    prediction.bottleneck = transfer_s > 0 ? routes_.name(slowest) : "nothing";
    if (latency_s_ * windows > transfer_s) {
      transfer_s = latency_s_ * windows;
      prediction.bottleneck = "open rounds";
    }
    prediction.transfer = in_ns(transfer_s);
    prediction.latency = in_ns(latency_s_);
    prediction.time = prediction.transfer + prediction.latency;
    prediction.height = height_;
    return prediction;
  }

  Routes& routes_;
  const api::Plan& plan_;
  const Traffic& traffic_;
  std::array<std::size_t, kMaxNodes> member_of_{};
  std::vector<double> bits_;  // by resource
  std::vector<Hop> hops_;     // by member: first of its edge, then of its whole way to the root
  double block_bits_ = 0;
  double blocks_ = 0;
  double latency_s_ = 0;
  std::uint16_t height_ = 0;
};

}  // namespace

Result<Prediction> predict(Routes& routes, const api::Plan& plan, const Traffic& traffic) {
  return Predictor(routes, plan, traffic).run();
}

Result<Prediction> predict(const Network& network, const api::Plan& plan, const Traffic& traffic) {
  Routes routes(network);
  return predict(routes, plan, traffic);
}

std::string text_of(Duration time) {
  std::array<char, 32> text{};
  const double seconds = time.to_seconds();
  constexpr double kExact = 100;
  if (seconds >= kExact)
    std::snprintf(text.data(), text.size(), "%.0f s", seconds);
  else if (seconds >= 1)
    std::snprintf(text.data(), text.size(), "%.3g s", seconds);
  else
    std::snprintf(text.data(), text.size(), "%.3g ms", seconds * 1e3);
  return text.data();
}

std::string text_of_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  if (bytes > 0 && bytes % kMib == 0) return std::to_string(bytes / kMib) + " MiB";
  return std::to_string(bytes) + " B";
}

}  // namespace gradplane::plan
