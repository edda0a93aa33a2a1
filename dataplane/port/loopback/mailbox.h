// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/base/endpoint.h"

namespace gradplane::port {

/// One datagram in flight: its payload, source and destination UDP port.
struct Letter {
  std::span<const std::byte> payload;
  Endpoint source;
  std::uint16_t destination_udp_port = 0;
};

/// A bounded queue of datagrams: any thread may post, and one thread takes. Each cell carries its
/// own sequence number (Vyukov's bounded queue), so a taken cell stays with its reader until it
/// gives the cell back, in any order. A queue refuses a letter if it is full, or if its oldest cell
/// is still held.
///
/// Orderings: F1 release in post() pairs with F2 acquire in take(); G1 release in give_back() pairs
/// with G2 acquire in post().
class Mailbox {
 public:
  /// `cell_count` must be a power of two, and at least 2.
  Mailbox(std::size_t cell_count, std::size_t cell_bytes);

  /// Copies the letter into the queue. False if there is no room, or if the payload does not fit
  /// into a cell.
  bool post(const Letter& letter) noexcept;

  struct Taken {
    Letter letter;
    void* token = nullptr;  // for give_back()
  };
  /// Takes the oldest letter. Reader thread.
  bool take(Taken& out) noexcept;
  /// Returns a cell; once for each token. Reader thread.
  static void give_back(void* token) noexcept;

 private:
  struct Cell {
    std::atomic<std::uint64_t> sequence{0};
    // Reader only: the number that frees the cell for the next writer.
    std::uint64_t next_sequence = 0;
    Letter letter;  // writer before F1, reader after F2
  };

  std::size_t mask_;
  std::size_t cell_bytes_;
  std::unique_ptr<Cell[]> cells_;
  std::unique_ptr<std::byte[]> storage_;
  alignas(64) std::atomic<std::uint64_t> tail_{0};  // writers only
  alignas(64) std::uint64_t head_ = 0;              // reader only
};

}  // namespace gradplane::port
