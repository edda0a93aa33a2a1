// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "trainer-shim/mpi/mpi_api.h"

namespace gradplane::shim {

/// A copy of MPI_COMM_WORLD that no program knows, so that no receive of a program meets a message
/// of ours. All ranks make it in MPI_Init.
struct World {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string refusal;  // why nothing is carried, alike on all ranks; empty: everything can be
};

/// In MPI_Init, when MPI itself has begun. Waits for the other ranks, which have to run with
/// gradplane, too: where some do not, it says so, and ends the program after a minute, because what
/// was begun with them cannot be taken back.
void make_world();

/// It has no communicator where the program has begun MPI in another way than by MPI_Init of C.
const World& world();

/// From exit() on, where MPI has not been finalized.
bool is_exiting();

/// The tag with which the ranks of a session make its communicator. The lowest of them chooses it:
/// `world_rank` is its rank in world(), and `n` counts the sessions of which it is the lowest. No
/// two sessions at a time have the same tag.
int tag_of_session(int world_rank, int n);

}  // namespace gradplane::shim
