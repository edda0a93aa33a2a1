// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/property/staleness_lab.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tests/property/compute_times.h"
#include "tests/property/fair_links.h"

namespace gradplane::testing {
namespace {

using plan::Multicast;
using plan::OnlineSelection;
using plan::Replication;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMeanBitsPerS = 40e9;

enum class Doing : std::uint8_t { kComputes, kSends, kWaits, kIsDead };

struct Sender {
  Doing doing = Doing::kComputes;
  double since_s = 0;
  double until_s = 0;  // end of kComputes
};

struct Transfer {
  Multicast multicast;
  Bitmap begun_with;         // a receiver that dies stays in this set
  std::vector<double> left;  // bits to send, by receiver
  std::vector<double> rate;  // in bit/s, by receiver
  double due_s = 0;
  std::uint64_t order = 0;  // smaller ones are sent first
};

class Lab {
 public:
  explicit Lab(const StalenessCase& settings)
      : settings_(settings),
        request_(settings.request),
        random_(settings.seed),
        senders_(settings.ranks),
        staleness_(settings.ranks, settings.bound_rounds),
        meetings_(settings.ranks),
        last_met_(settings.ranks * settings.ranks) {
    std::uniform_real_distribution<double> u(-1, 1);
    for (std::size_t rank = 0; rank < settings.ranks; ++rank) {
      const double up = kMeanBitsPerS * (1 + settings.spread * u(random_));
      const double down = kMeanBitsPerS * (1 + settings.spread * u(random_));
      request_.selection.ranks.push_back(
          {static_cast<std::uint64_t>(up), static_cast<std::uint64_t>(down)});
    }
    for (std::size_t rank = 0; rank < settings.ranks; ++rank) begin_round(rank);
    draw_restart();
  }

  StalenessResult run() {
    while (now_s_ < settings_.horizon_s) step();
    double lived_s = 0;
    result_.fewest_rounds = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (senders_[rank].doing == Doing::kComputes) computed_s_ += now_s_ - senders_[rank].since_s;
      if (senders_[rank].doing == Doing::kIsDead) {
        lived_s += senders_[rank].since_s;
        continue;
      }
      lived_s += now_s_;
      result_.fewest_rounds = std::min(result_.fewest_rounds, staleness_.rounds_done(rank));
    }
    result_.utilisation = computed_s_ / lived_s;
    result_.scale = static_cast<double>(pairs_) /
                    static_cast<double>(std::max<std::uint64_t>(result_.updates, 1) * ranks());
    return result_;
  }

 private:
  std::size_t ranks() const { return settings_.ranks; }

  /// Runs until the next event, and handles it.
  void step() {
    double next_s = settings_.horizon_s;
    for (const Sender& sender : senders_) {
      if (sender.doing == Doing::kComputes) next_s = std::min(next_s, sender.until_s);
    }
    for (const Transfer& transfer : transfers_) {
      for (std::size_t to = 0; to < ranks(); ++to) {
        if (transfer.left[to] > 0 && transfer.rate[to] > 0)
          next_s = std::min(next_s, now_s_ + transfer.left[to] / transfer.rate[to]);
      }
    }
    next_s = std::min(next_s, restart_s_);
    for (const Death& death : settings_.deaths) {
      if (death.at_s > now_s_) next_s = std::min(next_s, death.at_s);
    }
    const double before_s = now_s_;
    send_until(next_s);
    end_transfers();
    for (const Death& death : settings_.deaths) {
      if (death.at_s > before_s && death.at_s <= now_s_) die(death.rank);
    }
    if (now_s_ >= restart_s_) restart();
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (senders_[rank].doing == Doing::kComputes && senders_[rank].until_s <= now_s_)
        end_computing(rank);
    }
    begin_waiting();
    share_links();
  }

  void send_until(double until_s) {
    constexpr double kDoneBits = 1;
    for (Transfer& transfer : transfers_) {
      for (std::size_t to = 0; to < ranks(); ++to) {
        if (transfer.left[to] <= 0) continue;
        transfer.left[to] -= transfer.rate[to] * (until_s - now_s_);
        if (transfer.left[to] < kDoneBits) transfer.left[to] = 0;
        transfer.multicast.remaining_bytes[to] =
            static_cast<std::uint64_t>(std::ceil(transfer.left[to] / 8));
      }
    }
    now_s_ = until_s;
  }

  void begin_round(std::size_t rank) {
    for (std::size_t other = 0; other < ranks(); ++other) {
      const std::uint64_t behind = staleness_.rounds_done(other) + settings_.bound_rounds;
      if (!staleness_.is_gone(other) && staleness_.rounds_done(rank) > behind)
        ++result_.too_far_ahead;
    }
    const double compute = compute_s(settings_.workload, random_);
    senders_[rank] = {Doing::kComputes, now_s_,
                      now_s_ + compute * (rank == 0 ? settings_.straggler : 1)};
  }

  void begin_waiting() {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (senders_[rank].doing == Doing::kWaits && staleness_.may_begin(rank)) begin_round(rank);
    }
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (senders_[rank].doing != Doing::kWaits) continue;
      std::uint64_t slowest = std::numeric_limits<std::uint64_t>::max();
      for (std::size_t other = 0; other < ranks(); ++other) {
        if (senders_[other].doing != Doing::kIsDead)
          slowest = std::min(slowest, staleness_.rounds_done(other));
      }
      if (staleness_.rounds_done(rank) <= slowest + settings_.bound_rounds) ++result_.idle_in_vain;
    }
  }

  void end_computing(std::size_t rank) {
    computed_s_ += senders_[rank].until_s - senders_[rank].since_s;
    senders_[rank] = {Doing::kSends, now_s_, 0};
    Transfer made;
    made.multicast.from = rank;
    made.multicast.receivers = Bitmap(ranks());
    made.multicast.receivers.reset(ranks());
    made.multicast.remaining_bytes.assign(ranks(), 0);
    made.left.assign(ranks(), 0);
    made.rate.assign(ranks(), 0);
    for (std::size_t to = 0; to < ranks(); ++to) {
      if (to == rank || senders_[to].doing == Doing::kIsDead) continue;
      made.multicast.receivers.set(to);
      made.multicast.remaining_bytes[to] = request_.selection.update_bytes;
      made.left[to] = 8 * static_cast<double>(request_.selection.update_bytes);
    }
    made.begun_with = made.multicast.receivers;
    transfers_.push_back(std::move(made));
    select();
  }

  /// How long the staleness bound would keep the rank waiting if its multicast ended now. The end
  /// of another rank's round is estimated from the mean computing time and the times of multicasts.
  double blocked_s(std::size_t rank) const {
    constexpr double kMeanComputeS = 1;
    double longest = 0;
    for (std::size_t other = 0; other < ranks(); ++other) {
      if (!staleness_.waits_for(rank, other, 1)) continue;
      double left_s = 0;
      if (senders_[other].doing == Doing::kComputes) {
        const double factor = other == 0 ? settings_.straggler : 1;
        left_s = std::max(0.0, senders_[other].since_s + kMeanComputeS * factor - now_s_);
        left_s += mean_transfer_s_;
      }
      for (const Transfer& transfer : transfers_) {
        if (transfer.multicast.from == other) left_s = std::max(0.0, transfer.due_s - now_s_);
      }
      longest = std::max(longest, left_s);
    }
    return longest;
  }

  void select() {
    std::vector<Multicast> multicasts;
    for (Transfer& transfer : transfers_) {
      transfer.multicast.blocked_s = blocked_s(transfer.multicast.from);
      transfer.multicast.is_awaited = staleness_.is_awaited(transfer.multicast.from);
      multicasts.push_back(transfer.multicast);
    }
    if (settings_.selector == Selector::kRandom) {
      const auto draw = [&] { return random_(); };
      keep(transfers_.back(),
           select_online_at_random(request_.selection, multicasts.back(), meetings_, draw));
      return;
    }
    const std::vector<OnlineSelection> made =
        settings_.selector == Selector::kOnline
            ? select_online(request_, multicasts, meetings_)
            : select_online_as_published(request_, multicasts, meetings_);
    for (std::size_t m = 0; m < made.size(); ++m) {
      keep(transfers_[m], made[m].receivers);
      transfers_[m].due_s = now_s_ + made[m].seconds;
      if (settings_.sharing == Sharing::kUrgency)
        transfers_[m].order = static_cast<std::uint64_t>(made[m].urgency);
      if (settings_.sharing == Sharing::kTime)
        transfers_[m].order = static_cast<std::uint64_t>(made[m].seconds * 1e12);
    }
  }

  void keep(Transfer& transfer, const Bitmap& receivers) {
    const double whole = 8 * static_cast<double>(request_.selection.update_bytes);
    for (std::size_t to = 0; to < ranks(); ++to) {
      const bool had = transfer.multicast.receivers.test(to);
      if (receivers.test(to) && !had) ++result_.added_again;
      if (receivers.test(to) || !had) continue;
      if (transfer.left[to] < whole) ++result_.dropped;
      transfer.left[to] = 0;
      transfer.multicast.remaining_bytes[to] = 0;
      transfer.begun_with.clear(to);
    }
    transfer.multicast.receivers = receivers;
  }

  void end_transfers() {
    for (std::size_t t = 0; t < transfers_.size();) {
      const std::vector<double>& left = transfers_[t].left;
      if (std::any_of(left.begin(), left.end(), [](double bits) { return bits > 0; })) {
        ++t;
        continue;
      }
      const Transfer ended = std::move(transfers_[t]);
      transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(t));
      end_transfer(ended);
    }
  }

  void end_transfer(const Transfer& ended) {
    const std::size_t from = ended.multicast.from;
    const Bitmap& receivers = ended.multicast.receivers;
    std::size_t others = 0;
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      others += rank != from && senders_[rank].doing != Doing::kIsDead ? 1 : 0;
    const std::size_t least = std::min<std::size_t>(request_.selection.receivers, others);
    if (ended.begun_with.count() < least) ++result_.too_few;
    meetings_.on_update(from, receivers);
    staleness_.on_done(from);
    const std::uint64_t round = staleness_.rounds_done(from);
    for (std::size_t to = 0; to < ranks(); ++to) {
      std::uint64_t& met = last_met_[from * ranks() + to];
      if (receivers.test(to)) met = round;
      result_.digest = result_.digest * 0x9E3779B97F4A7C15 + (receivers.test(to) ? to + 1 : 0);
      if (to == from || senders_[to].doing == Doing::kIsDead) continue;
      if (round - met > request_.selection.freshness) ++result_.too_long_apart;
    }
    result_.digest ^= static_cast<std::uint64_t>(now_s_ * 1e9);
    ++result_.updates;
    pairs_ += receivers.count();
    mean_transfer_s_ += 0.05 * (now_s_ - senders_[from].since_s - mean_transfer_s_);
    senders_[from] = {Doing::kWaits, now_s_, 0};
  }

  void die(std::size_t rank) {
    Sender& sender = senders_[rank];
    if (sender.doing == Doing::kComputes) computed_s_ += now_s_ - sender.since_s;
    sender = {Doing::kIsDead, now_s_, 0};
    staleness_.on_gone(rank);
    std::erase_if(transfers_, [&](const Transfer& t) { return t.multicast.from == rank; });
    for (Transfer& transfer : transfers_) {
      transfer.left[rank] = 0;
      transfer.multicast.receivers.clear(rank);
      transfer.multicast.remaining_bytes[rank] = 0;
    }
    end_transfers();
  }

  void draw_restart() {
    restart_s_ = kNever;
    if (settings_.restarts_per_s <= 0) return;  // std::exponential_distribution takes no such rate
    std::exponential_distribution<double> gap(settings_.restarts_per_s);
    restart_s_ = now_s_ + gap(random_);
  }

  /// A transfer loses what it has sent: to one receiver, or to all receivers of a shared copy.
  void restart() {
    draw_restart();
    if (transfers_.empty()) return;
    Transfer& transfer = transfers_[random_() % transfers_.size()];
    const std::size_t one = random_() % ranks();
    for (std::size_t to = 0; to < ranks(); ++to) {
      const bool is_hit = request_.selection.replication == Replication::kNetwork || to == one;
      if (!is_hit || transfer.left[to] <= 0) continue;
      transfer.multicast.remaining_bytes[to] = request_.selection.update_bytes;
      transfer.left[to] = 8 * static_cast<double>(request_.selection.update_bytes);
      ++result_.restarts;
    }
  }

  void share_links();
  void share_links(std::span<Transfer* const> equals, FairLinks& links);

  const StalenessCase& settings_;
  plan::OnlineRequest request_;
  std::mt19937_64 random_;
  double now_s_ = 0;
  double restart_s_ = kNever;
  std::vector<Sender> senders_;  // by rank
  std::vector<Transfer> transfers_;
  Staleness staleness_;
  plan::Meetings meetings_;
  std::vector<std::uint64_t> last_met_;  // by sender and receiver: the sender's round
  double mean_transfer_s_ = 0.3;
  double computed_s_ = 0;
  std::uint64_t pairs_ = 0;
  StalenessResult result_;
};

void Lab::share_links() {
  std::vector<Transfer*> by_order;
  for (Transfer& transfer : transfers_) by_order.push_back(&transfer);
  std::stable_sort(by_order.begin(), by_order.end(),
                   [](const Transfer* a, const Transfer* b) { return a->order < b->order; });
  FairLinks links(request_.selection.ranks);
  for (auto begin = by_order.begin(); begin != by_order.end();) {
    const auto end = std::find_if(begin, by_order.end(), [&](const Transfer* transfer) {
      return transfer->order != (*begin)->order;
    });
    share_links({begin, end}, links);
    begin = end;
  }
}

void Lab::share_links(std::span<Transfer* const> equals, FairLinks& links) {
  std::vector<LinkFlow> flows;
  std::vector<Transfer*> whose;
  for (Transfer* transfer : equals) {
    std::vector<std::size_t> receivers;
    for (std::size_t to = 0; to < ranks(); ++to) {
      if (transfer->left[to] > 0) receivers.push_back(to);
    }
    const bool is_one_flow = request_.selection.replication == Replication::kNetwork;
    const std::size_t from = transfer->multicast.from;
    if (is_one_flow) flows.push_back({from, receivers});
    for (std::size_t n = 0; !is_one_flow && n < receivers.size(); ++n)
      flows.push_back({from, {receivers[n]}});
    whose.resize(flows.size(), transfer);
  }
  links.share(flows);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const std::size_t to : flows[f].receivers) whose[f]->rate[to] = flows[f].bits_per_s;
  }
}

}  // namespace

StalenessCase published_case(Selector selector, Sharing sharing, Workload workload) {
  StalenessCase made;
  made.request.selection.update_bytes = 200'000'000;
  made.request.selection.receivers = 15;
  made.request.selection.freshness = 4;
  made.request.selection.replication = Replication::kNetwork;
  made.selector = selector;
  made.sharing = sharing;
  made.workload = workload;
  return made;
}

StalenessResult train(const StalenessCase& settings) {
  return Lab(settings).run();
}

}  // namespace gradplane::testing
