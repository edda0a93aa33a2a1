// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/client/client.h"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <utility>

#include "control/protocol/socket_messages.h"
#include "dataplane/ipc/doorbell.h"
#include "trainer-shim/client/session.h"

using gradplane::Duration;
using gradplane::client::Attachment;
using gradplane::client::Failure;
using gradplane::client::Session;

struct gp_session {
  /// The session is constructed in place, because it has pointers into itself.
  gp_session(Attachment attachment, gradplane::ipc::Doorbell wake, std::uint32_t world_size)
      : session(std::move(attachment), std::move(wake), world_size) {}
  Session session;
};

namespace {

constexpr const char* kNoMemory = "out of memory";

/// The longest text that the client puts before a daemon's reason, such as the ranks for which it
/// waits.
constexpr std::size_t kMaxLeadBytes = 511;
static_assert(gradplane::protocol::kMaxReasonBytes + kMaxLeadBytes < GP_TEXT_BYTES,
              "a rank prints the whole reason of its daemon");

/// Restores errno, which the trainer must find unchanged.
class ErrnoGuard {
 public:
  ErrnoGuard() = default;
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;
  ~ErrnoGuard() { errno = saved_; }

 private:
  int saved_ = errno;
};

/// Writes to the caller's error buffer. It is called before the work, too, so that there is a text
/// if an exception ends the work.
void tell(const char* reason, char* error, std::size_t error_bytes) noexcept {
  if (error != nullptr && error_bytes > 0) std::snprintf(error, error_bytes, "%s", reason);
}

/// Runs `body`. An exception, which can only mean that memory is short, becomes `otherwise`.
template <typename Body, typename Value>
Value guarded(Value otherwise, Body body) noexcept {
  const ErrnoGuard guard;
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}

Failure attach_session(const gp_attach_options* options, gp_session** out) {
  if (options == nullptr || out == nullptr) return {GP_BAD_ARGUMENT, "a null pointer"};
  Attachment attachment;
  if (auto failure = gradplane::client::attach(*options, attachment)) return failure;
  auto wake = gradplane::ipc::create_doorbell();
  if (!wake) return {GP_BROKEN, wake.error().message};
  *out = new gp_session(std::move(attachment), std::move(wake.value()), options->world_size);
  return {};
}

}  // namespace

int gp_attach(const gp_attach_options* options, gp_session** out, char* error, size_t error_bytes) {
  if (out != nullptr) *out = nullptr;
  tell(kNoMemory, error, error_bytes);
  return guarded(int{GP_BROKEN}, [&] {
    const Failure failure = attach_session(options, out);
    tell(failure.reason.c_str(), error, error_bytes);
    return int{failure.status};
  });
}

int gp_wait_ready(gp_session* session, int timeout_ms, char* error, size_t error_bytes) {
  tell("a null pointer", error, error_bytes);
  if (session == nullptr) return GP_BAD_ARGUMENT;
  tell(kNoMemory, error, error_bytes);
  return guarded(int{GP_BROKEN}, [&] {
    const Failure failure = session->session.wait_ready(Duration::ms(timeout_ms));
    tell(failure.reason.c_str(), error, error_bytes);
    return int{failure.status};
  });
}

size_t gp_round_bytes(const gp_session* session) {
  return session == nullptr ? 0 : session->session.round_bytes();
}

uint32_t gp_rounds_in_flight_max(const gp_session* session) {
  return session == nullptr ? 0 : session->session.rounds_in_flight_max();
}

uint32_t gp_next_round(const gp_session* session) {
  return session == nullptr ? 0 : session->session.next_round();
}

uint32_t gp_selections(const gp_session* session) {
  return session == nullptr ? 0 : session->session.selections();
}

uint32_t gp_average_every(const gp_session* session) {
  return session == nullptr ? 0 : session->session.average_every();
}

uint32_t gp_staleness(const gp_session* session) {
  return session == nullptr ? 0 : session->session.staleness();
}

int gp_report_drift(gp_session* session, uint64_t step, double distance, double norm) {
  if (session == nullptr) return GP_BAD_ARGUMENT;
  return guarded(int{GP_BROKEN}, [&] {
    return int{session->session.report_drift({step, distance, norm})};
  });
}

int gp_require(const gp_session* session) {
  return session != nullptr && session->session.require() ? 1 : 0;
}

int gp_daemon_requires(const char* socket_path, uint32_t daemon_uid, uint32_t timeout_ms) {
  return guarded(0, [&] {
    const bool requires_it =
        gradplane::client::daemon_requires(socket_path, daemon_uid, Duration::ms(timeout_ms));
    return requires_it ? 1 : 0;
  });
}

void gp_describe_wait(gp_session* session, char* text, size_t text_bytes) {
  if (session == nullptr) return;
  guarded(0, [&] {
    tell(session->session.describe_wait().c_str(), text, text_bytes);
    return 0;
  });
}

int gp_register_bucket(gp_session* session, uint32_t bucket, uint8_t element_type,
                       const gp_tensor* tensors, size_t count) {
  if (session == nullptr || (tensors == nullptr && count != 0)) return GP_BAD_ARGUMENT;
  return guarded(int{GP_BROKEN}, [&] {
    return int{session->session.register_bucket(bucket, element_type, {tensors, count}).status};
  });
}

void* gp_round_memory(gp_session* session, uint32_t round) {
  return session == nullptr ? nullptr : session->session.round_memory(round).data();
}

int gp_submit(gp_session* session, uint32_t round, const gp_statement* said) {
  if (session == nullptr || said == nullptr) return GP_BAD_ARGUMENT;
  return guarded(int{GP_BROKEN}, [&] { return int{session->session.submit(round, *said)}; });
}

int gp_poll(gp_session* session, gp_completion* out) {
  if (session == nullptr || out == nullptr) return -GP_BAD_ARGUMENT;
  return guarded(-int{GP_BROKEN}, [&] { return session->session.poll(*out); });
}

int gp_wait(gp_session* session, int timeout_ms) {
  if (session == nullptr) return GP_BAD_ARGUMENT;
  return guarded(int{GP_BROKEN},
                 [&] { return int{session->session.wait(Duration::ms(timeout_ms))}; });
}

void gp_wake(gp_session* session) {
  if (session != nullptr) session->session.wake();
}

const char* gp_failure(const gp_session* session) {
  return session == nullptr ? "" : session->session.failure();
}

void gp_leave(gp_session* session) {
  if (session == nullptr) return;
  guarded(0, [&] {
    session->session.leave();
    return 0;
  });
}

void gp_detach(gp_session* session, int clean) {
  if (session == nullptr) return;
  guarded(0, [&] {
    session->session.say_goodbye(clean != 0);
    return 0;
  });
  gp_abandon(session);
}

void gp_abandon(gp_session* session) {
  const ErrnoGuard guard;
  delete session;
}
