// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// Programs of MPI that know nothing of gradplane, as test_mpi.py starts them: mpi_programs PROGRAM.
// One that finds a wrong result says so and ends with 1.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
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

namespace {

int own_rank = 0;
int ranks = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("rank %d of %d: wrong: %s\n", own_rank, ranks, what.c_str());
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void look_around() {
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/// Small numbers, so that no order of a sum or a product rounds.
template <typename T>
T given(int rank, int i, int salt) {
  return static_cast<T>((rank * 5 + i * 3 + salt) % 7 - 3);
}

template <typename T>
T reduced(MPI_Op op, T a, T b) {
  if (op == MPI_MAX) return std::max(a, b);
  if (op == MPI_MIN) return std::min(a, b);
  return op == MPI_PROD ? static_cast<T>(a * b) : static_cast<T>(a + b);
}

/// What all ranks of a communicator of `size` have together.
template <typename T>
T together(MPI_Op op, int size, int i, int salt) {
  T all = given<T>(0, i, salt);
  for (int rank = 1; rank < size; ++rank) all = reduced(op, all, given<T>(rank, i, salt));
  return all;
}

/// Where a result lies in regard to what is given.
enum class Place { kElsewhere, kInPlace };

template <typename T>
void all_reduce(MPI_Comm comm, MPI_Datatype type, MPI_Op op, int count, Place place, int salt) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  std::vector<T> send(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) send[static_cast<std::size_t>(i)] = given<T>(rank, i, salt);
  const std::vector<T> before = send;
  std::vector<T> receive = place == Place::kInPlace ? send : std::vector<T>(send.size(), T{77});
  const void* from = place == Place::kInPlace ? MPI_IN_PLACE : send.data();
  const int status = MPI_Allreduce(from, receive.data(), count, type, op, comm);
  expect(status == MPI_SUCCESS, "the status of an all_reduce");
  expect(send == before, "what a rank gives is changed");
  for (int i = 0; i < count; ++i) {
    expect(receive[static_cast<std::size_t>(i)] == together<T>(op, size, i, salt),
           "a result of an all_reduce of " + std::to_string(count) + " at " + std::to_string(i));
  }
}

template <typename T>
void reduce_scatter(MPI_Comm comm, MPI_Datatype type, MPI_Op op, int count, Place place, int salt) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  std::vector<T> send(static_cast<std::size_t>(count * size));
  for (int i = 0; i < count * size; ++i) {
    send[static_cast<std::size_t>(i)] = given<T>(rank, i, salt);
  }
  std::vector<T> receive =
      place == Place::kInPlace ? send : std::vector<T>(static_cast<std::size_t>(count), T{77});
  const void* from = place == Place::kInPlace ? MPI_IN_PLACE : send.data();
  const int status = MPI_Reduce_scatter_block(from, receive.data(), count, type, op, comm);
  expect(status == MPI_SUCCESS, "the status of a reduce_scatter");
  for (int i = 0; i < count; ++i) {
    expect(receive[static_cast<std::size_t>(i)] == together<T>(op, size, rank * count + i, salt),
           "a result of a reduce_scatter of " + std::to_string(count) + " at " + std::to_string(i));
  }
}

template <typename T>
void both(MPI_Comm comm, MPI_Datatype type, const std::vector<MPI_Op>& ops) {
  int salt = 0;
  for (const int count : {1, 1000, 50001}) {  // the last is several rounds
    for (const MPI_Op op : ops) {
      for (const Place place : {Place::kElsewhere, Place::kInPlace}) {
        all_reduce<T>(comm, type, op, count, place, ++salt);
        reduce_scatter<T>(comm, type, op, count, place, ++salt);
      }
    }
  }
}

/// Of each collective there are six calls for each operation, in each of seven types.
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

/// Eight calls that MPI does itself, on all ranks alike.
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

/// Thirty all_reduces under way beside messages, and looked at in each way that MPI has.
void asynchronous() {
  constexpr int kCalls = 30;
  std::array<std::vector<float>, kCalls> values;
  std::vector<MPI_Request> requests;
  int from_left = -1;
  const int right = (own_rank + 1) % ranks;
  const int left = (own_rank + ranks - 1) % ranks;
  requests.resize(2);
  MPI_Irecv(&from_left, 1, MPI_INT, left, 7, MPI_COMM_WORLD, requests.data());
  MPI_Isend(&own_rank, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &requests[1]);
  for (int call = 0; call < kCalls; ++call) {
    auto& own = values[static_cast<std::size_t>(call)];
    for (int i = 0; i < 1 + call * 1000; ++i) own.push_back(given<float>(own_rank, i, call));
    const std::vector<float> send = own;
    requests.push_back(MPI_REQUEST_NULL);
    MPI_Iallreduce(MPI_IN_PLACE, own.data(), static_cast<int>(own.size()), MPI_FLOAT, MPI_SUM,
                   MPI_COMM_WORLD, &requests.back());
  }
  MPI_Status status;
  expect(MPI_Wait(&requests[2], &status) == MPI_SUCCESS, "the first request");
  int elements = -1;
  MPI_Get_elements(&status, MPI_BYTE, &elements);
  expect(requests[2] == MPI_REQUEST_NULL && elements == 0, "a status that says nothing");
  for (int flag = 0; flag == 0;) MPI_Test(&requests[3], &flag, MPI_STATUS_IGNORE);
  int which = MPI_UNDEFINED;
  MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &which, MPI_STATUS_IGNORE);
  expect(which != MPI_UNDEFINED, "any of the requests");
  int done = 0;
  std::vector<int> indices(requests.size());
  const int all = static_cast<int>(requests.size());
  MPI_Waitsome(all, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
  expect(done > 0, "some of the requests");
  MPI_Testsome(all, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
  for (int flag = 0; flag == 0;) {
    MPI_Testany(all, requests.data(), &which, &flag, MPI_STATUS_IGNORE);
  }
  for (int flag = 0; flag == 0;) MPI_Testall(5, requests.data(), &flag, MPI_STATUSES_IGNORE);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  expect(from_left == left, "the message beside them");
  for (int call = 0; call < kCalls; ++call) {
    const auto& own = values[static_cast<std::size_t>(call)];
    for (std::size_t i = 0; i < own.size(); ++i) {
      expect(own[i] == together<float>(MPI_SUM, ranks, static_cast<int>(i), call),
             "a result of all_reduce " + std::to_string(call));
    }
  }
}

int copies_of_attribute = 0;

int copy_attribute(MPI_Comm, int, void*, void* value, void* to, int* flag) {
  copies_of_attribute += 1;
  *static_cast<void**>(to) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

/// Twenty-one all_reduces: eleven on the world, five on each copy of it or part of one.
void communicators() {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  for (int turn = 0; turn < 5; ++turn) {
    MPI_Comm copy;
    MPI_Comm part;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_attr(copy, key, &own_rank);
    MPI_Comm_split(MPI_COMM_WORLD, own_rank / 2, -own_rank, &part);
    // One that waits for no other rank, and behind it messages that the other ranks wait for.
    std::vector<double> slow(20000);
    for (int i = 0; i < 20000; ++i) {
      slow[static_cast<std::size_t>(i)] = given<double>(own_rank, i, turn);
    }
    MPI_Request request;
    MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    if (own_rank == 0) {
      MPI_Iallreduce(MPI_IN_PLACE, slow.data(), 20000, MPI_DOUBLE, MPI_SUM, copy, &request);
    }
    int token = own_rank == 0 ? 1 : 0;
    if (own_rank > 0) {
      MPI_Recv(&token, 1, MPI_INT, own_rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (own_rank + 1 < ranks) MPI_Send(&token, 1, MPI_INT, own_rank + 1, 3, MPI_COMM_WORLD);
    if (own_rank != 0) {
      MPI_Iallreduce(MPI_IN_PLACE, slow.data(), 20000, MPI_DOUBLE, MPI_SUM, copy, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 20000; ++i) {
      expect(slow[static_cast<std::size_t>(i)] == together<double>(MPI_SUM, ranks, i, turn),
             "a sum on a copy of the world");
    }
    all_reduce<float>(part, MPI_FLOAT, MPI_MAX, 3000, Place::kElsewhere, turn);
    all_reduce<float>(MPI_COMM_WORLD, MPI_FLOAT, MPI_MIN, 3000, Place::kInPlace, turn);
    all_reduce<int>(MPI_COMM_WORLD, MPI_INT, MPI_SUM, 10, Place::kInPlace, turn);
#ifndef OMPI_MAJOR_VERSION  // there, MPI_Comm_create_group copies attributes, against the standard
    expect(copies_of_attribute == 0, "an attribute of the program was copied");
#endif
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
  }
  all_reduce<int>(MPI_COMM_WORLD, MPI_INT, MPI_SUM, 10, Place::kInPlace, 9);
  MPI_Comm_free_keyval(&key);
}

/// Many small ones, during which a session may be lost.
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

/// A program that looks at errors.
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
}

/// Sums on communicators with a name and without one.
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

/// A program that only has to do with other parts of MPI.
void nothing() {
  MPI_Barrier(MPI_COMM_WORLD);
}

void fatal() {
  float value = 1;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("it went on\n");
}

/// The last rank comes to the first collective long after the others.
void late() {
  if (own_rank + 1 == ranks) sleep(7);
  all_reduce<float>(MPI_COMM_WORLD, MPI_FLOAT, MPI_SUM, 10, Place::kInPlace, 1);
}

/// Sums until the file `end` is there, which rank 0 looks for.
void sum_until(const char* end) {
  for (int turn = 0;; ++turn) {
    std::array<std::int64_t, 3> values = {own_rank, turn, 0};
    if (own_rank == 0) values[2] = access(end, F_OK) == 0 ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, values.data(), 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(values[0] == ranks * (ranks - 1) / 2 && values[1] == std::int64_t{turn} * ranks,
           "a sum in turn " + std::to_string(turn));
    if (values[2] != 0) return;
    usleep(1000);  // the processors have a daemon, too
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
                                                      {"nothing", nothing},
                                                      {"late", late},
                                                      {"until", [] { sum_until(end_file); }}};
  const auto found = programs.find(program);
  if (found == programs.end()) return 2;
  found->second();
  MPI_Finalize();
  return 0;
}
