// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <stddef.h>
#include <stdint.h>

/// Attach a rank to its host's gradplaned, submit rounds, take completions, detach. A C ABI, so
/// that any framework's adapter can use it. libc and the C++ library only. Never prints, never
/// aborts, never throws; every call is bounded in time. Save for gp_wake(), a session belongs to
/// one thread at a time.
#ifdef __cplusplus
extern "C" {
#endif

typedef struct gp_session gp_session;

enum gp_status {
  GP_OK = 0,
  GP_NO_DAEMON = 1,   // nobody listens on the socket, or a user whom the rank does not trust
  GP_REFUSED = 2,     // the daemon said no; the error text says why
  GP_TIMEOUT = 3,     // the bound passed; the error text says for whom it waited
  GP_BROKEN = 4,      // the daemon is gone, stopped, or talks nonsense; detach
  GP_JOB_FAILED = 5,  // the daemon lives, but this job cannot go on; the error text says why
  GP_FULL = 6,        // kMaxInFlightRounds rounds are in flight; take a completion first
  GP_BAD_ARGUMENT = 7,
};

/// Room for the longest text of this interface, with its final 0: a daemon's reason, and what the
/// client says before it. A smaller buffer gets the begin of the text.
enum { GP_TEXT_BYTES = 1024 };

struct gp_attach_options {
  const char* socket_path;  // of the daemon's control socket
  uint8_t job_key[16];      // the same on every rank of the job, nobody else's
  uint32_t rank;
  uint32_t world_size;
  const char* label;     // for people: what this process is, e.g. "train.py"; may be NULL
  const char* run_id;    // of `gradplane run`; may be NULL
  uint32_t timeout_ms;   // for the daemon's answer
  uint32_t liveness_ms;  // a daemon that shows no life for so long is dead; 0: 5 s; at least 2 s
  uint32_t daemon_uid;   // a daemon of this user is trusted, as are root's and the rank's own
};

struct gp_tensor {
  const char* name;          // as the framework calls it; may be NULL
  uint64_t offset_elements;  // inside the bucket
  uint64_t elements;
};

/// What a rank says of a round. All ranks say the same of it. The element types and operations are
/// those of dataplane/model, as are the reductions. docs/shm-abi.md says what each operation takes
/// and gives.
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
  uint32_t contributors;    // the fewest ranks in any block: 1 after an all_gather or a broadcast;
                            // after an exchange this rank and those whose updates have come
  uint32_t partial_blocks;  // blocks whose sum lacks some rank's contribution; 0: the sum is exact
};

/// Connects, presents the key, maps the channel. `error` gets a sentence for a person on failure.
int gp_attach(const struct gp_attach_options* options, gp_session** out, char* error,
              size_t error_bytes);

/// Waits until every rank has joined and a plan is in force. On GP_TIMEOUT the text names the ranks
/// that are missing.
int gp_wait_ready(gp_session* session, int timeout_ms, char* error, size_t error_bytes);

/// For whom the daemon waits before the job can begin, as a sentence; does not wait itself.
void gp_describe_wait(gp_session* session, char* text, size_t text_bytes);

/// Bytes that one round may hold, and rounds that may be in flight.
size_t gp_round_bytes(const gp_session* session);
uint32_t gp_rounds_in_flight_max(const gp_session* session);

/// The round that is submitted next. A rank that joins a job that runs does not begin with 0; known
/// after gp_wait_ready().
uint32_t gp_next_round(const gp_session* session);

/// Who receives whose update in an exchange is one of so many selections; 0: the job carries no
/// exchanges. The exchanges of step t of the training are of selection t mod this number. Known
/// after gp_wait_ready().
uint32_t gp_selections(const gp_session* session);

/// Steps between exact averages of the parameters, which ranks that exchange updates owe each
/// other; 0: never. Known after gp_wait_ready().
uint32_t gp_average_every(const gp_session* session);

/// A result of an exchange waits only for ranks that are more than so many steps behind, and may
/// hold older updates of the others; 0: it waits for all that send in its step. Known after
/// gp_wait_ready().
uint32_t gp_staleness(const gp_session* session);

/// Tells the daemon how far this rank's parameters were from their mean over all ranks: the norm of
/// the difference, and that of the mean, both finite and not negative. Dropped when the socket has
/// no room; never waits.
int gp_report_drift(gp_session* session, uint64_t step, double distance, double norm);

/// 1 when the daemon's operator forbids the trainer to go on without gradplane, else 0.
int gp_require(const gp_session* session);

/// The same of a daemon that nobody is attached to; 0 when none answers in time. `daemon_uid` as in
/// gp_attach_options.
int gp_daemon_requires(const char* socket_path, uint32_t daemon_uid, uint32_t timeout_ms);

/// Tells the daemon what lies in the rounds that are submitted with this bucket id, so that each
/// tensor gets its loss bound. `bucket` is 1 to 4096 and stands for one table only: other contents
/// get another id. `tensors` (16384 at most) are in the order of their offsets and do not overlap.
/// All ranks of a job register the same. GP_BAD_ARGUMENT: nothing was told, and the session goes
/// on.
int gp_register_bucket(gp_session* session, uint32_t bucket, uint8_t element_type,
                       const struct gp_tensor* tensors, size_t count);

/// The arena memory of a round: gp_round_bytes() bytes. Write the contribution there, submit, and
/// after the completion read the result there. The bytes stay until round + 2 * in-flight-max is
/// submitted.
void* gp_round_memory(gp_session* session, uint32_t round);

/// Hands a round over. Rounds go in order from gp_next_round(), which is 0 in a job that begins and
/// is known in any other when gp_wait_ready() has succeeded: a rank that submits another round has
/// no part in the job any more. Of bucket 0 the sum is exact, whatever the configuration says.
/// Otherwise the round waits until the last one of the bucket is complete here, and the rounds
/// behind it wait, too.
int gp_submit(gp_session* session, uint32_t round, const struct gp_statement* said);

/// Takes one completion, without waiting: 1 taken, 0 none, or -gp_status when the session is over.
int gp_poll(gp_session* session, struct gp_completion* out);

/// Spins briefly, then sleeps until a completion may be there, gp_wake() is called, the job's state
/// changes, or the time is over (0: do not wait; never more than one second at a time, so that the
/// caller tests liveness). GP_OK, or why the session is over.
int gp_wait(gp_session* session, int timeout_ms);

/// Ends a gp_wait() of another thread. Thread-safe and async-signal-safe.
void gp_wake(gp_session* session);

/// Why the session is over, or "".
const char* gp_failure(const gp_session* session);

/// Leaves without order, but keeps the memory: nothing can be submitted any more, while gp_poll()
/// still gives what the daemon has completed, and gp_round_memory() the sums. Then gp_detach().
/// Never waits for the daemon.
void gp_leave(gp_session* session);

/// Leaves. `clean` not 0: the rank ends in order. Never waits for the daemon.
void gp_detach(gp_session* session, int clean);

/// After fork(), in the child: forgets the session without a word to the daemon.
void gp_abandon(gp_session* session);

#ifdef __cplusplus
}
#endif
