// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/client/session.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

#include "dataplane/ipc/doorbell.h"
#include "dataplane/model/element_type.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"
#include "trainer-shim/client/clock.h"
#include "trainer-shim/client/text.h"

namespace gradplane::client {
namespace {

/// Spinning saves time when the answer is one round trip on a fast network away. It costs time when
/// the daemon needs this CPU. So where there are few CPUs, the rank yields between two looks.
constexpr Duration kSpinLimit = Duration::us(20);
constexpr int kFewCpus = 2;
constexpr int kSpinsPerClockRead = 16;
/// The most messages that one call takes, so that a daemon cannot hold the trainer up by sending.
constexpr int kMaxMessagesPerCall = 32;
/// How long a rank waits for room in the socket of the daemon.
constexpr Duration kSendLimit = Duration::seconds(1);
/// The most bytes of JSON of a part of a bucket's table, without its tensors.
constexpr std::size_t kBucketPartBytes = 256;
/// The most bytes of JSON of a tensor, without its name.
constexpr std::size_t kTensorBytes = 96;
/// The most bytes of JSON for one byte of a name: two for a quote or backslash, three for a byte
/// that is no UTF-8.
constexpr std::size_t kMaxEncodedBytesPerByte = 3;
static_assert(kBucketPartBytes + kTensorBytes +
                      kMaxEncodedBytesPerByte * protocol::kMaxTensorNameBytes <=
                  protocol::kMaxSocketMessageBytes,
              "every part holds a tensor");

bool has_few_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const bool known = ::sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
  return known && CPU_COUNT(&cpus) <= kFewCpus;
}

/// Refuses what the daemon would refuse, so that the caller learns why.
Failure check_bucket(std::uint32_t bucket, std::uint8_t element_type,
                     std::span<const gp_tensor> tensors, std::size_t round_bytes) {
  if (bucket == 0 || bucket > kMaxBuckets) {
    return {GP_BAD_ARGUMENT, "a bucket's id is 1 to " + std::to_string(kMaxBuckets)};
  }
  if (!is_element_type(element_type) || !is_floating(static_cast<ElementType>(element_type))) {
    return {GP_BAD_ARGUMENT, "only buckets of a floating type have loss bounds"};
  }
  if (tensors.empty() || tensors.size() > kMaxTensorsPerBucket) {
    return {GP_BAD_ARGUMENT,
            "a bucket has 1 to " + std::to_string(kMaxTensorsPerBucket) + " tensors"};
  }
  const std::size_t limit = round_bytes / element_bytes(static_cast<ElementType>(element_type));
  std::uint64_t end = 0;
  for (const gp_tensor& tensor : tensors) {
    if (tensor.elements == 0 || tensor.offset_elements < end || tensor.offset_elements > limit ||
        tensor.elements > limit - tensor.offset_elements) {
      return {GP_BAD_ARGUMENT, "tensors lie in a round one behind the other, and none is empty"};
    }
    end = tensor.offset_elements + tensor.elements;
  }
  return {};
}

/// Whether the daemon accepts a statement. If not, it would end the session, so the caller refuses
/// the statement. Only the daemon knows how many blocks the shards of a slot have.
bool is_sound(const gp_statement& said, std::uint32_t world_size, std::size_t round_bytes) {
  if (!is_element_type(said.element_type) || !is_operation(said.operation)) return false;
  if (!is_reduction(said.reduction)) return false;
  const Statement statement{.type = static_cast<ElementType>(said.element_type),
                            .elements = said.elements,
                            .bucket = said.bucket,
                            .operation = static_cast<Operation>(said.operation),
                            .source = said.source,
                            .reduction = static_cast<Reduction>(said.reduction)};
  const auto ranks = static_cast<std::uint16_t>(world_size);
  return said.bucket <= kMaxBuckets &&
         said.elements <= round_bytes / element_bytes(statement.type) &&
         Geometry::of(statement, kDefaultBlockBytes, ranks).is_sound(ranks);
}

void relax_processor() noexcept {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

}  // namespace

Session::Session(Attachment attachment, ipc::Doorbell wake, std::uint32_t world_size)
    : attachment_(std::move(attachment)),
      wake_(std::move(wake)),
      world_size_(world_size),
      has_few_cpus_(has_few_cpus()),
      rings_(attachment_.channel, attachment_.daemon_doorbells, rounds_in_flight_max()),
      rounds_(rounds_in_flight_max()) {
  for (std::size_t c = 0; c < channel().sizes().core_count; ++c)
    liveness_.emplace_back(channel().daemon_beat(c), monotonic_now(), attachment_.liveness_limit);
}

Failure Session::wait_ready(Duration bound) {
  const Instant deadline = monotonic_now() + bound;
  take_messages();
  while (!ready_ && !over_) {
    const Instant now = monotonic_now();
    if (now >= deadline) return {GP_TIMEOUT, missing_text()};
    poll_descriptors(deadline - now, false);
  }
  return over_;
}

std::string Session::missing_text() const {
  if (waiting_.missing_count == 0) {
    return waiting_.reason.empty() ? "gradplaned has not said for whom it waits" : waiting_.reason;
  }
  std::string text = waiting_.missing_count == 1 ? "waited for rank" : "waited for ranks";
  for (const std::uint32_t rank : waiting_.missing) text.append(" ").append(std::to_string(rank));
  if (waiting_.missing_count > waiting_.missing.size()) {
    text += " and " + std::to_string(waiting_.missing_count - waiting_.missing.size()) + " more";
  }
  return waiting_.reason.empty() ? text : text + "; gradplaned says: " + waiting_.reason;
}

std::string Session::describe_wait() {
  take_messages();
  if (over_) return over_.reason;
  return ready_ ? "all ranks have joined" : missing_text();
}

Failure Session::register_bucket(std::uint32_t bucket, std::uint8_t element_type,
                                 std::span<const gp_tensor> tensors) {
  if (over_) return over_;
  if (auto failure = check_bucket(bucket, element_type, tensors, round_bytes())) return failure;
  for (std::size_t first = 0; first < tensors.size();) {
    protocol::RegisterBucket part{.bucket = bucket,
                                  .element_type = static_cast<ElementType>(element_type),
                                  .total = static_cast<std::uint32_t>(tensors.size()),
                                  .first = static_cast<std::uint32_t>(first),
                                  .tensors = {}};
    std::size_t bytes = kBucketPartBytes;
    for (; first < tensors.size(); ++first) {
      const gp_tensor& tensor = tensors[first];
      std::string name = text_within(tensor.name, protocol::kMaxTensorNameBytes);
      bytes += kTensorBytes + kMaxEncodedBytesPerByte * name.size();
      if (bytes > protocol::kMaxSocketMessageBytes) break;
      part.tensors.push_back({std::move(name), tensor.offset_elements, tensor.elements});
    }
    auto failure = attachment_.control.send(protocol::encode(part), monotonic_now() + kSendLimit);
    if (!failure) continue;
    end(GP_BROKEN, failure.reason);
    break;
  }
  return over_;
}

gp_status Session::submit(std::uint32_t round, const gp_statement& said) {
  if (over_) return over_.status;
  if (rounds_.full()) return GP_FULL;
  if (round != rounds_.next() || !is_sound(said, world_size_, round_bytes())) {
    return GP_BAD_ARGUMENT;
  }
  const bool exchanges = said.operation == static_cast<std::uint8_t>(Operation::kExchange);
  if (exchanges && said.source >= terms_.selections) return GP_BAD_ARGUMENT;
  const ipc::Submission submission{.round = round,
                                   .elements = said.elements,
                                   .element_type = said.element_type,
                                   .operation = said.operation,
                                   .source = said.source,
                                   .bucket = said.bucket,
                                   .reduction = said.reduction};
  // A ring has room for all rounds in flight, so it can be full only if the daemon has broken it.
  if (!rings_.submit(submission)) {
    end(GP_BROKEN, "gradplaned wrote impossible indices into the submission ring");
    return over_.status;
  }
  rounds_.submit();
  has_submitted_ = true;
  return GP_OK;
}

gp_status Session::report_drift(const protocol::Drift& drift) {
  if (over_) return over_.status;
  // The daemon would hang up on negative values and on values that are not finite.
  const auto is_norm = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!is_norm(drift.distance) || !is_norm(drift.norm)) return GP_BAD_ARGUMENT;
  attachment_.control.try_send(protocol::encode(drift));
  return GP_OK;
}

int Session::poll(gp_completion& out) {
  ipc::Completion completion;
  // Completions from before the end of the session are still valid.
  auto took = CoreRings::Took::kNothing;
  if (ring_is_sane_) took = rings_.take(completion, world_size_);
  if (took == CoreRings::Took::kNothing) {
    if (rings_.broken()) {
      end(GP_BROKEN, "gradplaned wrote an impossible index into the completion ring");
    }
    return -over_.status;
  }
  ring_is_sane_ = took == CoreRings::Took::kRound;
  if (!ring_is_sane_) {
    end(GP_BROKEN, "gradplaned completed round " + std::to_string(completion.round) +
                       " in a way that cannot be");
    return -GP_BROKEN;
  }
  (void)rounds_.complete(completion.round);  // take() has checked that it is in flight
  const bool failed = completion.status == ipc::CompletionStatus::kFailed;
  out = {completion.round, failed ? GP_JOB_FAILED : GP_OK, completion.contributors,
         completion.partial_blocks};
  return 1;
}

gp_status Session::wait(Duration bound) {
  const Instant now = monotonic_now();
  const Instant deadline = now + std::clamp(bound, Duration(), kWaitSlice);
  if (!over_ && !spin(now, deadline)) sleep(deadline - monotonic_now());
  woken_.exchange(false);
  return over_.status;
}

bool Session::has_news() noexcept {
  return rings_.has_news() || woken_.load();
}

/// Spins for a short time. Returns whether there is something to do.
bool Session::spin(Instant now, Instant deadline) noexcept {
  const bool yields = has_few_cpus_ && yields_.may_yield(now);
  const Duration limit = yields ? Yields::kLimit : has_few_cpus_ ? Duration() : kSpinLimit;
  for (const Instant until = std::min(deadline, now + limit);;) {
    for (int i = 0; i < kSpinsPerClockRead; ++i) {
      if (has_news()) return true;
      relax_processor();
    }
    now = monotonic_now();
    if (now >= until) return false;
    if (!yields) continue;
    ::sched_yield();
    yields_.on_yield(now, monotonic_now());
  }
}

/// Sleeps by the protocol of ipc/doorbell.h, towards the daemon and towards callers of wake().
void Session::sleep(Duration bound) {
  ipc::announce_sleep(channel().trainer_sleeps());
  sleeps_.store(true);
  if (!has_news()) poll_descriptors(bound, true);
  sleeps_.store(false);
  ipc::end_sleep(channel().trainer_sleeps());
}

void Session::wake() noexcept {
  woken_.store(true);
  if (sleeps_.load()) ipc::ring_doorbell(wake_.ring.get());
}

void Session::poll_descriptors(Duration bound, bool completions_wake) {
  std::array<pollfd, 3> descriptors = {{{attachment_.control.fd(), POLLIN, 0},
                                        {attachment_.trainer_doorbell.get(), POLLIN, 0},
                                        {wake_.listen.get(), POLLIN, 0}}};
  const std::size_t count = completions_wake ? descriptors.size() : 1;
  if (poll_for(std::span(descriptors).first(count), std::min(bound, kWaitSlice)) > 0) {
    if (descriptors[1].revents != 0) ipc::silence_doorbell(descriptors[1].fd);
    if (descriptors[2].revents != 0) ipc::silence_doorbell(descriptors[2].fd);
    if (descriptors[0].revents != 0) take_messages();
  }
  look_at_beat();
}

void Session::take_messages() {
  for (int i = 0; i < kMaxMessagesPerCall && !over_; ++i) {
    Received received;
    const auto got = attachment_.control.receive(received);
    if (got == ControlSocket::Got::kNothing) return;
    if (got == ControlSocket::Got::kEnd) {
      return end(
          GP_BROKEN,
          "gradplaned closed the connection: it has ended, or it dropped this rank, and then "
          "its log says why");
    }
    const auto parsed = protocol::parse_daemon_message(received.text);
    if (!parsed.ok()) {
      return end(GP_BROKEN, "gradplaned sent nonsense: " + parsed.rejection.text);
    }
    take(*parsed.message);
  }
}

void Session::take(const protocol::DaemonMessage& message) {
  if (const auto* waiting = std::get_if<protocol::Waiting>(&message)) {
    ready_ = false;
    waiting_ = *waiting;
  } else if (const auto* ready = std::get_if<protocol::Ready>(&message)) {
    ready_ = true;
    terms_ = *ready;
    if (!has_submitted_) {
      rounds_ = ipc::RoundsInFlight(rounds_in_flight_max(), ready->first_round);
      rings_.begin_at(ready->first_round);
    }
  } else if (const auto* failed = std::get_if<protocol::JobFailed>(&message)) {
    end(GP_JOB_FAILED, failed->reason);
  } else if (const auto* error = std::get_if<protocol::SocketError>(&message)) {
    end(GP_BROKEN, "gradplaned ended the session: " + error->reason);
  } else {
    end(GP_BROKEN, "gradplaned sent a message out of turn");
  }
}

void Session::look_at_beat() {
  const Instant now = monotonic_now();
  for (std::size_t c = 0; c < liveness_.size(); ++c) {
    if (liveness_[c].look(channel().daemon_beat(c), now)) continue;
    return end(GP_BROKEN, "gradplaned shows no sign of life for " +
                              std::to_string(static_cast<int>(liveness_[c].limit().to_seconds())) +
                              " seconds");
  }
}

void Session::end(gp_status status, std::string reason) {
  if (!over_) over_ = {status, std::move(reason)};
}

void Session::say_goodbye(bool clean) {
  attachment_.control.try_send(protocol::encode(protocol::Detach{clean}));
}

void Session::leave() {
  end(GP_BROKEN, "the rank has left");
  say_goodbye(false);
  attachment_.control.close();
}

}  // namespace gradplane::client
