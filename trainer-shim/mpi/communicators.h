// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <optional>

#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/group_session.h"
#include "trainer-shim/mpi/mpi_api.h"

namespace gradplane::shim {

/// The session that carries a collective on a communicator, or null: then MPI does it itself.
/// `reason` says why this collective is passed through; it is the same on all ranks. The first
/// collective without a reason opens the session. Throws if there is no session and a fallback is
/// forbidden. Any thread.
std::shared_ptr<GroupSession> session_for(MPI_Comm comm, Operation operation,
                                          std::optional<PassReason> reason);

/// Ends all sessions before MPI ends. After it nothing is carried.
void end_sessions();

/// The gradient bucket of a sum on this communicator, if the user says that sums are gradients. It
/// has one tensor, with the name of the communicator. Empty if the communicator has no name, or
/// only one from MPI. All_reduces of one size on one communicator are one bucket.
GroupSession::Gradient gradient_of(MPI_Comm comm, const Collective& collective);

}  // namespace gradplane::shim
