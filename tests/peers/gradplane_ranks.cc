// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// One rank over gradplane, without a framework. By default its messages are gradient buckets with
// tensors, and it finds out which ranks are in each block, for measurements of exchanges and of
// rounds that may be partial. With --exact, messages are those of all peers, and every element must
// be the sum over all ranks, or what rank 0 broadcasts.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "control/protocol/job_key.h"
#include "dataplane/model/element_type.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/operation.h"
#include "tests/peers/harness.h"
#include "tests/peers/tolerant_sum.h"
#include "trainer-shim/client/client.h"

namespace {

namespace peers = gradplane::peers;

constexpr std::uint32_t kAttachMs = 20'000;
constexpr int kReadyMs = 90'000;
constexpr int kWaitMs = 1000;
constexpr int kSilentWaits = 120;
constexpr std::size_t kErrorBytes = 512;
constexpr auto kFp32 = static_cast<std::uint8_t>(gradplane::ElementType::kFloat32);

struct Options {
  std::string socket;
  std::string key;
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
  bool exact = false;
  double rounded = 0;  // how far sums may be off, as a share of the largest sum; 0: not at all
  std::string compensation = "rescale";
  std::size_t block_bytes = gradplane::kDefaultBlockBytes;
  std::string commands_path;
  std::string answers_path;
};

gradplane::Operation operation_of(peers::RoundKind kind) {
  switch (kind) {
    case peers::RoundKind::kBroadcast:
      return gradplane::Operation::kBroadcast;
    case peers::RoundKind::kExchange:
      return gradplane::Operation::kExchange;
    default:
      return gradplane::Operation::kAllReduce;
  }
}

/// The part of a message that one round carries, and the id of the bucket of its tensors.
struct Slice {
  std::size_t offset_elements = 0;
  std::size_t elements = 0;
  std::uint16_t bucket = 0;
  std::vector<peers::MessageTensor> tensors;
};

class Rank final : public peers::Participant {
 public:
  explicit Rank(const Options& options);
  ~Rank() override { gp_detach(session_, 1); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  /// Runs a round from which nothing may be missing. Like run_round, it throws std::runtime_error.
  void greet();
  nlohmann::json run_round(const peers::Round& round) override;
  nlohmann::json train(const peers::Training& training) override;

 private:
  /// The slices of a message, each of at most `slice_elements` elements.
  const std::vector<Slice>& slices_of(std::size_t elements, std::size_t slice_elements);
  void register_tensors(Slice& slice, std::span<const peers::MessageTensor> tensors);
  void fill(std::span<float> data, std::uint64_t seed) const;
  void submit(std::span<const float> data, const Slice& slice);
  /// Waits for one completion. Returns the index of its slice.
  std::size_t take(std::span<float> data, std::span<const Slice> slices);
  void reduce(std::span<float> data, std::span<const Slice> slices);
  /// The set of ranks in each block of a slice; nothing if some block is not a sum. `count` is the
  /// number of ranks, if it is known.
  std::optional<std::vector<peers::RankSet>> sets_in(std::span<const float> data,
                                                     std::uint64_t seed, const Slice& slice,
                                                     std::optional<std::uint32_t> count = {}) const;
  /// What is missing from the result; nothing if some block is not a sum.
  std::optional<peers::Missing> judge(std::span<const float> data, std::uint64_t seed,
                                      std::span<const Slice> slices) const;
  /// Whether every element is rank 0's.
  bool is_of_first(std::span<const float> data, std::uint64_t seed) const;
  /// The ranks whose updates are in the result, including this one; nothing if blocks differ.
  std::optional<peers::RankSet> senders(std::span<const float> data, std::uint64_t seed,
                                        std::span<const Slice> slices) const;
  nlohmann::json exchange_answer(const peers::RoundClock& clock, std::span<const float> data,
                                 std::uint64_t seed, std::span<const Slice> slices) const;
  [[noreturn]] void fail(const std::string& what) const;

  const Options& options_;
  std::optional<peers::RankCode> code_;  // none: nothing may be missing
  gp_session* session_ = nullptr;
  std::size_t round_elements_ = 0;
  /// By the number of elements of the message and of a slice.
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Slice>> slices_;
  std::uint16_t last_bucket_ = 0;
  gradplane::Operation operation_ = gradplane::Operation::kAllReduce;  // of the current message
  std::uint16_t source_ = 0;
  std::uint32_t next_round_ = 0;
  std::uint32_t first_round_ = 0;            // of the current message
  std::uint64_t partial_blocks_ = 0;         // of the current message, from the daemon
  std::vector<std::uint32_t> contributors_;  // of its slices, from the daemon
};

Rank::Rank(const Options& options) : options_(options) {
  if (!options.exact && options.rounded == 0)
    code_.emplace(options.world, options.compensation == "rescale");
  const auto key = gradplane::protocol::job_key_from_hex(options.key);
  if (!key) throw std::runtime_error("--key: 32 hex digits");
  gp_attach_options attach{};
  attach.socket_path = options.socket.c_str();
  static_assert(sizeof(*key) == sizeof(attach.job_key));
  std::memcpy(attach.job_key, key->data(), sizeof attach.job_key);
  attach.rank = options.rank;
  attach.world_size = options.world;
  attach.label = "gradplane_ranks";
  attach.timeout_ms = kAttachMs;
  char error[kErrorBytes] = "";
  if (gp_attach(&attach, &session_, error, sizeof error) != GP_OK) {
    throw std::runtime_error(error);
  }
  if (gp_wait_ready(session_, kReadyMs, error, sizeof error) != GP_OK) {
    gp_detach(session_, 0);
    throw std::runtime_error(error);
  }
  round_elements_ = gp_round_bytes(session_) / sizeof(float);
}

void Rank::fail(const std::string& what) const {
  const char* why = gp_failure(session_);
  throw std::runtime_error(*why != '\0' ? what + ": " + why : what);
}

/// Cuts a message into slices. For the first message of a size it also registers the tensors, if
/// there are any.
const std::vector<Slice>& Rank::slices_of(std::size_t elements, std::size_t slice_elements) {
  std::vector<Slice>& slices = slices_[{elements, slice_elements}];
  if (!slices.empty()) return slices;
  const auto tensors = peers::tensors_of(elements);
  for (std::size_t offset = 0; offset < elements; offset += slice_elements) {
    Slice slice{.offset_elements = offset,
                .elements = std::min(slice_elements, elements - offset),
                .bucket = 0,
                .tensors = {}};
    if (!options_.exact) register_tensors(slice, tensors);
    slices.push_back(std::move(slice));
  }
  return slices;
}

void Rank::register_tensors(Slice& slice, std::span<const peers::MessageTensor> tensors) {
  slice.bucket = ++last_bucket_;
  slice.tensors = peers::tensors_within(tensors, slice.offset_elements, slice.elements);
  std::vector<gp_tensor> named;
  for (const auto& t : slice.tensors) {
    named.push_back({t.name.c_str(), t.offset_elements, t.elements});
  }
  if (gp_register_bucket(session_, slice.bucket, kFp32, named.data(), named.size()) != GP_OK) {
    fail("bucket " + std::to_string(slice.bucket) + " is not taken");
  }
}

void Rank::fill(std::span<float> data, std::uint64_t seed) const {
  if (code_) return code_->fill(data, seed, options_.rank);
  peers::fill(data, seed, options_.rank);
}

void Rank::submit(std::span<const float> data, const Slice& slice) {
  const auto part = data.subspan(slice.offset_elements, slice.elements);
  std::memcpy(gp_round_memory(session_, next_round_), part.data(), part.size_bytes());
  const gp_statement said{.elements = static_cast<std::uint32_t>(slice.elements),
                          .element_type = kFp32,
                          .operation = static_cast<std::uint8_t>(operation_),
                          .source = source_,
                          .bucket = slice.bucket,
                          .reduction = 0};
  if (gp_submit(session_, next_round_, &said) != GP_OK) {
    fail("round " + std::to_string(next_round_) + " is not taken");
  }
  ++next_round_;
}

std::size_t Rank::take(std::span<float> data, std::span<const Slice> slices) {
  gp_completion completion{};
  int taken = 0;
  for (int waits = 0; (taken = gp_poll(session_, &completion)) == 0; ++waits) {
    if (waits == kSilentWaits) fail("no round is completed for long");
    if (gp_wait(session_, kWaitMs) != GP_OK) break;
  }
  if (taken != 1 || completion.status != GP_OK) fail("a round failed");
  const std::size_t index = completion.round - first_round_;
  const Slice& slice = slices[index];
  const auto part = data.subspan(slice.offset_elements, slice.elements);
  std::memcpy(part.data(), gp_round_memory(session_, completion.round), part.size_bytes());
  partial_blocks_ += completion.partial_blocks;
  contributors_[index] = completion.contributors;
  return index;
}

void Rank::reduce(std::span<float> data, std::span<const Slice> slices) {
  first_round_ = next_round_;
  partial_blocks_ = 0;
  contributors_.assign(slices.size(), 0);
  const std::size_t ahead = gp_rounds_in_flight_max(session_);
  std::vector<bool> is_complete(slices.size());
  std::size_t submitted = 0;
  for (std::size_t oldest = 0; oldest < slices.size();) {
    for (; submitted < slices.size() && submitted - oldest < ahead; ++submitted) {
      submit(data, slices[submitted]);
    }
    is_complete[take(data, slices)] = true;
    while (oldest < slices.size() && is_complete[oldest]) ++oldest;
  }
}

void Rank::greet() {
  std::vector<float> one(1);
  const Slice whole{.offset_elements = 0, .elements = 1, .bucket = 0, .tensors = {}};
  reduce(one, {&whole, 1});
}

std::optional<std::vector<peers::RankSet>> Rank::sets_in(std::span<const float> data,
                                                         std::uint64_t seed, const Slice& slice,
                                                         std::optional<std::uint32_t> count) const {
  const std::size_t block_elements = options_.block_bytes / sizeof(float);
  std::vector<peers::RankSet> sets;
  for (std::size_t at = 0; at < slice.elements; at += block_elements) {
    const std::size_t index = slice.offset_elements + at;
    const auto block = data.subspan(index, std::min(block_elements, slice.elements - at));
    const auto set = code_->ranks_in(block, seed, index, count);
    if (!set) return std::nullopt;
    sets.push_back(*set);
  }
  return sets;
}

bool Rank::is_of_first(std::span<const float> data, std::uint64_t seed) const {
  std::vector<float> expected(data.size());
  peers::fill(expected, seed, 0);
  return std::ranges::equal(data, expected);
}

std::optional<peers::RankSet> Rank::senders(std::span<const float> data, std::uint64_t seed,
                                            std::span<const Slice> slices) const {
  std::optional<peers::RankSet> found;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    const auto sets = sets_in(data, seed, slices[s], contributors_[s]);
    if (!sets) return std::nullopt;
    for (const peers::RankSet set : *sets) {
      if (set != found.value_or(set)) return std::nullopt;
      found = set;
    }
  }
  return found;
}

/// Results differ between ranks, so the answer has no checksum.
nlohmann::json Rank::exchange_answer(const peers::RoundClock& clock, std::span<const float> data,
                                     std::uint64_t seed, std::span<const Slice> slices) const {
  const peers::RankSet set = senders(data, seed, slices).value_or(0);
  const auto has = [set](std::uint32_t rank) { return ((set >> rank) & 1) != 0; };
  const bool is_correct = has(options_.rank) && partial_blocks_ == 0;
  auto answer = peers::round_answer(options_.rank, clock, is_correct, data);
  answer.erase("crc");
  std::vector<std::uint32_t> others;
  for (std::uint32_t rank = 0; rank < options_.world; ++rank)
    if (has(rank) && rank != options_.rank) others.push_back(rank);
  answer["senders"] = others;
  return answer;
}

std::optional<peers::Missing> Rank::judge(std::span<const float> data, std::uint64_t seed,
                                          std::span<const Slice> slices) const {
  peers::Missing missing;
  if (!code_) {
    const bool is_whole = peers::is_sum(data, seed, options_.world, options_.rounded);
    return is_whole ? std::optional(missing) : std::nullopt;
  }
  const std::size_t block_elements = options_.block_bytes / sizeof(float);
  for (const Slice& slice : slices) {
    const auto sets = sets_in(data, seed, slice);
    if (!sets) return std::nullopt;
    missing.add(peers::count_missing(*sets, options_.world, slice.tensors, block_elements));
  }
  return missing;
}

nlohmann::json Rank::run_round(const peers::Round& round) {
  using enum peers::RoundKind;
  expect_kind(round, {kAllReduce, kBroadcast, kExchange});
  if ((round.kind == kBroadcast && code_) || (round.kind == kExchange && !code_))
    throw std::runtime_error("a broadcast needs --exact, and an exchange does not go with it");
  operation_ = operation_of(round.kind);
  source_ = static_cast<std::uint16_t>(round.selection);
  peers::RoundClock clock;
  std::vector<float> data(round.bytes / sizeof(float));
  fill(data, round.seed);
  const auto& slices = slices_of(data.size(), round_elements_);
  clock.start(round.at_ns);
  reduce(data, slices);
  clock.end();
  if (round.spoil) data[0] += 1;
  if (round.kind == kBroadcast)
    return peers::round_answer(options_.rank, clock, is_of_first(data, round.seed), data);
  if (round.kind == kExchange) return exchange_answer(clock, data, round.seed, slices);
  const auto missing = judge(data, round.seed, slices);
  // The daemon must report exactly the blocks that are partial.
  const bool is_correct = missing && missing->partial_blocks == partial_blocks_;
  auto answer = peers::round_answer(options_.rank, clock, is_correct, data);
  answer["partial_blocks"] = partial_blocks_;
  if (!missing || !code_) return answer;
  answer["missing_share"] =
      static_cast<double>(missing->missing_count) / static_cast<double>(missing->expected_count);
  answer["worst_missing_share"] = missing->worst_share;
  return answer;
}

nlohmann::json Rank::train(const peers::Training& training) {
  std::vector<float> data(training.bytes / sizeof(float));
  const std::size_t bucket_elements = (data.size() + training.buckets - 1) / training.buckets;
  const auto& slices = slices_of(data.size(), std::min(bucket_elements, round_elements_));
  return peers::run_training(options_.rank, training,
                             {.prepare = [&](std::uint64_t seed) { fill(data, seed); },
                              .reduce = [&] { reduce(data, slices); },
                              .is_right =
                                  [&](std::uint64_t seed) {
                                    const auto missing = judge(data, seed, slices);
                                    return missing && missing->missing_count == 0;
                                  }});
}

int run(const Options& options) {
  peers::Harness harness(options.commands_path, options.answers_path);
  return peers::follow(harness, options.rank, [&] {
    auto rank = std::make_unique<Rank>(options);
    rank->greet();
    return rank;
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A rank over gradplane that finds out who is in each block of its sums.");
  Options o;
  app.add_option("--socket", o.socket, "of the daemon")->required();
  app.add_option("--key", o.key, "of the job, 32 hex digits")->required();
  app.add_option("--rank", o.rank, "from 0")->required();
  app.add_option("--world", o.world, "how many ranks")
      ->required()
      ->check(CLI::Range(std::uint32_t{1}, static_cast<std::uint32_t>(gradplane::kMaxRanks)));
  app.add_flag("--exact", o.exact, "nothing may be missing");
  app.add_option("--rounded", o.rounded,
                 "nothing is missing, and sums are off by this share at most")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--compensation", o.compensation, "as the daemons have it")
      ->check(CLI::IsMember({"zero", "rescale"}));
  app.add_option("--block-bytes", o.block_bytes, "as the daemons have it")
      ->check(CLI::Range(gradplane::kMinBlockBytes, gradplane::kMaxBlockBytes));
  app.add_option("--commands", o.commands_path, "FIFO; default: stdin");
  app.add_option("--answers", o.answers_path, "FIFO; default: stdout");
  CLI11_PARSE(app, argc, argv);
  if (!o.exact && o.world > peers::kMaxCodedRanks) {
    std::fprintf(stderr, "gradplane_ranks: --world: above %u ranks only with --exact\n",
                 peers::kMaxCodedRanks);
    return 1;
  }
  try {
    return run(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gradplane_ranks: %s\n", e.what());
    return 1;
  }
}
