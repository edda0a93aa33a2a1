// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// MPI programs that do not know of gradplane, as test_mpi.py starts them: mpi_programs PROGRAM. A
// program that finds a wrong result prints that and ends with 1.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/shim/mpi_program.h"

using namespace gradplane::test;

namespace {

template <typename T>
void both(MPI_Comm comm, MPI_Datatype type, const std::vector<MPI_Op>& ops) {
  int salt = 0;
  for (const int count : {1, 1000, 50001}) {  // the last takes several rounds
    for (const MPI_Op op : ops) {
      for (const Place place : {Place::kElsewhere, Place::kInPlace}) {
        all_reduce<T>(comm, type, op, count, place, ++salt);
        reduce_scatter<T>(comm, type, op, count, place, ++salt);
      }
    }
  }
}

/// Six calls of each collective for each operation, in each of seven types.
void exact(MPI_Comm comm) {
  const std::vector<MPI_Op> all = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD};
  both<float>(comm, MPI_FLOAT, all);
  both<double>(comm, MPI_DOUBLE, all);
  both<int>(comm, MPI_INT, all);
  both<std::int32_t>(comm, MPI_INT32_T, all);
  both<std::int64_t>(comm, MPI_INT64_T, all);
  both<long>(comm, MPI_LONG, all);
  both<long long>(comm, MPI_LONG_LONG, all);
}

void sum_of_largest(void* from, void* to, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const int*>(from);
  auto* b = static_cast<int*>(to);
  for (int i = 0; i < *count; ++i) b[i] = std::max(a[i], b[i]) + 1;
}

/// Eight calls that MPI does itself, the same on all ranks.
void passed() {
  unsigned char bits = static_cast<unsigned char>(1U << own_rank);
  MPI_Allreduce(MPI_IN_PLACE, &bits, 1, MPI_UNSIGNED_CHAR, MPI_BOR, MPI_COMM_WORLD);
  expect(bits == (1U << ranks) - 1, "the bits of all ranks");
  MPI_Op own;
  MPI_Op_create(sum_of_largest, 1, &own);
  int value = own_rank;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, own, MPI_COMM_WORLD);
  expect(value >= ranks, "an operation of the program");
  MPI_Op_free(&own);
  struct {
    double value;
    int rank;
  } best = {own_rank * 2.0, own_rank};
  MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  expect(best.rank == ranks - 1, "the place of the largest");
  short small = 1;
  MPI_Allreduce(MPI_IN_PLACE, &small, 1, MPI_SHORT, MPI_SUM, MPI_COMM_WORLD);
  expect(small == ranks, "a sum of shorts");
  MPI_Request request;
  unsigned words = 1;
  MPI_Iallreduce(MPI_IN_PLACE, &words, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(words == static_cast<unsigned>(ranks), "a sum of unsigned numbers");
  float nothing = 3;
  MPI_Allreduce(MPI_IN_PLACE, &nothing, 0, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  float alone = 5;
  MPI_Allreduce(MPI_IN_PLACE, &alone, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
  expect(nothing == 3 && alone == 5, "sums of nothing, and of one rank");
  MPI_Comm half;
  MPI_Comm between;
  const int leader = own_rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, leader, own_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - leader, 1, &between);
  int theirs = 0;
  const int mine = 1;
  MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_SUM, between);
  expect(theirs == (leader == 0 ? ranks / 2 : (ranks + 1) / 2), "the number of the others");
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

/// Many small collectives, during which a session may be lost.
void many() {
  for (int i = 0; i < 40; ++i) {
    all_reduce<float>(MPI_COMM_WORLD, MPI_FLOAT, MPI_SUM, 30000, Place::kElsewhere, i);
    reduce_scatter<float>(MPI_COMM_WORLD, MPI_FLOAT, MPI_SUM, 7000,
                          i % 2 == 0 ? Place::kInPlace : Place::kElsewhere, i);
  }
}

void say_status(const char* what, int status) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  std::printf("%s: %s\n", what, status == MPI_SUCCESS ? "no error" : text);
}

/// A program that handles errors itself.
void errors() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  float value = 1;
  say_status("all_reduce",
             MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  MPI_Request request;
  const int status =
      MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  expect(status == MPI_SUCCESS, "a failure is one of the request");
  say_status("request", MPI_Wait(&request, MPI_STATUS_IGNORE));

  const int other = 1 - own_rank;
  int sent = 1;
  int received = 0;
  MPI_Request several[] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3];
  MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &several[0]);
  MPI_Irecv(&received, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &several[2]);
  MPI_Send(&sent, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
  expect(MPI_Waitall(3, several, statuses) == MPI_ERR_IN_STATUS, "one of several has failed");
  say_status("one of several", statuses[0].MPI_ERROR);
  expect(statuses[1].MPI_ERROR == MPI_SUCCESS && statuses[2].MPI_ERROR == MPI_SUCCESS &&
             statuses[2].MPI_SOURCE == other && received == 1,
         "the others have not failed");
}

/// Sums on communicators with and without a name.
void named() {
  MPI_Comm copy;
  MPI_Comm layers;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_dup(MPI_COMM_WORLD, &layers);
  MPI_Comm_set_name(layers, "layers");
  for (int turn = 0; turn < 2; ++turn) {
    all_reduce<float>(MPI_COMM_WORLD, MPI_FLOAT, MPI_SUM, 3000, Place::kInPlace, turn);
    all_reduce<double>(layers, MPI_DOUBLE, MPI_SUM, 500, Place::kElsewhere, turn);
    all_reduce<float>(layers, MPI_FLOAT, MPI_MAX, 500, Place::kElsewhere, turn);
    all_reduce<int>(layers, MPI_INT, MPI_SUM, 500, Place::kElsewhere, turn);
    all_reduce<float>(copy, MPI_FLOAT, MPI_SUM, 500, Place::kElsewhere, turn);
  }
  MPI_Comm_free(&layers);
  MPI_Comm_free(&copy);
}

/// A single all_reduce.
void one() {
  all_reduce<float>(MPI_COMM_WORLD, MPI_FLOAT, MPI_SUM, 10, Place::kInPlace, 1);
}

/// A program that uses other parts of MPI only.
void nothing() {
  MPI_Barrier(MPI_COMM_WORLD);
}

void fatal() {
  float value = 1;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("it went on\n");
}

/// The last rank calls its first collective long after the others.
void late() {
  if (own_rank + 1 == ranks) sleep(7);
  all_reduce<float>(MPI_COMM_WORLD, MPI_FLOAT, MPI_SUM, 10, Place::kInPlace, 1);
}

/// Sums until rank 0 sees that the file `end` exists.
void sum_until(const char* end) {
  for (int turn = 0;; ++turn) {
    std::array<std::int64_t, 3> values = {own_rank, turn, 0};
    if (own_rank == 0) values[2] = access(end, F_OK) == 0 ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, values.data(), 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(values[0] == ranks * (ranks - 1) / 2 && values[1] == std::int64_t{turn} * ranks,
           "a sum in turn " + std::to_string(turn));
    if (values[2] != 0) return;
    usleep(1000);  // leaves CPU time for the daemon
  }
}

const char* end_file = "";

}  // namespace

int main(int argc, char** argv) {
  const std::string program = argc > 1 ? argv[1] : "";
  if (argc > 2) end_file = argv[2];
  if (argc > 2) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    if (provided < MPI_THREAD_FUNNELED) return 1;
  } else {
    MPI_Init(&argc, &argv);
  }
  look_around();
  const std::map<std::string, void (*)()> programs = {{"exact", [] { exact(MPI_COMM_WORLD); }},
                                                      {"passed", passed},
                                                      {"asynchronous", asynchronous},
                                                      {"communicators", communicators},
                                                      {"many", many},
                                                      {"errors", errors},
                                                      {"fatal", fatal},
                                                      {"named", named},
                                                      {"one", one},
                                                      {"any_message", any_message},
                                                      {"opposite", opposite},
                                                      {"freed_early", freed_early},
                                                      {"nothing", nothing},
                                                      {"late", late},
                                                      {"until", [] { sum_until(end_file); }}};
  const auto found = programs.find(program);
  if (found == programs.end()) return 2;
  found->second();
  MPI_Finalize();
  return 0;
}
