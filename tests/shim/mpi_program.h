// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// Checks for the MPI programs of the tests.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace gradplane::test {

inline int own_rank = 0;
inline int ranks = 0;

inline void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("rank %d of %d: wrong: %s\n", own_rank, ranks, what.c_str());
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

inline void look_around() {
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/// A rank's input: small integers, so that sums and products are exact in any order.
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

/// The reduction over all ranks of a communicator of `size`.
template <typename T>
T together(MPI_Op op, int size, int i, int salt) {
  T all = given<T>(0, i, salt);
  for (int rank = 1; rank < size; ++rank) all = reduced(op, all, given<T>(rank, i, salt));
  return all;
}

/// Whether the result overwrites the input.
enum class Place { kElsewhere, kInPlace };

/// A rank of a communicator, and the communicator's size.
struct Member {
  int rank = 0;
  int size = 0;

  explicit Member(MPI_Comm comm) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
  }
};

template <typename T>
std::vector<T> all_given(int rank, int count, int salt) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(given<T>(rank, i, salt));
  return values;
}

template <typename T>
void all_reduce(MPI_Comm comm, MPI_Datatype type, MPI_Op op, int count, Place place, int salt) {
  const auto [rank, size] = Member(comm);
  const std::vector<T> send = all_given<T>(rank, count, salt);
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
  const auto [rank, size] = Member(comm);
  const std::vector<T> send = all_given<T>(rank, count * size, salt);
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

// Programs in mpi_orders.cc.
void asynchronous();
void communicators();
void any_message();
void opposite();
void freed_early();

}  // namespace gradplane::test
