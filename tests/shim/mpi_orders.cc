// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// MPI programs in which ranks call in different orders: requests in flight, many communicators, and
// messages beside collectives.
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "tests/shim/mpi_program.h"

namespace gradplane::test {
namespace {

int copies_of_attribute = 0;

int copy_attribute(MPI_Comm, int, void*, void* value, void* to, int* flag) {
  copies_of_attribute += 1;
  *static_cast<void**>(to) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

}  // namespace

/// Thirty all_reduces in flight beside messages, whose requests end in each way that MPI has.
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

/// Twenty-one all_reduces: eleven on the world, and five each on copies and on parts of it.
void communicators() {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  for (int turn = 0; turn < 5; ++turn) {
    MPI_Comm copy;
    MPI_Comm part;
    // Communicators are made in alternating order, so that each gets an old handle of the other
    // kind.
    if (turn % 2 == 0) MPI_Comm_split(MPI_COMM_WORLD, own_rank / 2, -own_rank, &part);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (turn % 2 == 1) MPI_Comm_split(MPI_COMM_WORLD, own_rank / 2, -own_rank, &part);
    MPI_Comm_set_attr(copy, key, &own_rank);
    // A slow call that waits for no other rank comes first. Other ranks wait for the messages
    // behind it.
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
    expect(copies_of_attribute == 0, "an attribute of the program was copied");
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
  }
  all_reduce<int>(MPI_COMM_WORLD, MPI_INT, MPI_SUM, 10, Place::kInPlace, 9);
  MPI_Comm_free_keyval(&key);
}

/// Rank 0 receives any message while the first collective is in flight, in which it takes part.
void any_message() {
  std::array<float, 10> values{};
  values.fill(1);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, values.data(), 10, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (own_rank == 0) {
    int word = 0;
    MPI_Status status;
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    expect(word == 42 && status.MPI_TAG == 5, "a message that is none of the program's");
  }
  if (own_rank == 1) {
    usleep(200000);  // so that anything else for rank 0 comes first
    const int word = 42;
    MPI_Send(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(values[9] == static_cast<float>(ranks), "the sum beside it");
}

/// Half of the ranks call on one communicator first, and half on the other.
void opposite() {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  float value = 1;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto begin = [&] {
    MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  };
  if (own_rank % 2 == 0) begin();
  all_reduce<float>(copy, MPI_FLOAT, MPI_SUM, 10, Place::kInPlace, 1);
  if (own_rank % 2 == 1) begin();
  MPI_Comm_free(&copy);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(value == static_cast<float>(ranks), "the sum that was begun first");
}

/// One rank frees a communicator long before the others do.
void freed_early() {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  all_reduce<float>(copy, MPI_FLOAT, MPI_SUM, 10, Place::kInPlace, 1);
  int token = 1;
  if (own_rank == 0) MPI_Comm_free(&copy);
  MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (own_rank != 0) MPI_Comm_free(&copy);
  all_reduce<float>(MPI_COMM_WORLD, MPI_FLOAT, MPI_SUM, 10, Place::kInPlace, 1);
}

}  // namespace gradplane::test
