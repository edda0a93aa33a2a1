// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// A test double of trainer-shim/client/client.h: the ranks of one host sum through a file that all
// of them map, without a daemon. GRADPLANE_SOCKET names a folder. If it does not exist, there is no
// daemon; if it has a file `dead`, the daemon has died. GRADPLANE_TEST_FAKE scripts a failure, the
// same in all ranks:
//   lose=R:K   the session of every rank ends at round R; of round R, K ranks still get the result,
//              the highest first, so that the lowest lacks it; then the daemon takes no more jobs
//   stall=R    round R and later never complete
//   broken-garbage=R  the completion of round R names a round that was never submitted; then the
//              daemon takes no more jobs
//   refuse=K   rank K is refused
//   slow=MS    every round takes MS milliseconds
//   partial=K  every round of a bucket says that K of its blocks are partial
//   first=R    the first round of every session is R
//   absent=R:L the daemon of the highest rank dies at round R; the others complete rounds R to
//              R + L - 1 without it, and then lose their sessions too
//   behind=R:L the others complete rounds R to R + L - 1 without the highest rank, whose daemon
//              lives: it gets their sums when it submits them. The job fails when a rank leaves it
//   late=R     every rank gets the result of round R, the highest one only after all have left;
//              then the sessions of all end
// With GRADPLANE_TEST_SELECTIVE=S:E[:N] the job exchanges gradients by S selections, averages every
// E steps, and tells ranks the staleness bound N. Each rank receives the update of one other, and a
// rank that is not in a round sends nothing. Rank R appends to PATH.R
//   GRADPLANE_TEST_DRIFT=PATH        what it reports of its drift
//   GRADPLANE_TEST_BUCKETS=PATH      the tensors that it registers
//   GRADPLANE_TEST_SUBMISSIONS=PATH  `registered`, `submitted`, or the name of another operation,
//              an exchange's with its selection; then bucket, element type and elements
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/model/limits.h"
#include "tests/shim/fake_script.h"
#include "tests/shim/fake_sums.h"
#include "trainer-shim/client/client.h"

using gradplane::ElementType;
using gradplane::Operation;
using gradplane::test::exchange;
using gradplane::test::InFlight;
using gradplane::test::make_result;
using gradplane::test::read_script;
using gradplane::test::scatter;
using gradplane::test::Script;
using gradplane::test::sender_to;

namespace {

constexpr std::size_t kSlotBytes = 65536;
constexpr std::size_t kMaxWorld = 16;
constexpr std::size_t kSlots = gradplane::kRoundSlots;

/// The memory that ranks share. It begins with zeros.
struct Shared {
  std::atomic<std::uint32_t> joined;
  std::atomic<std::uint32_t> lost;
  std::atomic<std::uint32_t> stopped;  // number of ranks that submit no more
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> submitted[kMaxWorld];  // number of rounds, by rank
  alignas(64) std::byte contribution[kMaxWorld][kSlots][kSlotBytes];
};

/// Opens the rank's file under the path in the variable; nullptr if there is no variable.
std::FILE* open_log(const char* variable, std::uint32_t rank) {
  const char* path = std::getenv(variable);
  return path ? std::fopen((std::string(path) + "." + std::to_string(rank)).c_str(), "ae")
              : nullptr;
}

void log_bucket(std::uint32_t rank, std::uint32_t bucket, const gp_tensor* tensors,
                std::size_t count) {
  std::FILE* file = open_log("GRADPLANE_TEST_BUCKETS", rank);
  if (!file) return;
  for (std::size_t i = 0; i < count; ++i) {
    std::fprintf(file, "%u %s %llu %llu\n", bucket, tensors[i].name ? tensors[i].name : "",
                 static_cast<unsigned long long>(tensors[i].offset_elements),
                 static_cast<unsigned long long>(tensors[i].elements));
  }
  std::fclose(file);
}

void log_submission(std::uint32_t rank, const char* what, std::uint32_t bucket, std::uint8_t type,
                    std::uint64_t elements) {
  std::FILE* file = open_log("GRADPLANE_TEST_SUBMISSIONS", rank);
  if (!file) return;
  std::fprintf(file, "%s %u %u %llu\n", what, bucket, type,
               static_cast<unsigned long long>(elements));
  std::fclose(file);
}

}  // namespace

struct gp_session {
  std::string folder;
  std::string path;
  Shared* shared = nullptr;
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
  Script script;
  std::uint32_t submitted = 0;  // submitted rounds, independent of their numbers
  std::uint32_t completed = 0;
  std::vector<InFlight> rounds{kSlots};
  std::vector<std::byte> arena;
  std::string failure;
  bool left = false;
  std::atomic<bool> woken{false};

  bool is_highest() const { return rank + 1 == world; }
};

namespace {

int fail(gp_session* s, int status, const char* why) {
  if (s->failure.empty()) s->failure = why;
  return status;
}

/// How many ranks take part in a round: the lowest ones. Only sums can lack ranks.
std::uint32_t participants(const gp_session* s, std::uint32_t round) {
  const Script& script = s->script;
  if (!all_contribute(s->rounds[round % kSlots].operation)) return s->world;
  const bool behind =
      round >= script.behind_round && round - script.behind_round < script.behind_lead;
  return round >= script.absent_round || behind ? s->world - 1 : s->world;
}

/// Whether all ranks have left, so that the last result of the highest rank can come.
bool all_stopped(const gp_session* s) {
  return s->left && s->shared->stopped.load() == s->world;
}

bool all_submitted(const gp_session* s, std::uint32_t round) {
  for (std::uint32_t rank = 0; rank < participants(s, round); ++rank) {
    if (s->shared->submitted[rank].load() <= round) return false;
  }
  return true;
}

/// Whether this rank loses its session before it gets the round.
bool loses(const gp_session* s, std::uint32_t round) {
  const Script& script = s->script;
  const bool gets_result = s->rank + script.lose_results >= s->world;
  if (round > script.lose_round || (round == script.lose_round && !gets_result)) return true;
  if (round > script.late_round) return true;
  if (round == script.late_round && s->is_highest()) return !all_stopped(s);
  if (round < script.absent_round) return false;
  return s->is_highest() || round - script.absent_round >= script.absent_lead;
}

bool daemon_is_dead(const gp_session* s) {
  return access((s->folder + "/dead").c_str(), F_OK) == 0;
}

/// Ends the script, so that it does not begin again when the ranks come back.
void take_no_more_jobs(const gp_session* s) {
  close(open((s->folder + "/closed").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

bool takes_no_more_jobs(const gp_session* s) {
  return access((s->folder + "/closed").c_str(), F_OK) == 0;
}

int say(char* error, size_t bytes, int status, const std::string& text) {
  std::snprintf(error, bytes, "%s", text.c_str());
  return status;
}

void nap() {
  const timespec pause = {0, 200000};
  nanosleep(&pause, nullptr);
}

}  // namespace

int gp_attach(const gp_attach_options* o, gp_session** out, char* error, size_t error_bytes) {
  const Script script = read_script();
  if (script.refused_rank == o->rank) {
    return say(error, error_bytes, GP_REFUSED, "the fake daemon refuses this rank");
  }
  struct stat info;
  if (stat(o->socket_path, &info) != 0 || !S_ISDIR(info.st_mode)) {
    return say(error, error_bytes, GP_NO_DAEMON, "the fake daemon is not there");
  }
  auto* s = new gp_session;
  s->folder = o->socket_path;
  if (daemon_is_dead(s) || takes_no_more_jobs(s)) {
    delete s;
    return say(error, error_bytes, GP_NO_DAEMON, "the fake daemon is dead");
  }
  s->path = s->folder + "/job-";
  char digits[3];
  for (const std::uint8_t byte : o->job_key) {
    std::snprintf(digits, sizeof digits, "%02x", byte);
    s->path += digits;
  }
  s->rank = o->rank;
  s->world = o->world_size;
  s->script = script;
  s->arena.resize(kSlots * kSlotBytes);
  const int fd = open(s->path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) std::abort();
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) std::abort();
  s->shared = static_cast<Shared*>(memory);
  s->shared->joined.fetch_add(1);
  *out = s;
  return GP_OK;
}

int gp_wait_ready(gp_session* s, int timeout_ms, char* error, size_t error_bytes) {
  for (int waited_us = 0; s->shared->joined.load() < s->world; waited_us += 200) {
    if (waited_us / 1000 > timeout_ms) {
      return say(error, error_bytes, GP_TIMEOUT, "waited for ranks that did not join");
    }
    nap();
  }
  return GP_OK;
}

size_t gp_round_bytes(const gp_session*) {
  return kSlotBytes;
}
uint32_t gp_rounds_in_flight_max(const gp_session*) {
  return gradplane::kMaxInFlightRounds;
}

uint32_t gp_selections(const gp_session* s) {
  return s->script.selections;
}
uint32_t gp_average_every(const gp_session* s) {
  return s->script.average_every;
}
uint32_t gp_staleness(const gp_session* s) {
  return s->script.staleness;
}
int gp_report_drift(gp_session* s, uint64_t step, double distance, double norm) {
  std::FILE* file = open_log("GRADPLANE_TEST_DRIFT", s->rank);
  if (!file) return GP_OK;
  std::fprintf(file, "%llu %.17g %.17g\n", static_cast<unsigned long long>(step), distance, norm);
  std::fclose(file);
  return GP_OK;
}

int gp_require(const gp_session*) {
  return 0;
}
int gp_daemon_requires(const char*, uint32_t, uint32_t) {
  return 0;
}
void gp_describe_wait(gp_session*, char* text, size_t text_bytes) {
  std::snprintf(text, text_bytes, "the fake daemon waits");
}

int gp_register_bucket(gp_session* s, uint32_t bucket, uint8_t type, const gp_tensor* tensors,
                       size_t count) {
  // The real client refuses these, too.
  if (count == 0) return GP_BAD_ARGUMENT;
  if (std::any_of(tensors, tensors + count, [](const gp_tensor& t) { return t.elements == 0; }))
    return GP_BAD_ARGUMENT;
  log_bucket(s->rank, bucket, tensors, count);
  const gp_tensor& last = tensors[count - 1];
  log_submission(s->rank, "registered", bucket, type, last.offset_elements + last.elements);
  return GP_OK;
}

void* gp_round_memory(gp_session* s, uint32_t round) {
  return s->arena.data() + (round % kSlots) * kSlotBytes;
}

int gp_submit(gp_session* s, uint32_t number, const gp_statement* said) {
  if (!s->failure.empty()) return GP_BROKEN;
  const std::uint32_t round = number - s->script.first_round;
  if (round != s->submitted || said->elements == 0) return GP_BAD_ARGUMENT;
  if (s->submitted - s->completed >= gradplane::kMaxInFlightRounds) return GP_FULL;
  const InFlight submitted{.elements = said->elements,
                           .type = static_cast<ElementType>(said->element_type),
                           .bucket = said->bucket,
                           .operation = static_cast<Operation>(said->operation),
                           .source = said->source,
                           .reduction = static_cast<gradplane::Reduction>(said->reduction)};
  if (submitted.bytes() > kSlotBytes) return GP_BAD_ARGUMENT;
  const bool reduces = submitted.operation == Operation::kAllReduce;
  const bool exchanges = submitted.operation == Operation::kExchange;
  if (exchanges && submitted.source >= s->script.selections) return GP_BAD_ARGUMENT;
  std::string what(reduces ? "submitted" : operation_name(submitted.operation));
  if (submitted.reduction != gradplane::Reduction::kSum)
    what.append("/").append(reduction_name(submitted.reduction));
  if (exchanges) what.append("/").append(std::to_string(submitted.source));
  log_submission(s->rank, what.c_str(), said->bucket, said->element_type, said->elements);
  s->rounds[round % kSlots] = submitted;
  std::memcpy(s->shared->contribution[s->rank][round % kSlots], gp_round_memory(s, number),
              submitted.bytes());
  s->shared->submitted[s->rank].store(++s->submitted);
  return GP_OK;
}

/// Writes the result of a round into its slot, and returns the number of contributors.
static std::uint32_t put_result(gp_session* s, std::uint32_t round) {
  const InFlight& done = s->rounds[round % kSlots];
  auto* out = static_cast<std::byte*>(gp_round_memory(s, round + s->script.first_round));
  const auto given = [&](std::size_t rank) {
    return s->shared->contribution[rank][round % kSlots];
  };
  const std::uint32_t present = participants(s, round);
  std::vector<const std::byte*> inputs;
  if (done.operation == Operation::kExchange) {
    inputs.push_back(given(s->rank));
    const std::size_t sender = sender_to(s->rank, done.source, s->world);
    if (sender < present) inputs.push_back(given(sender));
    exchange(out, inputs, s->world, done);
    return static_cast<std::uint32_t>(inputs.size());
  }
  for (std::uint32_t rank = 0; rank < present; ++rank) inputs.push_back(given(rank));
  if (done.operation == Operation::kReduceScatter) {
    scatter(out, inputs, done, s->rank, s->world);
  } else {
    make_result(out, inputs, done);
  }
  return all_contribute(done.operation) ? present : 1;
}

int gp_poll(gp_session* s, gp_completion* out) {
  const std::uint32_t round = s->completed;
  const bool comes_late = round == s->script.late_round && all_stopped(s);
  if (!s->failure.empty() && !comes_late) return -GP_BROKEN;
  if (daemon_is_dead(s)) return -fail(s, GP_BROKEN, "the fake daemon died");
  if (s->script.behind_round != UINT32_MAX && s->shared->lost.load() != 0) {
    return -fail(s, GP_JOB_FAILED, "the fake job was lost");
  }
  const std::uint32_t number = round + s->script.first_round;
  const bool goes_on = s->script.absent_round != UINT32_MAX && !loses(s, round);
  if (round >= s->submitted || !all_submitted(s, round)) {
    if (s->shared->lost.load() == 0 || goes_on) return 0;
    return -fail(s, GP_JOB_FAILED, "the fake job was lost");
  }
  if (round >= s->script.stall_round) return 0;
  if (round == s->script.garbage_round) {
    take_no_more_jobs(s);
    *out = {number + 1000, GP_OK, s->world, 0};
    return 1;
  }
  if (loses(s, round)) {
    take_no_more_jobs(s);
    s->shared->lost.store(1);
    return -fail(s, GP_JOB_FAILED, "the fake job was lost");
  }
  for (std::uint32_t i = 0; i < s->script.slow_ms * 5; ++i) nap();
  ++s->completed;
  const InFlight& done = s->rounds[round % kSlots];
  *out = {number, GP_OK, put_result(s, round), done.bucket != 0 ? s->script.partial_blocks : 0};
  return 1;
}

int gp_wait(gp_session* s, int timeout_ms) {
  for (int waited_us = 0; waited_us / 1000 < timeout_ms; waited_us += 200) {
    if (s->woken.exchange(false)) break;
    const bool ready = s->completed < s->submitted && all_submitted(s, s->completed) &&
                       s->completed < s->script.stall_round;
    if (ready || s->shared->lost.load() != 0 || daemon_is_dead(s)) break;
    nap();
  }
  return s->failure.empty() ? GP_OK : GP_BROKEN;
}

void gp_wake(gp_session* s) {
  s->woken.store(true);
}

const char* gp_failure(const gp_session* s) {
  return s->failure.c_str();
}

void gp_leave(gp_session* s) {
  s->shared->lost.store(1);
  if (!std::exchange(s->left, true)) s->shared->stopped.fetch_add(1);
  fail(s, GP_BROKEN, "the rank has left");
}

void gp_detach(gp_session* s, int clean) {
  if (!clean || s->script.behind_round != UINT32_MAX) s->shared->lost.store(1);
  if (s->shared->left.fetch_add(1) + 1 == s->world) unlink(s->path.c_str());
  munmap(s->shared, sizeof(Shared));
  delete s;
}

void gp_abandon(gp_session*) {}
