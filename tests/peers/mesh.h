// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// A connection between every two ranks, and messages over them that carry chunks of a vector. What
// overlays over plain TCP have in common. All ranks run on one machine, so numbers are in the
// host's byte order.

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

/// Who is where: the kernel's address of each rank, and the port on which all of them listen.
struct MeshPlaces {
  std::vector<std::string> addresses;  // by rank
  std::uint16_t port = 0;
  std::string congestion_control;
};

inline constexpr std::uint32_t kMeshMagic = 0x47504d53;
/// A chunk that would need more is refused on both sides.
inline constexpr std::uint32_t kMaxChunkBytes = 64U << 20;

/// Comes before the bytes of a message. What `kind`, `chunk` and `argument` mean is the overlay's
/// matter.
struct MeshHeader {
  std::uint32_t magic = kMeshMagic;
  std::uint32_t from = 0;
  std::uint64_t seed = 0;  // of the round, so that rounds cannot be mixed up
  std::uint32_t kind = 0;
  std::uint32_t chunk = 0;
  std::uint32_t argument = 0;
  std::uint32_t bytes = 0;  // of the payload
};
static_assert(sizeof(MeshHeader) == 32);

class Mesh {
 public:
  /// `payload` is gone when the call returns.
  using Take = std::function<void(const MeshHeader&, std::span<const float> payload)>;

  /// Returns when this rank is connected with all others. Throws std::runtime_error, as all calls
  /// do when a connection fails.
  Mesh(const MeshPlaces& places, std::uint32_t rank);

  std::uint32_t rank() const { return rank_; }
  std::uint32_t world() const { return static_cast<std::uint32_t>(peers_.size()); }

  /// Queues a message. The payload must stay as it is until is_idle(), or until the receiver has
  /// said that it has come. A message to this rank itself is not possible.
  void send(std::uint32_t to, MeshHeader header, std::span<const float> payload);

  /// Waits for what the network does next, takes all messages that are whole, and sends on.
  void step(std::uint64_t seed, const Take& take);

  /// Whether the kernel has taken every message.
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
    std::size_t sent = 0;  // of the message at the front, header included
    bool awaits_room = false;
    MeshHeader header;
    std::vector<float> payload;
    std::size_t received = 0;  // of the message that is coming
  };

  void adopt(std::uint32_t rank, Socket socket);
  void send_queued(std::uint32_t rank);
  void receive(std::uint32_t rank, std::uint64_t seed, const Take& take);
  void check(std::uint32_t from, const MeshHeader& header, std::uint64_t seed) const;

  std::uint32_t rank_;
  Socket epoll_;
  std::vector<Peer> peers_;  // by rank; this rank's own has no socket
  std::size_t queued_ = 0;
};

/// How a vector is cut: chunks of so many elements each, the last one with what is left.
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

/// Adds a payload to a chunk of as many elements; throws std::runtime_error if it has others.
void add_to(std::span<float> chunk, std::span<const float> payload);
void copy_to(std::span<float> chunk, std::span<const float> payload);

}  // namespace gradplane::peers
