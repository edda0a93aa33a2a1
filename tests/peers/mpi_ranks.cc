// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// One rank of an MPI_Allreduce, for comparisons. tests/peers/mpi.py starts the ranks. Between
// rounds a rank blocks in the read of its commands, outside of MPI, and uses no CPU.
#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// Leaves out MPI's C++ interface.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "tests/peers/harness.h"

namespace {

namespace peers = gradplane::peers;

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(what) + ": " + text);
}

void all_reduce(std::vector<float>& data) {
  static_assert(peers::kMaxRoundBytes / sizeof(float) <= INT_MAX);
  check(MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD),
        "MPI_Allreduce");
}

class MpiRank final : public peers::Participant {
 public:
  MpiRank(std::uint32_t rank, std::uint32_t world) : rank_(rank), world_(world) {
    std::vector<float> first(1);
    all_reduce(first);  // MPI makes connections at their first use
  }

  nlohmann::json run_round(const peers::Round& round) override {
    peers::expect_kind(round, {peers::RoundKind::kAllReduce});
    peers::RoundClock clock;
    std::vector<float> data(round.bytes / sizeof(float));
    peers::fill(data, round.seed, rank_);
    clock.start(round.at_ns);
    all_reduce(data);
    clock.end();
    if (round.spoil) data[0] += 1;
    return peers::round_answer(rank_, clock, peers::is_sum(data, round.seed, world_), data);
  }

 private:
  std::uint32_t rank_;
  std::uint32_t world_;
};

int run(const std::string& fifos) {
  int rank = 0;
  int world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const std::string base = fifos + "/rank-" + std::to_string(rank);
  peers::Harness harness(base + ".in", base + ".out");
  return peers::follow(harness, rank, [&] {
    return std::make_unique<MpiRank>(static_cast<std::uint32_t>(rank),
                                     static_cast<std::uint32_t>(world));
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A rank of MPI_Allreduce; start it with mpirun.");
  std::string fifos;
  app.add_option("--fifos", fifos, "folder with rank-R.in and rank-R.out")->required();
  CLI11_PARSE(app, argc, argv);
  MPI_Init(nullptr, nullptr);
  int code = 1;
  try {
    code = run(fifos);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mpi_ranks: %s\n", e.what());
  }
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return 0;
}
