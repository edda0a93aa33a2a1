// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "trainer-shim/mpi/mpi_api.h"

namespace gradplane::shim {

/// A copy of MPI_COMM_WORLD that programs do not know, so that no receive of a program gets a
/// message of ours. All ranks make it in MPI_Init.
struct World {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string refusal;  // why nothing is carried, the same on all ranks; empty if it is
};

/// Makes the copy. It is called in MPI_Init, when MPI itself has begun, and waits for the other
/// ranks, which must run with gradplane, too. If some do not, it says so and ends the program after
/// a minute, because a collective that has begun cannot be cancelled.
void make_world();

/// The copy. It has no communicator if the program has begun MPI in another way than by MPI_Init of
/// C.
const World& world();

/// Whether exit() was called although MPI has not been finalized.
bool is_exiting();

/// The tag with which the ranks of a session make its communicator. The lowest of them chooses it:
/// `world_rank` is its rank in world(), and `n` counts the sessions in which it is the lowest. No
/// two sessions at a time have the same tag.
int tag_of_session(int world_rank, int n);

}  // namespace gradplane::shim
