// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <span>
#include <vector>

#include "dataplane/port/group_table.h"
#include "dataplane/port/port.h"
#include "tests/sim/site_network.h"
#include "tests/support/seen_packet.h"

namespace gradplane::sim {

/// Losses in bursts: a channel with a good and a bad state (Gilbert, BSTJ 1960; Elliott, BSTJ
/// 1963). Probabilities are per datagram.
struct Bursts {
  double enter = 0;  // from good to bad
  double leave = 1;  // from bad to good
  double loss = 1;   // while bad
};

/// Faults of one host's link.
struct HostFault {
  std::uint16_t host = 0;
  double loss_sent = 0;                 // of datagrams that it sends
  double loss_received = 0;             // of datagrams to it
  Instant lossy_from = {};              // before this it loses nothing in either direction
  Instant cut_from = Instant::never();  // from here until cut_until nothing reaches or leaves it
  Instant cut_until = Instant::never();
};

/// A separate link between two hosts in one direction, before the second host's downlink.
struct PairLink {
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint64_t bits_per_second = 0;
  std::size_t queue_bytes = 64 << 10;  // drop-tail
  bool control_first = true;  // all packets but blocks pass the queue (docs/protocol.md, section 2)
  Instant since = {};         // before this the two hosts have no separate link
};

/// From `at` on, every link has the delay `delay`.
struct DelayJump {
  Instant at;
  Duration delay;
};

/// Link rates and faults. They hold for all links of a network, except for `host_faults`. Faults
/// that are off draw no random numbers.
struct LinkModel {
  std::uint64_t bits_per_second = 0;  // rate of every host's link, in each direction; 0: infinite
  std::size_t queue_bytes = 1 << 20;  // drop-tail, at each host's downlink
  std::size_t mark_bytes = 0;  // a queue of at least this length marks (RFC 3168); 0: no marks
  Duration delay = Duration::us(50);  // one way
  Duration jitter;                    // uniform, added to the delay; it reorders datagrams
  double loss = 0;
  double duplication = 0;
  double corruption = 0;  // probability that one bit is flipped
  double replays = 0;     // probability that a much older datagram comes again after a datagram
  std::optional<Bursts> bursts;  // at each downlink, each with its own state
  std::vector<HostFault> host_faults;
  std::vector<PairLink> pair_links;
  std::vector<DelayJump> delay_jumps;  // in the order of their times
  /// If there are entries, hosts are the nodes of these networks, which follow each other in time.
  /// `delay` and `jitter` are added to a network's delays, a pipe's queue has at least
  /// `queue_bytes`, and hosts' links have no rate but those of their accesses.
  std::vector<SitesAt> sites;
  /// Whether the switch copies to a host that is in a group. Unset: always.
  std::function<bool(std::uint16_t to, Instant now)> copies_for;
  /// Scripted loss: returns true for a gradplane packet between two hosts that is to be lost.
  std::function<bool(std::uint16_t from, std::uint16_t to, const testing::SeenPacket&)> lose;
  /// An attacker on the path, who changes the flags of a packet. With authentication, receivers
  /// drop the packet.
  std::function<void(std::uint16_t from, std::uint16_t to, testing::SeenPacket&)> forge;
};

/// Hosts on a switch, in virtual time. Networks with the same seed behave the same.
class Network {
 public:
  Network(LinkModel model, std::uint64_t seed);

  /// Adds a host; its index is its node id.
  std::uint16_t add_host(Ipv4 address);

  /// Sends to one host, or to every other host that is in the group. The switch makes the copies,
  /// and each may be lost or delayed by itself.
  void send(std::uint16_t from, const port::Destination& to, std::uint16_t source_port,
            std::vector<std::byte> bytes, Instant now);

  port::GroupTable& groups(std::uint16_t host) { return *hosts_[host].groups; }

  Instant next_event() const { return events_.empty() ? Instant::never() : events_.top().at; }
  /// Runs all events up to `now`, and calls `arrived(host)` for each host that has received
  /// something.
  template <typename F>
  void run_until(Instant now, F arrived) {
    while (!events_.empty() && events_.top().at <= now) {
      Flight flight = events_.top();
      events_.pop();
      if (flight.at_switch) {
        leave_switch(std::move(flight));
      } else {
        if (!hosts_[flight.to].up) continue;
        hosts_[flight.to].inbox.push_back(flight.datagram);
        arrived(flight.to);
      }
    }
  }

  struct Datagram {
    std::vector<std::byte> bytes;
    Endpoint source;
    std::uint16_t destination_port = 0;
    bool marked = false;
  };
  std::deque<std::shared_ptr<Datagram>>& inbox(std::uint16_t host) { return hosts_[host].inbox; }
  const LinkModel& model() const { return model_; }
  /// Null if all hosts are at one switch.
  const SiteNetwork* sites() const { return sites_.get(); }

  /// A host that is down loses what arrives for it.
  void set_up(std::uint16_t host, bool up) {
    hosts_[host].up = up;
    hosts_[host].inbox.clear();
  }

  /// Cuts a host off, or reconnects it. While it is cut off, datagrams in both directions get no
  /// further than its link.
  void set_cut(std::uint16_t host, bool is_cut) { hosts_[host].is_cut = is_cut; }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t dropped() const { return dropped_; }
  /// Ends all loss, duplication, corruption and reordering. Rates and delays stay.
  void heal();

 private:
  struct Host {
    Ipv4 address;
    Instant uplink_free;
    Instant downlink_free;
    bool in_burst = false;
    bool is_cut = false;
    std::unique_ptr<port::GroupTable> groups = std::make_unique<port::GroupTable>();
    bool up = true;
    std::deque<std::shared_ptr<Datagram>> inbox;
  };
  struct Flight {
    Instant at;
    std::uint64_t order = 0;
    std::uint16_t from = 0;
    std::uint16_t to = 0;
    bool at_switch = false;
    std::shared_ptr<const SiteNetwork::Path> path = nullptr;  // between sites
    std::size_t pipes_passed = 0;  // how many pipes of the path it has passed
    std::shared_ptr<Datagram> datagram = nullptr;
    bool operator<(const Flight& o) const {  // std::priority_queue pops the greatest
      return at != o.at ? at > o.at : order > o.order;
    }
  };

  void fly(std::uint16_t from, std::uint16_t to, const std::shared_ptr<Datagram>& datagram,
           Instant now);
  void leave_switch(Flight flight);
  void enter_downlink(Flight flight);
  void cross_sites(Flight flight);
  std::uint16_t host_of(Ipv4 address) const;
  void remember(std::uint16_t from, std::uint16_t to, const std::shared_ptr<Datagram>& datagram);
  void replay(Instant now);
  void forge(std::uint16_t from, std::uint16_t to, std::span<std::byte> bytes);
  bool is_lost(std::uint16_t from, std::uint16_t to, std::span<const std::byte> bytes, Instant now);
  bool lost_in_burst(Host& host);
  Duration delay_at(Instant now) const;
  std::optional<Instant> pass_pair_link(std::uint16_t from, std::uint16_t to,
                                        std::span<const std::byte> bytes, Instant at);
  static Duration wire_time(std::size_t payload_bytes, std::uint64_t bits_per_second);
  bool chance(double p) { return p > 0 && std::uniform_real_distribution<>(0, 1)(random_) < p; }

  LinkModel model_;
  std::mt19937_64 random_;
  std::unique_ptr<SiteNetwork> sites_;
  std::vector<Host> hosts_;
  struct Old {
    std::uint16_t from = 0;
    std::uint16_t to = 0;
    std::shared_ptr<Datagram> datagram;
  };
  std::vector<Old> old_;  // some of the datagrams that were sent, for replays
  std::priority_queue<Flight> events_;
  std::vector<Instant> pair_free_;  // when each pair link is free, by pair link
  std::uint64_t order_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t dropped_ = 0;
};

/// A queue of a port on a simulated network. `clock` is the simulator's time.
class SimQueue : public port::PortQueue {
 public:
  SimQueue(Network& network, std::uint16_t host, const port::Steering& steering, std::size_t index,
           const Instant& clock)
      : network_(network), host_(host), steering_(steering), index_(index), clock_(clock) {}

  std::size_t receive(std::span<port::RxDatagram> out) noexcept override;
  void release(std::span<port::RxDatagram> datagrams) noexcept override;
  bool allocate(port::TxDatagram& out) noexcept override;
  void discard(port::TxDatagram& datagram) noexcept override;
  std::size_t transmit(std::span<port::TxDatagram> datagrams) noexcept override;
  void tick(Instant) noexcept override {}
  /// Every second host lends payloads and the others copy them, so every scenario tests both.
  std::size_t lends_from_bytes() const noexcept override { return host_ % 2 == 0 ? 1 : SIZE_MAX; }
  const port::PortCounters& counters() const noexcept override { return counters_; }

 private:
  std::shared_ptr<Network::Datagram> take();

  Network& network_;
  std::uint16_t host_;
  port::Steering steering_;
  std::size_t index_;
  const Instant& clock_;
  std::vector<std::shared_ptr<Network::Datagram>> lent_;
  port::PortCounters counters_;
};

class SimPort : public port::Port {
 public:
  SimPort(Network& network, std::uint16_t host, Ipv4 address, const Instant& clock,
          const port::Steering& steering = {});

  std::size_t queue_count() const noexcept override { return queues_.size(); }
  port::PortQueue& queue(std::size_t index) noexcept override { return queues_[index]; }
  Status join_group(const port::Group& group) override {
    return network_.groups(host_).join(group);
  }
  void leave_group(const port::Group& group) override { (void)network_.groups(host_).leave(group); }
  std::size_t mtu_payload_bytes() const noexcept override { return kMaxDatagramBytes; }
  Ipv4 address() const noexcept override { return address_; }

 private:
  Network& network_;
  std::uint16_t host_;
  Ipv4 address_;
  std::deque<SimQueue> queues_;
};

}  // namespace gradplane::sim
