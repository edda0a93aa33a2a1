// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/carrier.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/model/loss_bounds.h"
#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/environment.h"

namespace gradplane::shim {
namespace {

/// A daemon whose beat does not change for so long is dead.
constexpr std::uint32_t kLivenessLimitMs = 5000;

std::uint32_t shorter(std::uint32_t limit_ms, std::int64_t other_ms) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(other_ms, 1, limit_ms));
}

}  // namespace

Carrier::Carrier(Identity identity, std::int64_t patience_ms)
    : identity_(identity),
      attach_limit_ms_(shorter(environment().attach_timeout_ms, patience_ms / 3)),
      attempt_limit_ms_(attach_limit_ms_),
      liveness_limit_ms_(shorter(kLivenessLimitMs, patience_ms / 2)),
      required_(environment().require) {}

bool Carrier::daemon_in_sight(std::string& cause) {
  const std::string& path = environment().socket_path;
  if (access(path.c_str(), F_OK) == 0) return true;
  cause = "no daemon: " + path + ": " + std::strerror(errno) +
          " (start gradplaned, or name its socket in GRADPLANE_SOCKET)";
  return false;
}

bool Carrier::daemon_requires() {
  const Environment& env = environment();
  return gp_daemon_requires(env.socket_path.c_str(), env.daemon_uid, env.attach_timeout_ms) != 0;
}

void Carrier::limit_attempt(std::int64_t limit_ns) {
  attempt_limit_ms_ = shorter(attach_limit_ms_, limit_ns / 1000000);
}

bool Carrier::attach(const JobKey& job_key, std::string& cause) {
  const Environment& env = environment();
  gp_attach_options options = {};
  options.socket_path = env.socket_path.c_str();
  std::copy(job_key.begin(), job_key.end(), options.job_key);
  options.rank = identity_.rank;
  options.world_size = identity_.world_size;
  options.label = env.label.empty() ? nullptr : env.label.c_str();
  options.run_id = env.run_id.empty() ? nullptr : env.run_id.c_str();
  options.timeout_ms = attempt_limit_ms_;
  options.liveness_ms = liveness_limit_ms_;
  options.daemon_uid = env.daemon_uid;
  char error[GP_TEXT_BYTES] = "";
  gp_session* session = nullptr;
  const int status = gp_attach(&options, &session, error, sizeof error);
  if (status == GP_OK && session) {
    const std::lock_guard lock(session_mutex_);
    session_ = session;
    required_ = required_ || gp_require(session) != 0;
    cause_.clear();
    buckets_.clear();
    last_bucket_id_ = 0;
    buckets_of_sums_ = 0;
    return true;
  }
  // A rank that is refused must still obey ranks.require.
  if (status == GP_REFUSED) required_ = required_ || daemon_requires();
  cause = *error ? error : "the daemon did not take the rank, status " + std::to_string(status);
  return false;
}

std::string Carrier::describe_wait() {
  char text[GP_TEXT_BYTES] = "";
  if (session_) gp_describe_wait(session_, text, sizeof text);
  return text;
}

bool Carrier::wait_ready(std::string& cause) {
  char error[GP_TEXT_BYTES] = "";
  const auto timeout_ms = static_cast<int>(attempt_limit_ms_);
  const int status = gp_wait_ready(session_, timeout_ms, error, sizeof error);
  if (status == GP_OK) return true;
  cause = *error ? error : "the job did not become ready, status " + std::to_string(status);
  return false;
}

std::size_t Carrier::round_bytes() const {
  return gp_round_bytes(session_) / kBlockAlignBytes * kBlockAlignBytes;
}

std::uint32_t Carrier::rounds_in_flight_max() const {
  return gp_rounds_in_flight_max(session_);
}

void Carrier::start(std::size_t round_bytes, std::uint32_t rounds_in_flight_max,
                    std::uint64_t first_round, std::uint32_t selections) {
  agreed_round_bytes_ = round_bytes;
  agreed_selections_ = selections;
  window_.restart(rounds_in_flight_max, first_round);
  behind_until_ = exchanged_end_ = whole_end_ = 0;
}

Round Carrier::cut_next(Collective& collective) const {
  Round round = cut(collective, agreed_round_bytes_);
  if (agreed_selections_ != 0 && collective.pass) round.operation = Operation::kExchange;
  return round;
}

/// The arena memory of a round. The daemon's numbers of rounds have 32 bits and wrap.
void* Carrier::memory_of(std::uint64_t round) const {
  return gp_round_memory(session_, static_cast<std::uint32_t>(round));
}

Round& Carrier::skip_next(Collective& collective) {
  const Round round = cut_next(collective);
  window_.submit(round);
  collective.submitted_bytes += round.bytes;
  return *window_.find(window_.next() - 1);
}

bool Carrier::submit_next(Collective& collective, const BucketLayout* layout) {
  if (!window_.may_submit()) return false;
  const Round round = cut_next(collective);
  void* memory = memory_of(window_.next());
  if (!memory) {
    over(GP_BROKEN);
    return false;
  }
  round.give(static_cast<std::byte*>(memory), identity_.rank);
  const bool exchanges = round.operation == Operation::kExchange;
  const gp_statement said{
      .elements = static_cast<std::uint32_t>(round.slot_bytes() / element_bytes(collective.type)),
      .element_type = static_cast<std::uint8_t>(collective.type),
      .operation = static_cast<std::uint8_t>(round.operation),
      .source = exchanges ? static_cast<std::uint16_t>(*collective.pass % agreed_selections_)
                          : collective.source,
      .bucket = bucket_of(layout, round),
      .reduction = static_cast<std::uint8_t>(round.reduction)};
  const int status = gp_submit(session_, static_cast<std::uint32_t>(window_.next()), &said);
  if (status != GP_OK) {
    if (status != GP_FULL) over(status);
    return false;
  }
  window_.submit(round);
  collective.submitted_bytes += round.bytes;
  counters().carried_rounds += 1;
  counters().carried_bytes += round.slot_bytes();
  return true;
}

Carrier::Turn Carrier::poll() {
  bool worked = false;
  for (gp_completion completion = {}; cause_.empty();) {
    const int taken = gp_poll(session_, &completion);
    if (taken == 0) break;
    if (taken < 0) return over(-taken);
    if (completion.status != GP_OK) return over(GP_JOB_FAILED);
    if (!take(completion)) return over(GP_BROKEN);
    worked = true;
  }
  if (!cause_.empty()) return Turn::kOver;
  return worked ? Turn::kWorked : Turn::kIdle;
}

/// Counts a partial result. Under bounded staleness it counts as early, because the updates that it
/// lacks mostly enter a later result.
void Carrier::count_partial(const gp_completion& completion, bool stale) {
  if (completion.partial_blocks == 0) return;
  (stale ? counters().early_rounds : counters().partial_rounds) += 1;
  (stale ? counters().early_blocks : counters().partial_blocks) += completion.partial_blocks;
}

/// Writes a result into its collective. False if the completion is of no round in flight.
bool Carrier::take(const gp_completion& completion) {
  const std::uint64_t number = window_.expand(completion.round);
  const Round* round = window_.find(number);
  const void* memory = memory_of(number);
  if (!round || !memory || !round->collective || round->completed) return false;
  const bool exchanged = round->operation == Operation::kExchange;
  const bool lacks_a_rank = !exchanged && all_contribute(round->operation) &&
                            completion.contributors < identity_.world_size;
  // An all_gather that goes as a sum has the bytes of a rank only if this rank has contributed.
  if (lacks_a_rank && round->operation != round->collective->operation) return false;
  round->take(static_cast<const std::byte*>(memory), identity_.rank);
  count_partial(completion, exchanged && staleness() > 0);
  if (lacks_a_rank) {
    // A rank that has submitted a round so much later has completed this one.
    behind_until_ = std::max(behind_until_, number + kMaxLeadRounds + 1);
  } else if (!exchanged) {
    whole_end_ = std::max(whole_end_, number + 1);
  }
  complete(number);
  return true;
}

void Carrier::complete(std::uint64_t round) {
  Round* found = window_.find(round);
  if (!found || !window_.complete(round)) return;
  found->collective->completed_bytes += found->bytes;
  if (found->operation == Operation::kExchange) {
    found->collective->exchanged_bytes += found->bytes;
    exchanged_end_ = std::max(exchanged_end_, round + 1);
  }
  found->collective = nullptr;  // the collective may end now; the result stays in the arena
}

Carrier::Turn Carrier::wait(int timeout_ms) {
  const int status = gp_wait(session_, timeout_ms);
  if (status == GP_OK || status == GP_TIMEOUT) return Turn::kIdle;
  return over(status);
}

Carrier::Turn Carrier::over(int status) {
  const char* said = gp_failure(session_);
  cause_ = said && *said ? said : "the session ended, status " + std::to_string(status);
  return Turn::kOver;
}

void Carrier::report_drift(std::uint64_t step, double distance, double norm) {
  // A daemon without selections would refuse the report.
  if (session_ && agreed_selections_ != 0) gp_report_drift(session_, step, distance, norm);
}

void Carrier::leave() {
  gp_leave(session_);
}

void Carrier::drain() {
  gp_completion completion = {};
  while (gp_poll(session_, &completion) == 1 && completion.status == GP_OK && take(completion)) {
  }
}

void Carrier::describe(Statement& statement) const {
  statement.first_incomplete = window_.first_incomplete();
  statement.next_round = window_.next();
  statement.completed = window_.completed_bits();
  statement.exchanges = window_.exchange_bits();
  statement.selections = agreed_selections_;
}

std::vector<Carrier::Kept> Carrier::release_all() {
  std::vector<Kept> kept;
  const std::uint64_t end = window_.next();
  for (std::uint64_t round = end - std::min<std::uint64_t>(end, kRoundSlots); round < end;
       ++round) {
    const Round* found = window_.find(round);
    const auto* memory = static_cast<const std::byte*>(memory_of(round));
    if (!found || !found->completed || !memory) continue;
    kept.push_back({round, {memory, memory + found->slot_bytes()}});
  }
  detach(false);
  return kept;
}

void Carrier::detach(bool clean) {
  gp_session* session = nullptr;
  {
    const std::lock_guard lock(session_mutex_);
    session = std::exchange(session_, nullptr);
  }
  if (session) gp_detach(session, clean ? 1 : 0);
}

void Carrier::wake() {
  const std::lock_guard lock(session_mutex_);
  if (session_) gp_wake(session_);
}

void Carrier::abandon() {
  if (session_) gp_abandon(session_);
}

/// The id of this slice of a bucket. A slice that is new or has changed is registered at the
/// daemon. 0, which makes the sum exact, if this is no gradient bucket or no floating type, if no
/// id is left, or if it is a sum outside DDP where ranks exchange: for such a bucket a daemon would
/// take memory that no update ever fills.
std::uint16_t Carrier::bucket_of(const BucketLayout* layout, const Round& round) {
  if (!layout || !is_floating(round.collective->type)) return 0;
  const auto key = std::pair(layout->key, round.offset_bytes);
  const auto known = buckets_.find(key);
  if (known != buckets_.end() && known->second.version == layout->version) return known->second.id;
  if (last_bucket_id_ == kMaxBuckets) return 0;
  if (layout->is_sum) {
    if (agreed_selections_ != 0 || buckets_of_sums_ == kMaxBucketsOfSums) return 0;
    ++buckets_of_sums_;
  }
  const std::uint16_t id = register_bucket(*layout, round);
  buckets_[key] = {layout->version, id};
  return id;
}

std::uint16_t Carrier::register_bucket(const BucketLayout& layout, const Round& round) {
  const ElementType type = round.collective->type;
  const std::uint64_t begin = round.offset_bytes / element_bytes(type);
  const std::uint64_t end = begin + round.bytes / element_bytes(type);
  std::vector<gp_tensor> tensors;
  for (const TensorPlace& t : layout.tensors) {
    const std::uint64_t from = std::max(begin, t.offset_elements);
    const std::uint64_t to = std::min(end, t.offset_elements + t.elements);
    if (from < to) tensors.push_back({t.name.c_str(), from - begin, to - from});
  }
  const std::uint16_t id = ++last_bucket_id_;
  const int status = gp_register_bucket(session_, id, static_cast<std::uint8_t>(type),
                                        tensors.data(), tensors.size());
  return status == GP_OK ? id : 0;  // if the session is over, the submission will fail, too
}

}  // namespace gradplane::shim
