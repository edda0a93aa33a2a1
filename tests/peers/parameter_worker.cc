// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <poll.h>

#include <stdexcept>

#include "tests/peers/parameter_server.h"

namespace gradplane::peers {
namespace {

constexpr int kSilenceMs = 120'000;

}  // namespace

ParameterWorker::ParameterWorker(const Endpoint& server, std::uint32_t rank, std::uint32_t world)
    : rank_(rank), world_(world), socket_(connect_to(server)) {
  const Header hello{.rank = rank, .world = world};
  send_some(socket_, &hello, sizeof hello, false);
  Header all_are_there;
  receive_all(socket_, &all_are_there, sizeof all_are_there);
  if (all_are_there != hello) throw std::runtime_error("the server is one of another job");
  make_nonblocking(socket_);
}

Header ParameterWorker::begin(const Round& round) {
  bytes_ = round.bytes;
  is_push_ = round.kind == RoundKind::kPush;
  sent_ = received_ = 0;
  data_.resize(bytes_ / sizeof(float));
  fill(data_, round.seed, rank_);
  return {.message = is_push_ ? Message::kPush : Message::kAllReduce,
          .seed = round.seed,
          .bytes = round.bytes,
          .rank = rank_,
          .world = world_};
}

void ParameterWorker::finish(const Header& header) {
  Header finished = header;
  finished.message = Message::kFinished;
  if (send_some(socket_, &finished, sizeof finished, false) != sizeof finished) {
    throw std::runtime_error("the server does not take the end of the round");
  }
}

nlohmann::json ParameterWorker::run_round(const Round& round) {
  expect_kind(round, {RoundKind::kAllReduce, RoundKind::kPush});
  RoundClock clock;
  const Header header = begin(round);
  const Segments before = segments_of(socket_);
  clock.start(round.at_ns);
  exchange(header);
  clock.end();
  finish(header);
  const Segments after = segments_of(socket_);
  if (round.spoil) data_[0] += 1;
  // After a push alone the worker has no sum. The server checks it.
  const bool is_correct = is_push_ || is_sum(data_, round.seed, world_);
  nlohmann::json answer = round_answer(rank_, clock, is_correct, data_);
  if (is_push_) answer.erase("crc");
  answer["segments"] = after.sent - before.sent;
  answer["retransmitted_segments"] = after.retransmitted - before.retransmitted;
  return answer;
}

nlohmann::json ParameterWorker::train(const Training& training) {
  Header header;
  return run_training(
      rank_, training,
      {.prepare =
           [&](std::uint64_t seed) { header = begin({.seed = seed, .bytes = training.bytes}); },
       .reduce =
           [&] {
             exchange(header);
             finish(header);
           },
       .is_right = [&](std::uint64_t seed) { return is_sum(data_, seed, world_); }});
}

void ParameterWorker::exchange(const Header& header) {
  const std::size_t total = sizeof header + bytes_;
  while (!has_all()) {
    const bool sends = sent_ < total;
    pollfd waiting{.fd = socket_.fd(),
                   .events = static_cast<short>(POLLIN | (sends ? POLLOUT : 0)),
                   .revents = 0};
    if (poll(&waiting, 1, kSilenceMs) == 0) throw std::runtime_error("the server is silent");
    if (waiting.revents & POLLOUT) send_more(header);
    if (waiting.revents & ~POLLOUT) receive_more(header);
  }
}

void ParameterWorker::send_more(const Header& header) {
  if (sent_ < sizeof header) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&header);
    sent_ += send_some(socket_, bytes + sent_, sizeof header - sent_, true);
    return;
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(data_.data());
  const std::size_t at = sent_ - sizeof header;
  sent_ += send_some(socket_, bytes + at, bytes_ - at, false);
}

/// The result overwrites the contribution. The server sends only what it has summed, so those bytes
/// have left this memory before.
void ParameterWorker::receive_more(const Header& header) {
  if (received_ < sizeof header) {
    auto* bytes = reinterpret_cast<std::byte*>(&result_header_);
    received_ += receive_some(socket_, bytes + received_, sizeof header - received_);
    if (received_ < sizeof header) return;
    Header expected = header;
    expected.message = Message::kResult;
    if (result_header_ != expected) throw std::runtime_error("a result of another round");
    return;
  }
  const std::size_t at = received_ - sizeof header;
  auto* bytes = reinterpret_cast<std::byte*>(data_.data());
  received_ += receive_some(socket_, bytes + at, bytes_ - at);
  if (received_ > sent_) throw std::runtime_error("more results than contributions");
}

}  // namespace gradplane::peers
