// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <stddef.h>
#include <stdint.h>

/// Attaches a rank to its host's gradplaned, submits rounds, takes completions, and detaches. It
/// has a C ABI, so that any framework's adapter can use it, and needs only libc and the C++
/// library. Functions never print, abort or throw, and each is bounded in time. Except for
/// gp_wake(), only one thread at a time may use a session.
#ifdef __cplusplus
extern "C" {
#endif

typedef struct gp_session gp_session;

enum gp_status {
  GP_OK = 0,
  GP_NO_DAEMON = 1,   // no process listens on the socket, or one of a user that is not trusted
  GP_REFUSED = 2,     // the daemon has refused; the error text says why
  GP_TIMEOUT = 3,     // the time is over; the error text says for whom it waited
  GP_BROKEN = 4,      // the daemon is gone, stopped, or broke the protocol; detach
  GP_JOB_FAILED = 5,  // the daemon lives, but this job cannot go on; the error text says why
  GP_FULL = 6,        // kMaxInFlightRounds rounds are in flight; take a completion first
  GP_BAD_ARGUMENT = 7,
};

/// Size of the longest text of this interface, with its final 0: a daemon's reason, and the
/// client's text before it. In a smaller buffer the text is cut.
enum { GP_TEXT_BYTES = 1024 };

struct gp_attach_options {
  const char* socket_path;  // of the daemon's control socket
  uint8_t job_key[16];      // a secret, the same on every rank of the job
  uint32_t rank;
  uint32_t world_size;
  const char* label;     // for people: what this process is, e.g. "train.py"; may be NULL
  const char* run_id;    // from `gradplane run`; may be NULL
  uint32_t timeout_ms;   // for all answers of the daemon together
  uint32_t liveness_ms;  // without a beat for so long a daemon is dead; 0: 5 s; at least 2 s
  uint32_t daemon_uid;   // daemons of this user are trusted, besides root's and the rank's own
};

struct gp_tensor {
  const char* name;          // the framework's name; may be NULL
  uint64_t offset_elements;  // inside the bucket
  uint64_t elements;
};

/// The statement of a round, which must be the same on all ranks. Element types, operations and
/// reductions are those of dataplane/model. docs/shm-abi.md says what each operation takes and
/// gives.
struct gp_statement {
  uint32_t elements;  // of the slot; a multiple of the world size where the operation has shards
  uint8_t element_type;
  uint8_t operation;
  uint16_t source;    // of a broadcast: the rank that has the bytes; of an exchange: the number of
                      // the selection, < gp_selections(); otherwise 0
  uint16_t bucket;    // of a sum by all_reduce, or of an exchange: a registered one; otherwise 0
  uint8_t reduction;  // of an all_reduce or a reduce_scatter; otherwise 0, a sum
};

struct gp_completion {
  uint32_t round;
  int32_t status;           // GP_OK or GP_JOB_FAILED
  uint32_t contributors;    // the smallest number of ranks in any block; 1 after an all_gather or a
                            // broadcast; after an exchange this rank and those whose updates came
  uint32_t partial_blocks;  // blocks whose sum lacks some rank's contribution; 0: the sum is exact
};

/// Connects, presents the key, maps the channel. On failure `error` gets a sentence for a person.
int gp_attach(const struct gp_attach_options* options, gp_session** out, char* error,
              size_t error_bytes);

/// Waits until every rank has joined and a plan is in force. On GP_TIMEOUT the text names the ranks
/// that are missing.
int gp_wait_ready(gp_session* session, int timeout_ms, char* error, size_t error_bytes);

/// A sentence that says for which ranks the daemon waits before the job can begin. Never waits.
void gp_describe_wait(gp_session* session, char* text, size_t text_bytes);

/// The most bytes of one round, and the most rounds in flight.
size_t gp_round_bytes(const gp_session* session);
uint32_t gp_rounds_in_flight_max(const gp_session* session);

/// The round that is submitted next. A rank that joins a running job does not begin with 0. Known
/// after gp_wait_ready().
uint32_t gp_next_round(const gp_session* session);

/// The number of selections of the job's plan; 0: the job carries no exchanges. Exchanges in step t
/// of the training use selection t mod this number. Known after gp_wait_ready().
uint32_t gp_selections(const gp_session* session);

/// The number of steps between exact averages of the parameters, which ranks that exchange updates
/// must take; 0: never. Known after gp_wait_ready().
uint32_t gp_average_every(const gp_session* session);

/// The staleness bound: a result of an exchange waits only for ranks that are more than so many
/// steps behind, and may have older updates of the others. 0: it waits for all that send in its
/// step. Known after gp_wait_ready().
uint32_t gp_staleness(const gp_session* session);

/// Reports the drift of this rank's parameters from their mean over all ranks: the norm of the
/// difference, and that of the mean, both finite and not negative. The report is dropped when the
/// socket has no room. Never waits.
int gp_report_drift(gp_session* session, uint64_t step, double distance, double norm);

/// 1 when the daemon's operator forbids the trainer to go on without gradplane, else 0.
int gp_require(const gp_session* session);

/// The same for a daemon without attaching to it; 0 when none answers in time. `daemon_uid` is as
/// in gp_attach_options.
int gp_daemon_requires(const char* socket_path, uint32_t daemon_uid, uint32_t timeout_ms);

/// Tells the daemon which tensors are in the rounds that are submitted with this bucket id, so that
/// each gets its loss bound. `bucket` is 1 to 4096 and stands for one table only: other tensors
/// need another id. `tensors` (16384 at most) are in the order of their offsets and do not overlap.
/// All ranks of a job register the same. After GP_BAD_ARGUMENT the daemon was not told, and the
/// session goes on.
int gp_register_bucket(gp_session* session, uint32_t bucket, uint8_t element_type,
                       const struct gp_tensor* tensors, size_t count);

/// The arena memory of a round: gp_round_bytes() bytes. Write the contribution there, submit, and
/// after the completion read the result there. The bytes stay until round + 2 * in-flight-max is
/// submitted.
void* gp_round_memory(gp_session* session, uint32_t round);

/// Submits a round. Rounds must come in order from gp_next_round() on, which is 0 in a job that
/// begins, and otherwise known when gp_wait_ready() has succeeded. The session of a rank that
/// submits another round ends. With bucket 0 the sum is exact, whatever the configuration says.
/// With another bucket the round waits until the last round of this bucket is complete here, and
/// later rounds wait with it.
int gp_submit(gp_session* session, uint32_t round, const struct gp_statement* said);

/// Takes one completion without waiting. Returns 1 if there was one, 0 if not, or -gp_status when
/// the session is over.
int gp_poll(gp_session* session, struct gp_completion* out);

/// Spins briefly, then sleeps until a completion may have come, gp_wake() is called, the job's
/// state changes, or the time is over (0: does not wait). It never sleeps for more than a second,
/// so that the daemon's beat is checked. Returns GP_OK, or why the session is over.
int gp_wait(gp_session* session, int timeout_ms);

/// Ends a gp_wait() of another thread. Thread-safe and async-signal-safe.
void gp_wake(gp_session* session);

/// Why the session is over, or "".
const char* gp_failure(const gp_session* session);

/// Leaves the job as a failed rank does, but keeps the memory. Nothing can be submitted any more,
/// but gp_poll() still gives what the daemon has completed, and gp_round_memory() the results. Call
/// gp_detach() after that. Never waits for the daemon.
void gp_leave(gp_session* session);

/// Leaves the job and frees the session. `clean` not 0: the rank ends in order. Never waits for the
/// daemon.
void gp_detach(gp_session* session, int clean);

/// Forgets the session in a child after fork(), without telling the daemon.
void gp_abandon(gp_session* session);

#ifdef __cplusplus
}
#endif
