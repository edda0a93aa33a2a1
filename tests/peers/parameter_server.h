// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// A parameter server as one would write it today over the kernel's TCP. Workers push and pull at
// the same time. The server adds data as they arrive, and sends each chunk of the sum as soon as it
// is complete. Server and workers run on one machine, so numbers are in the host's byte order.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/peers/harness.h"
#include "tests/peers/tcp.h"

namespace gradplane::peers {

inline constexpr std::uint32_t kMagic = 0x47505053;

enum class Message : std::uint32_t { kHello = 1, kAllReduce, kPush, kResult, kFinished };

/// Precedes each contribution and each result, so that rounds are not confused. kHello and
/// kFinished have no payload. `rank` is the worker's in both directions.
struct Header {
  std::uint32_t magic = kMagic;
  Message message = Message::kHello;
  std::uint64_t seed = 0;
  std::uint64_t bytes = 0;
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
  bool operator==(const Header&) const = default;
};
static_assert(sizeof(Header) == 32);

/// The connection of one worker, and the state of its round. `received` and `sent` count the bytes
/// of the round's streams, including headers.
struct Worker {
  Socket socket;
  std::uint32_t rank = 0;
  std::size_t received = 0;
  std::size_t sent = 0;
  std::size_t pushed = 0;  // bytes of whole elements that have been added to the sum
  std::uint64_t push_end_ns = 0;
  bool awaits_room = false;  // epoll waits until the socket can be written
};

class ParameterServer final : public Participant {
 public:
  /// Returns when all workers are connected. Like run_round, it throws std::runtime_error.
  ParameterServer(const Endpoint& at, std::uint32_t world);
  nlohmann::json run_round(const Round& round) override;
  /// The workers check the results.
  nlohmann::json train(const Training& training) override;

 private:
  void add_worker(Socket socket);
  void tell(const Header& header);
  void begin(const Round& round);
  void serve();
  Header expected(const Worker& w, Message message) const;
  void receive(Worker& w);
  void take_header(Worker& w, std::size_t at, Message message);
  void take_data(Worker& w);
  void send_results();
  void send_result(Worker& w);
  std::size_t sendable(const Worker& w) const;
  void await_room(Worker& w, bool awaits);
  void watch(const Worker& w) const;
  bool has_finished(const Worker& w) const { return w.received == stream_bytes(); }
  std::size_t complete_bytes() const;
  std::size_t stream_bytes() const { return sizeof(Header) + round_.bytes + sizeof(Header); }
  Segments total_segments() const;

  std::uint32_t world_;
  Socket epoll_;
  std::vector<Worker> workers_;  // by rank
  Round round_;
  std::size_t finished_ = 0;
  std::vector<float> sum_;
  std::vector<std::byte> buffer_;
  /// Headers and elements that have arrived only in part, by worker.
  std::vector<Header> headers_;
  std::vector<std::vector<std::byte>> partial_;
};

/// One worker. `world` is the number of workers. Throws std::runtime_error.
class ParameterWorker final : public Participant {
 public:
  ParameterWorker(const Endpoint& server, std::uint32_t rank, std::uint32_t world);
  nlohmann::json run_round(const Round& round) override;
  nlohmann::json train(const Training& training) override;

 private:
  Header begin(const Round& round);
  void exchange(const Header& header);
  void finish(const Header& header);
  void send_more(const Header& header);
  void receive_more(const Header& header);
  bool has_all() const { return received_ == sizeof(Header) + (is_push_ ? 0 : bytes_); }

  std::uint32_t rank_;
  std::uint32_t world_;
  Socket socket_;
  std::vector<float> data_;  // the contribution; results overwrite the part that was pushed
  std::size_t bytes_ = 0;
  bool is_push_ = false;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  Header result_header_;
};

}  // namespace gradplane::peers
