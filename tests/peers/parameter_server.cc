// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/peers/parameter_server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace gradplane::peers {
namespace {

constexpr std::size_t kReadBytes = 256 * 1024;
/// Results are sent in chunks: large enough for few system calls, and small enough to overlap with
/// pushes.
constexpr std::size_t kChunkBytes = 16 * 1024;
constexpr int kSilenceMs = 120'000;
constexpr int kMaxEvents = 64;

}  // namespace

ParameterServer::ParameterServer(const Endpoint& at, std::uint32_t world)
    : world_(world),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      workers_(world),
      buffer_(kReadBytes),
      headers_(world),
      partial_(world) {
  const Socket listener = listen_on(at);
  for (std::uint32_t i = 0; i < world; ++i) add_worker(accept_from(listener));
  tell(Header{.world = world});
}

void ParameterServer::add_worker(Socket socket) {
  Header hello;
  receive_all(socket, &hello, sizeof hello);
  if (hello.rank >= world_ || hello != Header{.rank = hello.rank, .world = world_}) {
    throw std::runtime_error("a worker of another job has connected");
  }
  Worker& w = workers_[hello.rank];
  if (w.socket.fd() >= 0) {
    throw std::runtime_error("rank " + std::to_string(hello.rank) + " has connected twice");
  }
  make_nonblocking(socket);
  w.rank = hello.rank;
  w.socket = std::move(socket);
  epoll_event event{.events = EPOLLIN, .data = {.u32 = w.rank}};
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, w.socket.fd(), &event) != 0) {
    throw std::runtime_error(std::string("epoll_ctl: ") + std::strerror(errno));
  }
}

/// Sends a short message to all workers. Connections are idle, so it fits into the socket buffers.
void ParameterServer::tell(const Header& header) {
  for (const Worker& w : workers_) {
    Header own = header;
    own.rank = w.rank;
    if (send_some(w.socket, &own, sizeof own, false) != sizeof own) {
      throw std::runtime_error("rank " + std::to_string(w.rank) + " takes no message");
    }
  }
}

nlohmann::json ParameterServer::run_round(const Round& round) {
  expect_kind(round, {RoundKind::kAllReduce, RoundKind::kPush});
  RoundClock clock;
  begin(round);
  const Segments before = total_segments();
  clock.start(round.at_ns);
  serve();
  clock.end();
  const Segments after = total_segments();
  if (round.spoil) sum_[0] += 1;
  std::vector<std::uint64_t> push_end_ns;
  for (const Worker& w : workers_) push_end_ns.push_back(w.push_end_ns);
  const bool is_correct = is_sum(sum_, round.seed, world_);
  nlohmann::json answer = round_answer("server", clock, is_correct, sum_);
  // An all-reduce ends at the workers. An incast ends here, with the last contribution.
  answer.erase("end_ns");
  answer[round.kind == RoundKind::kPush ? "end_ns" : "pushed_ns"] =
      *std::max_element(push_end_ns.begin(), push_end_ns.end());
  answer["first_end_ns"] = push_end_ns;
  answer["segments"] = after.sent - before.sent;
  answer["retransmitted_segments"] = after.retransmitted - before.retransmitted;
  return answer;
}

nlohmann::json ParameterServer::train(const Training& training) {
  for (std::uint32_t i = 0; i < training.iterations; ++i) {
    begin({.seed = training.seed + i, .bytes = training.bytes});
    serve();
  }
  return {{"rank", "server"}, {"correct", true}};
}

void ParameterServer::serve() {
  epoll_event events[kMaxEvents];
  while (finished_ < workers_.size()) {
    const int count = epoll_wait(epoll_.fd(), events, kMaxEvents, kSilenceMs);
    if (count == 0) throw std::runtime_error("all workers are silent in the middle of a round");
    for (int i = 0; i < count; ++i) {
      if (events[i].events & ~std::uint32_t{EPOLLOUT}) receive(workers_[events[i].data.u32]);
    }
    send_results();
  }
}

void ParameterServer::begin(const Round& round) {
  round_ = round;
  finished_ = 0;
  sum_.assign(round.bytes / sizeof(float), 0.0F);
  for (Worker& w : workers_) {
    w.received = w.sent = w.pushed = 0;
    w.push_end_ns = 0;
    partial_[w.rank].clear();
    watch(w);
  }
}

Header ParameterServer::expected(const Worker& w, Message message) const {
  return {.message = message,
          .seed = round_.seed,
          .bytes = round_.bytes,
          .rank = w.rank,
          .world = world_};
}

/// Reads once for each event, so that no worker delays the others.
void ParameterServer::receive(Worker& w) {
  const std::size_t data_end = sizeof(Header) + round_.bytes;
  if (w.received < sizeof(Header)) {
    take_header(w, w.received,
                round_.kind == RoundKind::kPush ? Message::kPush : Message::kAllReduce);
  } else if (w.received < data_end) {
    take_data(w);
  } else if (w.received < stream_bytes()) {
    take_header(w, w.received - data_end, Message::kFinished);
    if (!has_finished(w)) return;
    ++finished_;
    watch(w);
  } else {
    throw std::runtime_error("rank " + std::to_string(w.rank) + " has left within a round");
  }
}

void ParameterServer::take_header(Worker& w, std::size_t at, Message message) {
  Header& header = headers_[w.rank];
  auto* bytes = reinterpret_cast<std::byte*>(&header);
  const std::size_t got = receive_some(w.socket, bytes + at, sizeof header - at);
  w.received += got;
  if (at + got == sizeof header && header != expected(w, message)) {
    throw std::runtime_error("rank " + std::to_string(w.rank) + " is in another round: seed " +
                             std::to_string(header.seed) + ", " + std::to_string(header.bytes) +
                             " bytes");
  }
}

/// Adds what has arrived. The first part of an element is kept until the rest arrives.
void ParameterServer::take_data(Worker& w) {
  std::vector<std::byte>& half = partial_[w.rank];
  std::copy(half.begin(), half.end(), buffer_.begin());
  const std::size_t left = sizeof(Header) + round_.bytes - w.received;
  const std::size_t got = receive_some(w.socket, buffer_.data() + half.size(),
                                       std::min(left, buffer_.size() - half.size()));
  const std::size_t held = half.size() + got;
  const std::size_t count = held / sizeof(float);
  const auto* arrived = reinterpret_cast<const float*>(buffer_.data());
  float* sum = sum_.data() + w.pushed / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) sum[i] += arrived[i];
  const auto begin = buffer_.begin() + static_cast<std::ptrdiff_t>(count * sizeof(float));
  half.assign(begin, buffer_.begin() + static_cast<std::ptrdiff_t>(held));
  w.pushed += count * sizeof(float);
  w.received += got;
  if (w.pushed == round_.bytes) w.push_end_ns = now_ns();
}

std::size_t ParameterServer::complete_bytes() const {
  std::size_t least = round_.bytes;
  for (const Worker& w : workers_) least = std::min(least, w.pushed);
  return least == round_.bytes ? least : least - least % kChunkBytes;
}

/// How many bytes of its result stream may have been sent to a worker by now.
std::size_t ParameterServer::sendable(const Worker& w) const {
  if (round_.kind == RoundKind::kPush) return w.pushed == round_.bytes ? sizeof(Header) : 0;
  const std::size_t complete = complete_bytes();
  return complete > 0 ? sizeof(Header) + complete : 0;
}

void ParameterServer::send_results() {
  for (Worker& w : workers_) send_result(w);
}

void ParameterServer::send_result(Worker& w) {
  const std::size_t end = sendable(w);
  const Header header = expected(w, Message::kResult);
  bool is_full = false;
  while (w.sent < end && !is_full) {
    const bool in_header = w.sent < sizeof header;
    const auto* from =
        in_header ? reinterpret_cast<const std::byte*>(&header) + w.sent
                  : reinterpret_cast<const std::byte*>(sum_.data()) + w.sent - sizeof header;
    const std::size_t bytes = (in_header ? sizeof header : end) - w.sent;
    const std::size_t sent = send_some(w.socket, from, bytes, in_header && end > sizeof header);
    is_full = sent < bytes;
    w.sent += sent;
  }
  await_room(w, is_full);
}

void ParameterServer::await_room(Worker& w, bool awaits) {
  if (w.awaits_room == awaits) return;
  w.awaits_room = awaits;
  watch(w);
}

/// Does not read from a worker that has finished the round: it may begin the next one before the
/// others have finished.
void ParameterServer::watch(const Worker& w) const {
  const std::uint32_t in = has_finished(w) ? 0U : EPOLLIN;
  epoll_event event{.events = in | (w.awaits_room ? EPOLLOUT : 0U), .data = {.u32 = w.rank}};
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, w.socket.fd(), &event) != 0) {
    throw std::runtime_error(std::string("epoll_ctl: ") + std::strerror(errno));
  }
}

Segments ParameterServer::total_segments() const {
  Segments total;
  for (const Worker& w : workers_) {
    const Segments s = segments_of(w.socket);
    total.sent += s.sent;
    total.retransmitted += s.retransmitted;
  }
  return total;
}

}  // namespace gradplane::peers
