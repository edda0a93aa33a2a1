// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// A connection between each pair of ranks, and messages with chunks of a vector. Overlays over
// plain TCP share this. All ranks run on one machine, so numbers are in the host's byte order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/peers/tcp.h"

namespace gradplane::peers {

/// The kernel's address of each rank, and the port on which all ranks listen.
struct MeshPlaces {
  std::vector<std::string> addresses;  // by rank
  std::uint16_t port = 0;
  std::string congestion_control;
};

inline constexpr std::uint32_t kMeshMagic = 0x47504d53;
/// The largest chunk. Sender and receiver refuse larger ones.
inline constexpr std::uint32_t kMaxChunkBytes = 64U << 20;

/// Precedes the payload of a message. The overlay defines `kind`, `chunk` and `argument`.
struct MeshHeader {
  std::uint32_t magic = kMeshMagic;
  std::uint32_t from = 0;
  std::uint64_t seed = 0;  // of the round, so that rounds are not confused
  std::uint32_t kind = 0;
  std::uint32_t chunk = 0;
  std::uint32_t argument = 0;
  std::uint32_t bytes = 0;  // of the payload
};
static_assert(sizeof(MeshHeader) == 32);

class Mesh {
 public:
  /// `payload` is valid only during the call.
  using Take = std::function<void(const MeshHeader&, std::span<const float> payload)>;

  /// Returns when this rank is connected to all others. Like all calls, it throws
  /// std::runtime_error if a connection fails.
  Mesh(const MeshPlaces& places, std::uint32_t rank);

  std::uint32_t rank() const { return rank_; }
  std::uint32_t world() const { return static_cast<std::uint32_t>(peers_.size()); }

  /// Queues a message to another rank. The payload must not change until is_idle(), or until the
  /// receiver has confirmed it.
  void send(std::uint32_t to, MeshHeader header, std::span<const float> payload);

  /// Waits for the next network event, hands over all complete messages, and continues sending.
  void step(std::uint64_t seed, const Take& take);

  /// Whether the kernel has taken all messages.
  bool is_idle() const { return queued_ == 0; }

  Segments segments() const;

 private:
  struct Outgoing {
    MeshHeader header;
    std::span<const float> payload;
  };
  struct Peer {
    Socket socket;
    std::deque<Outgoing> queue;
    std::size_t sent = 0;  // bytes of the first message in the queue, including its header
    bool awaits_room = false;
    MeshHeader header;
    std::vector<float> payload;
    std::size_t received = 0;  // bytes of the message that is arriving
  };

  void adopt(std::uint32_t rank, Socket socket);
  void send_queued(std::uint32_t rank);
  void receive(std::uint32_t rank, std::uint64_t seed, const Take& take);
  void check(std::uint32_t from, const MeshHeader& header, std::uint64_t seed) const;

  std::uint32_t rank_;
  Socket epoll_;
  std::vector<Peer> peers_;  // by rank; the entry of this rank has no socket
  std::size_t queued_ = 0;
};

/// How a vector is cut: all chunks have `chunk_elements` elements, except that the last one may be
/// shorter.
struct Chunks {
  std::size_t elements = 0;
  std::size_t chunk_elements = 1;

  std::uint32_t count() const {
    return static_cast<std::uint32_t>((elements + chunk_elements - 1) / chunk_elements);
  }
  std::span<float> of(std::span<float> data, std::uint32_t chunk) const {
    const std::size_t begin = chunk * chunk_elements;
    return data.subspan(begin, std::min(chunk_elements, elements - begin));
  }
};

/// Adds a payload to a chunk. Throws std::runtime_error if their sizes differ.
void add_to(std::span<float> chunk, std::span<const float> payload);
void copy_to(std::span<float> chunk, std::span<const float> payload);

}  // namespace gradplane::peers
