// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <optional>

#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/group_session.h"
#include "trainer-shim/mpi/mpi_api.h"

namespace gradplane::shim {

/// The session that carries a collective on a communicator, or nothing: then MPI does it itself.
/// `reason` says why it is not carried, alike on all ranks. The first collective without one opens
/// the session. Throws where there is none and a fallback is forbidden. Any thread.
std::shared_ptr<GroupSession> session_for(MPI_Comm comm, Operation operation,
                                          std::optional<PassReason> reason);

/// Before MPI ends: from here on nothing is carried.
void end_sessions();

/// Where the user says that sums are gradients: the bucket that a sum on this communicator is, with
/// one tensor, which has the communicator's name. Nothing of one that has no name, or one that MPI
/// gave it. All_reduces of one size on one communicator are one bucket.
GroupSession::Gradient gradient_of(MPI_Comm comm, const Collective& collective);

}  // namespace gradplane::shim
