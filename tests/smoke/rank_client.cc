// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A rank without a framework, for smoke tests of real daemons. It attaches, sums small integers in
// each round, checks every sum, and prints one line.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/model/element_type.h"
#include "dataplane/model/operation.h"
#include "tests/sim/cluster.h"
#include "tests/sim/trainer.h"
#include "trainer-shim/client/client.h"

namespace {

struct Options {
  std::string socket;
  std::string key = "00112233445566778899aabbccddeeff";
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint32_t rounds = 100;
  std::uint32_t elements = 100000;
  std::string type = "fp32";
  /// Number of tensors in the bucket of all rounds; 0: no bucket, so every round is exact.
  std::uint32_t tensors = 0;
  /// A rank that may leave the job; -1: none. Sums without that rank are right, too.
  int may_lack = -1;
  bool exchange = false;
  int ready_timeout_ms = 10000;
  int round_timeout_ms = 20000;
};

using gradplane::ElementType;

ElementType type_named(const std::string& name) {
  for (const ElementType type : gradplane::kElementTypes) {
    if (gradplane::element_type_name(type) == name) return type;
  }
  std::fprintf(stderr, "no element type %s\n", name.c_str());
  std::exit(2);
}

/// The number of elements in a round: all in every third one, and odd numbers in between.
std::uint32_t elements_of(const Options& o, std::uint32_t round) {
  if (o.tensors > 0) return o.elements;  // all rounds of a bucket have one size
  return round % 3 == 0 ? o.elements : 1 + (round * 977) % o.elements;
}

class Client {
 public:
  Client(const Options& options, gp_session* session)
      : o_(options), session_(session), type_(type_named(options.type)) {}

  int run() {
    submitted_ = done_ = oldest_ = gp_next_round(session_);
    std::printf("rank %u: begins with round %u\n", o_.rank, done_);
    std::fflush(stdout);
    if (o_.tensors > 0 && !register_bucket()) return 1;
    const std::uint32_t ahead = gp_rounds_in_flight_max(session_);
    const auto begin = std::chrono::steady_clock::now();
    while (done_ < o_.rounds) {
      while (submitted_ < o_.rounds && submitted_ - oldest_ < ahead) {
        if (!submit()) return 1;
      }
      if (!take()) return 1;
    }
    const double s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf(
        "rank %u: %u rounds right, %.3f ms each, %u partial, %u without rank %d, bits %016zx\n",
        o_.rank, done_, s * 1e3 / o_.rounds, partial_, lacking_, o_.may_lack, bits_);
    return 0;
  }

 private:
  /// Tensors of about the same size: layer.0.weight, layer.0.bias, layer.1.weight, ...
  bool register_bucket() {
    std::vector<std::string> names;
    std::vector<gp_tensor> tensors;
    for (std::uint32_t t = 0; t < o_.tensors; ++t) {
      names.push_back("layer." + std::to_string(t / 2) + (t % 2 == 0 ? ".weight" : ".bias"));
    }
    for (std::uint64_t t = 0; t < o_.tensors; ++t) {
      const std::uint64_t begin = t * o_.elements / o_.tensors;
      tensors.push_back({names[t].c_str(), begin, (t + 1) * o_.elements / o_.tensors - begin});
    }
    const int status = gp_register_bucket(session_, kBucket, static_cast<std::uint8_t>(type_),
                                          tensors.data(), tensors.size());
    if (status != GP_OK) std::printf("rank %u: bucket: %s\n", o_.rank, gp_failure(session_));
    return status == GP_OK;
  }

  bool submit() {
    const std::uint32_t round = submitted_++;
    const std::uint32_t elements = elements_of(o_, round);
    auto* memory = static_cast<std::byte*>(gp_round_memory(session_, round));
    const std::size_t width = gradplane::element_bytes(type_);
    for (std::uint32_t e = 0; e < elements; ++e) {
      gradplane::sim::store(type_, memory + e * width,
                            gradplane::sim::contribution(round, o_.rank, e));
    }
    const gp_statement said{
        .elements = elements,
        .element_type = static_cast<std::uint8_t>(type_),
        .operation = static_cast<std::uint8_t>(o_.exchange ? gradplane::Operation::kExchange
                                                           : gradplane::Operation::kAllReduce),
        .source = 0,
        .bucket = static_cast<std::uint16_t>(o_.tensors > 0 ? kBucket : 0),
        .reduction = 0};
    const int status = gp_submit(session_, round, &said);
    if (status != GP_OK)
      std::printf("rank %u: submit: %d %s\n", o_.rank, status, gp_failure(session_));
    return status == GP_OK;
  }

  bool take() {
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(o_.round_timeout_ms);
    gp_completion completion;
    int taken = 0;
    while ((taken = gp_poll(session_, &completion)) == 0) {
      if (std::chrono::steady_clock::now() > limit) {
        std::printf("rank %u: nothing for %d ms after %u rounds\n", o_.rank, o_.round_timeout_ms,
                    done_);
        return false;
      }
      if (gp_wait(session_, 1000) != GP_OK) break;
    }
    if (taken != 1) {
      std::printf("rank %u: after %u rounds: %s\n", o_.rank, done_, gp_failure(session_));
      return false;
    }
    ++done_;
    finished_[completion.round] = true;
    while (oldest_ < o_.rounds && finished_[oldest_]) ++oldest_;
    note_bits(completion.round);
    return check(completion);
  }

  /// Adds a result to bits_, independent of the order in which rounds complete.
  void note_bits(std::uint32_t round) {
    std::string bytes(elements_of(o_, round) * gradplane::element_bytes(type_), '\0');
    std::memcpy(bytes.data(), gp_round_memory(session_, round), bytes.size());
    bits_ += std::hash<std::string>()(bytes.append(std::to_string(round)));
  }

  bool check(const gp_completion& completion) {
    if (o_.tensors > 0 && completion.partial_blocks > 0) {
      ++partial_;
      return true;
    }
    const bool lacks = o_.may_lack >= 0 && completion.contributors + 1 == o_.world;
    lacking_ += lacks ? 1 : 0;
    if (completion.contributors != o_.world && !lacks) {
      std::printf("rank %u: round %u has %u contributions\n", o_.rank, completion.round,
                  completion.contributors);
      return false;
    }
    const auto* memory = static_cast<const std::byte*>(gp_round_memory(session_, completion.round));
    const std::size_t width = gradplane::element_bytes(type_);
    for (std::uint32_t e = 0; e < elements_of(o_, completion.round); ++e) {
      double expected = 0;
      for (std::uint32_t r = 0; r < o_.world; ++r) {
        if (lacks && r == static_cast<std::uint32_t>(o_.may_lack)) continue;
        expected += gradplane::sim::contribution(completion.round, r, e);
      }
      const double got = gradplane::sim::load(type_, memory + e * width);
      if (got == expected) continue;
      std::printf("rank %u: round %u element %u is %g, not %g\n", o_.rank, completion.round, e, got,
                  expected);
      return false;
    }
    return true;
  }

  static constexpr std::uint32_t kBucket = 1;

  const Options& o_;
  gp_session* session_;
  ElementType type_;
  std::uint32_t submitted_ = 0;
  std::uint32_t done_ = 0;
  std::uint32_t partial_ = 0;  // done rounds with partial blocks, whose sums are not checked
  std::uint32_t lacking_ = 0;  // done rounds without the rank that may leave
  std::size_t bits_ = 0;       // over all results; equal results give equal bits
  std::uint32_t oldest_ = 0;   // oldest round that is not done
  std::vector<bool> finished_ = std::vector<bool>(o_.rounds);
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reduces small integers through gradplaned and checks every sum.");
  Options o;
  app.add_option("--socket", o.socket, "of the daemon")->required();
  app.add_option("--key", o.key, "of the job, 32 hex digits");
  app.add_option("--rank", o.rank, "");
  app.add_option("--world", o.world, "");
  app.add_option("--rounds", o.rounds, "");
  app.add_option("--elements", o.elements, "of the largest round");
  app.add_option("--type", o.type, "fp32, fp64, fp16, bf16, int32 or int64");
  app.add_option("--tensors", o.tensors, "of the bucket that all rounds are of; 0: none");
  app.add_flag("--exchange", o.exchange, "rounds are exchanges, in which all ranks receive all");
  app.add_option("--may-lack", o.may_lack, "a rank that may be out of the job");
  app.add_option("--ready-timeout-ms", o.ready_timeout_ms, "");
  app.add_option("--round-timeout-ms", o.round_timeout_ms, "");
  CLI11_PARSE(app, argc, argv);
  gp_attach_options attach{};
  attach.socket_path = o.socket.c_str();
  for (std::size_t i = 0; i < 16; ++i) {
    attach.job_key[i] = static_cast<std::uint8_t>(std::stoul(o.key.substr(2 * i, 2), nullptr, 16));
  }
  attach.rank = o.rank;
  attach.world_size = o.world;
  attach.label = "rank_client";
  attach.timeout_ms = 5000;
  char error[512] = "";
  gp_session* session = nullptr;
  int status = gp_attach(&attach, &session, error, sizeof error);
  if (status == GP_OK) status = gp_wait_ready(session, o.ready_timeout_ms, error, sizeof error);
  if (status != GP_OK) {
    std::printf("rank %u: %s\n", o.rank, error);
    return 1;
  }
  const int result = Client(o, session).run();
  gp_detach(session, result == 0 ? 1 : 0);
  return result;
}
