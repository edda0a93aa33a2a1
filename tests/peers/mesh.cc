// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/peers/mesh.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace gradplane::peers {
namespace {

constexpr int kSilenceMs = 120'000;
constexpr int kMaxEvents = 64;

void watch(const Socket& epoll, int operation, const Socket& socket, std::uint32_t rank,
           bool awaits_room) {
  epoll_event event{.events = EPOLLIN | (awaits_room ? std::uint32_t{EPOLLOUT} : 0U),
                    .data = {.u32 = rank}};
  if (epoll_ctl(epoll.fd(), operation, socket.fd(), &event) != 0) {
    throw std::runtime_error(std::string("epoll_ctl: ") + std::strerror(errno));
  }
}

void same_size(std::span<float> chunk, std::span<const float> payload) {
  if (chunk.size() == payload.size()) return;
  throw std::runtime_error("a chunk of " + std::to_string(payload.size()) +
                           " elements came where " + std::to_string(chunk.size()) +
                           " are expected");
}

}  // namespace

Mesh::Mesh(const MeshPlaces& places, std::uint32_t rank)
    : rank_(rank), epoll_(epoll_create1(EPOLL_CLOEXEC)), peers_(places.addresses.size()) {
  if (rank >= peers_.size()) throw std::runtime_error("the rank is not one of the mesh");
  const auto at = [&](std::uint32_t of) {
    return Endpoint{places.addresses[of], places.port, places.congestion_control};
  };
  const Socket listener = listen_on(at(rank));
  for (std::uint32_t to = 0; to < rank; ++to) {
    Socket socket = connect_to(at(to));
    const MeshHeader hello{.from = rank};
    if (send_some(socket, &hello, sizeof hello, false) != sizeof hello) {
      throw std::runtime_error("rank " + std::to_string(to) + " takes no greeting");
    }
    adopt(to, std::move(socket));
  }
  for (std::uint32_t left = world() - rank - 1; left > 0; --left) {
    Socket socket = accept_from(listener);
    MeshHeader hello;
    receive_all(socket, &hello, sizeof hello);
    if (hello.magic != kMeshMagic || hello.from <= rank || hello.from >= world() ||
        peers_[hello.from].socket.fd() >= 0) {
      throw std::runtime_error("somebody else than a missing rank has connected");
    }
    adopt(hello.from, std::move(socket));
  }
}

void Mesh::adopt(std::uint32_t rank, Socket socket) {
  make_nonblocking(socket);
  watch(epoll_, EPOLL_CTL_ADD, socket, rank, false);
  peers_[rank].socket = std::move(socket);
}

void Mesh::send(std::uint32_t to, MeshHeader header, std::span<const float> payload) {
  header.from = rank_;
  header.bytes = static_cast<std::uint32_t>(payload.size_bytes());
  peers_.at(to).queue.push_back({header, payload});
  ++queued_;
  if (peers_[to].queue.size() == 1) send_queued(to);
}

void Mesh::send_queued(std::uint32_t rank) {
  Peer& peer = peers_[rank];
  bool is_full = false;
  while (!peer.queue.empty() && !is_full) {
    const Outgoing& front = peer.queue.front();
    const std::size_t total = sizeof front.header + front.payload.size_bytes();
    const bool in_header = peer.sent < sizeof front.header;
    const auto* from = in_header ? reinterpret_cast<const std::byte*>(&front.header) + peer.sent
                                 : reinterpret_cast<const std::byte*>(front.payload.data()) +
                                       peer.sent - sizeof front.header;
    const std::size_t bytes = (in_header ? sizeof front.header : total) - peer.sent;
    const bool more = (in_header && !front.payload.empty()) || peer.queue.size() > 1;
    const std::size_t sent = send_some(peer.socket, from, bytes, more);
    is_full = sent < bytes;
    peer.sent += sent;
    if (peer.sent < total) continue;
    peer.queue.pop_front();
    peer.sent = 0;
    --queued_;
  }
  if (peer.awaits_room == is_full) return;
  peer.awaits_room = is_full;
  watch(epoll_, EPOLL_CTL_MOD, peer.socket, rank, is_full);
}

void Mesh::step(std::uint64_t seed, const Take& take) {
  epoll_event events[kMaxEvents];
  const int count = epoll_wait(epoll_.fd(), events, kMaxEvents, kSilenceMs);
  if (count == 0) throw std::runtime_error("all ranks are silent in the middle of a round");
  for (int i = 0; i < count; ++i) {
    const std::uint32_t rank = events[i].data.u32;
    if (events[i].events & EPOLLOUT) send_queued(rank);
    if (events[i].events & ~std::uint32_t{EPOLLOUT}) receive(rank, seed, take);
  }
}

/// Reads once for each event, so that no rank delays the others.
void Mesh::receive(std::uint32_t rank, std::uint64_t seed, const Take& take) {
  Peer& peer = peers_[rank];
  const bool in_header = peer.received < sizeof peer.header;
  if (in_header) {
    auto* to = reinterpret_cast<std::byte*>(&peer.header);
    peer.received +=
        receive_some(peer.socket, to + peer.received, sizeof peer.header - peer.received);
    if (peer.received < sizeof peer.header) return;
    check(rank, peer.header, seed);
    peer.payload.resize(peer.header.bytes / sizeof(float));
  } else {
    auto* to = reinterpret_cast<std::byte*>(peer.payload.data());
    const std::size_t at = peer.received - sizeof peer.header;
    peer.received += receive_some(peer.socket, to + at, peer.header.bytes - at);
  }
  if (peer.received < sizeof peer.header + peer.header.bytes) return;
  peer.received = 0;
  take(peer.header, peer.payload);
}

void Mesh::check(std::uint32_t from, const MeshHeader& header, std::uint64_t seed) const {
  if (header.magic == kMeshMagic && header.from == from && header.seed == seed &&
      header.bytes <= kMaxChunkBytes && header.bytes % sizeof(float) == 0) {
    return;
  }
  throw std::runtime_error("rank " + std::to_string(from) + " is in another round: seed " +
                           std::to_string(header.seed));
}

Segments Mesh::segments() const {
  Segments total;
  for (const Peer& peer : peers_) {
    if (peer.socket.fd() < 0) continue;
    const Segments s = segments_of(peer.socket);
    total.sent += s.sent;
    total.retransmitted += s.retransmitted;
  }
  return total;
}

void add_to(std::span<float> chunk, std::span<const float> payload) {
  same_size(chunk, payload);
  for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] += payload[i];
}

void copy_to(std::span<float> chunk, std::span<const float> payload) {
  same_size(chunk, payload);
  std::copy(payload.begin(), payload.end(), chunk.begin());
}

}  // namespace gradplane::peers
