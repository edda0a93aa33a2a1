// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/network.h"

#include <algorithm>

#include "tests/sim/engine_watch.h"

namespace gradplane::sim {
namespace {

constexpr std::size_t kFrameOverheadBytes = 66;
/// How many datagrams are remembered for replays, and one of how many.
constexpr std::size_t kRemembered = 256;
constexpr std::uint64_t kRememberedOneOf = 8;

bool is_block(std::span<const std::byte> bytes) {
  wire::Envelope envelope;
  return wire::read_envelope(bytes, envelope) == wire::ParseError::kNone &&
         wire::is_block(envelope.type);
}

}  // namespace

Network::Network(LinkModel model, std::uint64_t seed) : model_(std::move(model)), random_(seed) {
  if (model_.sites.empty()) return;
  sites_ = std::make_unique<SiteNetwork>(
      model_.sites,
      SiteNetwork::Queues{.least_bytes = model_.queue_bytes, .mark_bytes = model_.mark_bytes});
}

std::uint16_t Network::add_host(Ipv4 address) {
  hosts_.push_back({});
  hosts_.back().address = address;
  return static_cast<std::uint16_t>(hosts_.size() - 1);
}

Duration Network::wire_time(std::size_t payload_bytes, std::uint64_t bits_per_second) {
  if (bits_per_second == 0) return {};
  const double bits = static_cast<double>(payload_bytes + kFrameOverheadBytes) * 8;
  return Duration::ns(static_cast<std::int64_t>(bits * 1e9 / static_cast<double>(bits_per_second)));
}

void Network::send(std::uint16_t from, const port::Destination& to, std::uint16_t source_port,
                   std::vector<std::byte> bytes, Instant now) {
  ++sent_;
  Host& sender = hosts_[from];
  sender.uplink_free =
      std::max(sender.uplink_free, now) + wire_time(bytes.size(), model_.bits_per_second);
  if (model_.replays > 0) replay(now);
  auto datagram = std::make_shared<Datagram>();
  datagram->bytes = std::move(bytes);
  datagram->source = {sender.address, source_port};
  datagram->destination_port = to.endpoint().udp_port;
  if (!to.is_group()) {
    const std::uint16_t host = host_of(to.endpoint().address);
    if (host == hosts_.size()) {
      ++dropped_;
    } else {
      fly(from, host, datagram, now);
    }
    return;
  }
  for (std::uint16_t h = 0; h < hosts_.size(); ++h) {
    if (h == from || !hosts_[h].groups->has(to.group())) continue;
    if (model_.copies_for && !model_.copies_for(h, now)) continue;
    fly(from, h, std::make_shared<Datagram>(*datagram), now);
  }
}

void Network::fly(std::uint16_t from, std::uint16_t to, const std::shared_ptr<Datagram>& datagram,
                  Instant now) {
  if (is_lost(from, to, datagram->bytes, now)) {
    ++dropped_;
    return;
  }
  if (model_.forge) forge(from, to, datagram->bytes);
  if (chance(model_.corruption)) {
    const std::size_t at = random_() % datagram->bytes.size();
    datagram->bytes[at] ^= static_cast<std::byte>(1U << (random_() % 8));
  }
  if (model_.replays > 0) remember(from, to, datagram);
  const int copies = chance(model_.duplication) ? 2 : 1;
  for (int c = 0; c < copies; ++c) {
    Duration delay = delay_at(now);
    if (model_.jitter > Duration{}) {
      const auto span = static_cast<std::uint64_t>(model_.jitter.count_ns());
      delay += Duration::ns(static_cast<std::int64_t>(random_() % span));
    }
    const auto passed = pass_pair_link(from, to, datagram->bytes, hosts_[from].uplink_free);
    if (!passed) {
      ++dropped_;
      continue;
    }
    events_.push({.at = *passed + delay,
                  .order = order_++,
                  .from = from,
                  .to = to,
                  .at_switch = true,
                  .datagram = datagram});
  }
}

/// The index of the host with this address; one past the last host if there is none. Addresses are
/// consecutive.
std::uint16_t Network::host_of(Ipv4 address) const {
  const std::size_t host = hosts_.empty() ? 0 : address.value - hosts_[0].address.value;
  return static_cast<std::uint16_t>(std::min(host, hosts_.size()));
}

void Network::remember(std::uint16_t from, std::uint16_t to,
                       const std::shared_ptr<Datagram>& datagram) {
  if (random_() % kRememberedOneOf != 0) return;
  if (old_.size() < kRemembered) return old_.push_back({from, to, datagram});
  old_[random_() % kRemembered] = {from, to, datagram};
}

/// An attacker on the path repeats an old datagram.
void Network::replay(Instant now) {
  if (old_.empty() || !chance(model_.replays)) return;
  const Old& again = old_[random_() % old_.size()];
  events_.push({.at = now + delay_at(now),
                .order = order_++,
                .from = again.from,
                .to = again.to,
                .at_switch = true,
                .datagram = again.datagram});
}

void Network::forge(std::uint16_t from, std::uint16_t to, std::span<std::byte> bytes) {
  auto packet = testing::see(bytes);
  if (!packet) return;
  model_.forge(from, to, *packet);
  wire::write_envelope(bytes, *packet);
}

bool Network::is_lost(std::uint16_t from, std::uint16_t to, std::span<const std::byte> bytes,
                      Instant now) {
  if (hosts_[from].is_cut || hosts_[to].is_cut) return true;
  if (chance(model_.loss)) return true;
  for (const HostFault& fault : model_.host_faults) {
    if (fault.host != from && fault.host != to) continue;
    if (now >= fault.cut_from && now < fault.cut_until) return true;
    if (now < fault.lossy_from) continue;
    if (chance(fault.host == from ? fault.loss_sent : fault.loss_received)) return true;
  }
  if (!model_.lose) return false;
  const auto packet = testing::see(bytes);
  return packet && model_.lose(from, to, *packet);
}

/// When a datagram at the link between two hosts has passed it; nothing if the queue is full. Most
/// pairs have no separate link.
std::optional<Instant> Network::pass_pair_link(std::uint16_t from, std::uint16_t to,
                                               std::span<const std::byte> bytes, Instant at) {
  pair_free_.resize(model_.pair_links.size());
  for (std::size_t l = 0; l < model_.pair_links.size(); ++l) {
    const PairLink& link = model_.pair_links[l];
    if (link.from != from || link.to != to || at < link.since) continue;
    if (link.control_first && !is_block(bytes)) {
      at = at + wire_time(bytes.size(), link.bits_per_second);
      continue;
    }
    const Duration backlog = std::max(pair_free_[l], at) - at;
    const double queued = backlog.to_seconds() * static_cast<double>(link.bits_per_second) / 8;
    if (queued > static_cast<double>(link.queue_bytes)) return std::nullopt;
    pair_free_[l] = std::max(pair_free_[l], at) + wire_time(bytes.size(), link.bits_per_second);
    at = pair_free_[l];
  }
  return at;
}

bool Network::lost_in_burst(Host& host) {
  if (!model_.bursts) return false;
  host.in_burst = chance(host.in_burst ? 1 - model_.bursts->leave : model_.bursts->enter);
  return host.in_burst && chance(model_.bursts->loss);
}

Duration Network::delay_at(Instant now) const {
  Duration delay = model_.delay;
  for (const DelayJump& jump : model_.delay_jumps) {
    if (now >= jump.at) delay = jump.delay;
  }
  return delay;
}

void Network::heal() {
  model_.loss = model_.duplication = model_.corruption = model_.replays = 0;
  model_.jitter = {};
  model_.queue_bytes = SIZE_MAX;
  model_.bursts.reset();
  model_.host_faults.clear();
  model_.lose = nullptr;
  if (sites_ != nullptr) sites_->heal();
}

void Network::leave_switch(Flight flight) {
  if (flight.pipes_passed == 0 && lost_in_burst(hosts_[flight.to])) {
    ++dropped_;
    return;
  }
  if (sites_ != nullptr) return cross_sites(std::move(flight));
  enter_downlink(std::move(flight));
}

/// Sends a datagram into the next pipe of its path.
void Network::cross_sites(Flight flight) {
  if (flight.path == nullptr) flight.path = sites_->path(flight.from, flight.to, flight.at);
  if (flight.path == nullptr) {
    ++dropped_;
    return;
  }
  if (flight.pipes_passed < flight.path->size()) {
    const SiteNetwork::Pipe pipe = (*flight.path)[flight.pipes_passed++];
    const auto passage = sites_->pass(pipe, flight.datagram->bytes.size(), flight.at, random_);
    if (!passage) {
      ++dropped_;
      return;
    }
    flight.at = passage->arrival;
    if (passage->marked) flight.datagram->marked = true;
  }
  flight.at_switch = flight.pipes_passed < flight.path->size();
  flight.order = order_++;
  events_.push(std::move(flight));
}

void Network::enter_downlink(Flight flight) {
  Host& host = hosts_[flight.to];
  const Duration backlog = std::max(host.downlink_free, flight.at) - flight.at;
  const double queued = backlog.to_seconds() * static_cast<double>(model_.bits_per_second) / 8;
  if (queued > static_cast<double>(model_.queue_bytes)) {
    ++dropped_;
    return;
  }
  if (model_.mark_bytes > 0 && queued >= static_cast<double>(model_.mark_bytes)) {
    flight.datagram->marked = true;
  }
  host.downlink_free = std::max(host.downlink_free, flight.at) +
                       wire_time(flight.datagram->bytes.size(), model_.bits_per_second);
  flight.at = host.downlink_free;
  flight.at_switch = false;
  flight.order = order_++;
  events_.push(std::move(flight));
}

/// The oldest datagram for this queue; null if there is none.
std::shared_ptr<Network::Datagram> SimQueue::take() {
  auto& inbox = network_.inbox(host_);
  const auto at = std::find_if(inbox.begin(), inbox.end(), [this](const auto& datagram) {
    return steering_.queue_of(datagram->destination_port) == index_;
  });
  if (at == inbox.end()) return nullptr;
  auto taken = std::move(*at);
  inbox.erase(at);
  return taken;
}

std::size_t SimQueue::receive(std::span<port::RxDatagram> out) noexcept {
  const Running simulator(Running::Code::kSimulator);
  std::size_t count = 0;
  for (; count < out.size(); ++count) {
    auto datagram = take();
    if (datagram == nullptr) break;
    out[count] = {.payload = datagram->bytes,
                  .source = datagram->source,
                  .destination_udp_port = datagram->destination_port,
                  .congestion_experienced = datagram->marked};
    ++counters_.rx_datagrams;
    counters_.rx_bytes += datagram->bytes.size();
    lent_.push_back(std::move(datagram));
  }
  return count;
}

void SimQueue::release(std::span<port::RxDatagram>) noexcept {
  const Running simulator(Running::Code::kSimulator);
  lent_.clear();
}

bool SimQueue::allocate(port::TxDatagram& out) noexcept {
  const Running simulator(Running::Code::kSimulator);
  auto* bytes = new std::vector<std::byte>(kMaxDatagramBytes);
  out = {};
  out.buffer = *bytes;
  out.token = bytes;
  return true;
}

void SimQueue::discard(port::TxDatagram& datagram) noexcept {
  const Running simulator(Running::Code::kSimulator);
  delete static_cast<std::vector<std::byte>*>(datagram.token);
}

std::size_t SimQueue::transmit(std::span<port::TxDatagram> datagrams) noexcept {
  const Running simulator(Running::Code::kSimulator);
  for (port::TxDatagram& datagram : datagrams) {
    datagram.copy_lent();
    auto* bytes = static_cast<std::vector<std::byte>*>(datagram.token);
    bytes->resize(datagram.length_bytes);
    ++counters_.tx_datagrams;
    counters_.tx_bytes += datagram.length_bytes;
    network_.send(host_, datagram.destination, datagram.source_udp_port, std::move(*bytes), clock_);
    delete bytes;
  }
  return datagrams.size();
}

SimPort::SimPort(Network& network, std::uint16_t host, Ipv4 address, const Instant& clock,
                 const port::Steering& steering)
    : network_(network), host_(host), address_(address) {
  for (std::size_t q = 0; q < steering.queue_count; ++q) {
    queues_.emplace_back(network, host, steering, q, clock);
  }
}

}  // namespace gradplane::sim
