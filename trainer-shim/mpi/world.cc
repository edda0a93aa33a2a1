// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/mpi/world.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/side_group.h"

namespace gradplane::shim {
namespace {

/// A rank that has not come after so many attach timeouts, by default a minute, is taken for one
/// without gradplane: MPI_Init itself ends on all ranks at nearly the same time.
constexpr int kPatience = 6;

World own_world;
std::atomic<bool> exiting{false};
int largest_tag = 32767;  // what the standard promises
int world_ranks = 1;

/// Why this rank cannot carry anything.
enum class Obstacle : int { kNone = 0, kThreads = 1, kDevices = 2 };

/// Whether MPI accepts buffers in the memory of a GPU.
bool takes_device_memory() {
  using Query = int (*)();
  const auto query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return query != nullptr && query() == 1;
}

Obstacle own_obstacle() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE) return Obstacle::kThreads;
  return takes_device_memory() ? Obstacle::kDevices : Obstacle::kNone;
}

std::string text_of(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kThreads:
      return "this MPI does not offer MPI_THREAD_MULTIPLE, which gradplane needs";
    case Obstacle::kDevices:
      return "this MPI takes memory of GPUs, which gradplane does not";
    case Obstacle::kNone:
      break;
  }
  return "";
}

/// Waits until all ranks have begun the same collective. Says so when that takes long.
void wait_for_all(MPI_Request* request) {
  const auto begun = std::chrono::steady_clock::now();
  auto next_word = kFirstWord;
  for (int over = 0;;) {
    PMPI_Test(request, &over, MPI_STATUS_IGNORE);
    if (over != 0) return;
    const auto waited = std::chrono::steady_clock::now() - begun;
    if (waited >= kPatience * std::chrono::milliseconds(environment().attach_timeout_ms)) {
      std::fprintf(stderr,
                   "gradplane: some ranks of this program run without gradplane, or begin MPI from "
                   "Fortran; start all of them with gradplane, or none\n");
      PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (waited >= next_word) {
      std::fprintf(stderr,
                   "gradplane: a rank has waited %lld s in MPI_Init for the other ranks; have all "
                   "been started with gradplane?\n",
                   static_cast<long long>(next_word.count()));
      next_word *= 2;
    }
    std::this_thread::yield();  // as MPI itself does in MPI_Init
  }
}

}  // namespace

void make_world() {
  std::atexit([] { exiting = true; });  // runs before the handler of begin_process()
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Comm_idup(MPI_COMM_WORLD, &own_world.comm, &request) != MPI_SUCCESS) return;
  wait_for_all(&request);
  PMPI_Comm_set_errhandler(own_world.comm, MPI_ERRORS_RETURN);
  int obstacle = static_cast<int>(own_obstacle());
  PMPI_Allreduce(MPI_IN_PLACE, &obstacle, 1, MPI_INT, MPI_MAX, own_world.comm);
  own_world.refusal = text_of(static_cast<Obstacle>(obstacle));
  int* bound = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &found);
  if (found != 0) largest_tag = *bound;
  PMPI_Comm_size(own_world.comm, &world_ranks);
}

bool is_exiting() {
  return exiting;
}

const World& world() {
  return own_world;
}

int tag_of_session(int world_rank, int n) {
  const int each = std::max(1, largest_tag / world_ranks);
  return world_rank * each + n % each;
}

}  // namespace gradplane::shim
