// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <queue>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/lab/description.h"
#include "tests/lab/frame.h"
#include "tests/lab/link.h"
#include "tests/lab/routes.h"

namespace gradplane::lab {

/// The most frames in flight. That is 30 ms of 8 hosts that send 64-byte frames at 140 Mbit/s each,
/// or 400 ms of 2 Gbit/s in large frames. Memory is allocated as frames need it.
inline constexpr std::size_t kDefaultFramesInFlight = 65536;
/// A frame of at least this length carries data, and not only an ack.
inline constexpr std::size_t kDataFrameBytes = 1000;

struct NetworkCounters {
  std::uint64_t delivered = 0;
  std::uint64_t pool_exhausted = 0;  // frames lost because too many were in flight
  std::uint64_t malformed = 0;       // shorter than a header, or longer than kMaxFrameBytes
};

/// A link between two places, with both its directions.
struct TwoWayLink {
  std::string name;
  bool is_host_link = true;
  Link first;   // up, or forward
  Link second;  // down, or backward
  /// For a host: when the last data frame that it sent reached its receiver, since the last reset.
  Instant last_data_arrival = {};
};

/// Hosts, links and the frames on them. The caller supplies the time, and there is no I/O. As a
/// switch does, the network learns the hosts' MAC addresses from the frames that they send. A frame
/// to an unknown address or to a group goes to every other host, over that host's own route.
class Network {
 public:
  explicit Network(const Description& description,
                   std::size_t frames_in_flight = kDefaultFramesInFlight);

  /// A host sends a frame. Frames of one host must come in the order of time.
  void offer(std::size_t from_host, Instant at, std::span<const std::byte> frame);

  Instant next_event() const;
  /// Runs all events up to `now`. Calls `deliver(host, at, frame)` for frames that arrive. A frame
  /// is valid until release_delivered(), or the next offer() or run_until().
  template <typename F>
  void run_until(Instant now, F deliver) {
    release_delivered();
    start_due_changes(now);
    while (!events_.empty() && events_.top().at <= now) {
      const Event event = events_.top();
      events_.pop();
      if (!event.has_arrived) {
        forward(event);
        continue;
      }
      ++counters_.delivered;
      delivered_.push_back(event.slot);
      deliver(event.to_host, event.at, bytes(event.slot));
    }
  }

  void release_delivered();

  /// Starts the schedule now. Changes of an earlier start that are not due yet are dropped.
  void start_schedule(Instant now);

  std::vector<TwoWayLink>& links() { return links_; }  // hosts first, then site links
  TwoWayLink* find_link(std::string_view name);
  static void set(TwoWayLink& link, Direction direction, const SettingsChange& change);
  std::size_t host_count() const { return sites_of_hosts_.size(); }
  std::size_t frames_in_flight() const { return slots_.size() - free_slots_.size(); }
  const NetworkCounters& counters() const { return counters_; }
  void reset_counters();

 private:
  using Slot = std::uint32_t;
  struct Event {
    Instant at;
    std::uint64_t sequence = 0;  // orders events at the same time
    Slot slot = 0;
    std::uint16_t from_host = 0;
    std::uint16_t to_host = 0;
    std::uint16_t site = 0;
    bool has_arrived = false;               // at to_host; otherwise it is at the site
    bool operator<(const Event& o) const {  // std::priority_queue pops the greatest
      return at != o.at ? at > o.at : sequence > o.sequence;
    }
  };
  struct SlotState {
    std::uint16_t bytes = 0;
    std::uint32_t users = 0;  // number of events; duplicates and copies for a group share the bytes
  };

  std::span<std::byte> bytes(Slot slot) {
    return {memory_.get() + slot * kMaxFrameBytes, slots_[slot].bytes};
  }
  void forward(const Event& event);
  /// Puts the event's frame on a link, and makes an event for each arrival. Returns the time of the
  /// first arrival, or 0.
  Instant pass(Link& link, Event event, Instant at);
  void release(Slot slot);
  void start_due_changes(Instant now);

  Rng rng_;
  Routes routes_;
  std::vector<std::uint16_t> sites_of_hosts_;
  std::vector<TwoWayLink> links_;
  std::vector<ScheduledChange> schedule_;
  std::size_t changes_done_ = 0;
  Instant schedule_start_ = Instant::never();
  std::unordered_map<std::uint64_t, std::uint16_t> hosts_by_mac_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<SlotState> slots_;
  std::vector<Slot> free_slots_;
  std::vector<Slot> delivered_;
  std::priority_queue<Event> events_;
  std::uint64_t sequence_ = 0;
  NetworkCounters counters_;
};

}  // namespace gradplane::lab
