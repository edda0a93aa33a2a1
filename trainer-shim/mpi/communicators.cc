// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/mpi/communicators.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "trainer-shim/group/bucket_layout.h"
#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/groups.h"
#include "trainer-shim/group/process.h"
#include "trainer-shim/mpi/side_comm.h"
#include "trainer-shim/mpi/world.h"

namespace gradplane::shim {
namespace {

/// The key of a communicator in groups(). It is a pointer in one MPI and a number in the other.
const void* name_of(MPI_Comm comm) {
  std::uintptr_t name = 0;
  static_assert(sizeof comm <= sizeof name);
  std::memcpy(&name, &comm, sizeof comm);
  return reinterpret_cast<const void*>(name);
}

std::atomic<bool> is_finalizing{false};

/// MPI calls this when the program frees the communicator.
int at_end_of_comm(MPI_Comm comm, int, void*, void*) {
  groups().retire(name_of(comm));
  return MPI_SUCCESS;
}

/// The key of the attribute that every communicator with a session has.
int end_key() {
  static const int made = [] {
    int key = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end_of_comm, &key, nullptr);
    return key;
  }();
  return made;
}

GroupEntry open_session(MPI_Comm comm, int size) {
  std::string refusal = world().refusal;
  if (world().comm == MPI_COMM_NULL) {
    refusal = "this program has begun MPI in another way than by MPI_Init or MPI_Init_thread of C";
  }
  if (!refusal.empty()) {
    return {nullptr, refusal, environment().require || Carrier::daemon_requires(),
            PassReason::kPeers};
  }
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  auto session =
      std::make_shared<GroupSession>(std::make_unique<SideComm>(comm, rank, size), rank, size);
  session->start();
  return {session, "", false, PassReason::kPeers};
}

/// Opens the session of a communicator at its first collective that can be carried, or notes why it
/// has none.
GroupEntry open(MPI_Comm comm, int size) {
  GroupEntry entry = open_session(comm, size);
  groups().add(name_of(comm), entry);
  if (entry.session) PMPI_Comm_set_attr(comm, end_key(), nullptr);
  return entry;
}

/// Whether all ranks of a communicator are ranks of MPI_COMM_WORLD; a program may start others.
bool is_of_world(MPI_Comm comm) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group ranks = MPI_GROUP_NULL;
  MPI_Group others = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  PMPI_Comm_group(comm, &ranks);
  PMPI_Group_difference(ranks, all, &others);
  const bool none = others == MPI_GROUP_EMPTY;
  if (!none) PMPI_Group_free(&others);
  PMPI_Group_free(&ranks);
  PMPI_Group_free(&all);
  return none;
}

/// Why no collective on a communicator is carried; nothing if they are. `size` becomes the number
/// of its ranks.
std::optional<PassReason> why_never(MPI_Comm comm, int& size) {
  int inter = 0;
  size = 0;
  // MPI itself must refuse an invalid communicator.
  if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) return PassReason::kArguments;
  PMPI_Comm_size(comm, &size);
  if (inter != 0) return PassReason::kArguments;
  if (size == 1) return PassReason::kOneRank;
  if (!is_of_world(comm)) return PassReason::kArguments;
  return std::nullopt;
}

}  // namespace

std::shared_ptr<GroupSession> session_for(MPI_Comm comm, Operation operation,
                                          std::optional<PassReason> reason) {
  note_use();
  if (is_finalizing) return nullptr;
  GroupEntry entry = groups().find(name_of(comm));
  const bool is_new = !entry.session && entry.refusal.empty();
  int size = 0;
  if (is_new && !reason) reason = why_never(comm, size);
  if (reason) {
    count_pass(operation, *reason);
    return nullptr;
  }
  if (is_new) entry = open(comm, size);
  if (entry.session) return entry.session;
  if (entry.required || environment().require) {
    throw std::runtime_error(entry.refusal +
                             "; to go on over MPI is forbidden (ranks.require or "
                             "GRADPLANE_REQUIRE)");
  }
  announce_fallback(entry.refusal, "MPI");
  count_pass(operation, entry.reason);
  return nullptr;
}

void end_sessions() {
  is_finalizing = true;
  groups().end_all();
}

GroupSession::Gradient gradient_of(MPI_Comm comm, const Collective& collective) {
  const bool is_gradient = environment().mpi_sums_are_gradients && is_floating(collective.type) &&
                           collective.reduction == Reduction::kSum;
  if (!is_gradient) return {};
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  // Open MPI's default name has a number, which may be another communicator's on another rank.
  if (length == 0 || std::string_view(name).starts_with("MPI COMMUNICATOR")) return {};
  const std::uint64_t elements = collective.bytes / element_bytes(collective.type);
  return {layout_of_sum(name, elements, collective.type), nullptr};
}

}  // namespace gradplane::shim
