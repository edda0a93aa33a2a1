// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/mpi/communicators.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "trainer-shim/group/bucket_layout.h"
#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/groups.h"
#include "trainer-shim/group/process.h"
#include "trainer-shim/mpi/side_comm.h"

namespace gradplane::shim {
namespace {

/// A communicator is a pointer in one MPI and a number in the other.
const void* name_of(MPI_Comm comm) {
  std::uintptr_t name = 0;
  static_assert(sizeof comm <= sizeof name);
  std::memcpy(&name, &comm, sizeof comm);
  return reinterpret_cast<const void*>(name);
}

/// MPI calls it when the program frees the communicator.
int at_end_of_comm(MPI_Comm comm, int, void*, void*) {
  groups().remove(name_of(comm));
  return MPI_SUCCESS;
}

/// What is attached to MPI_COMM_SELF is the first that MPI_Finalize frees.
int at_finalize(MPI_Comm, int, void*, void*) {
  groups().end_all();
  return MPI_SUCCESS;
}

struct Keys {
  int comm = MPI_KEYVAL_INVALID;
  int self = MPI_KEYVAL_INVALID;
};

const Keys& keys() {
  static const Keys made = [] {
    Keys k;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end_of_comm, &k.comm, nullptr);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &k.self, nullptr);
    PMPI_Comm_set_attr(MPI_COMM_SELF, k.self, nullptr);
    return k;
  }();
  return made;
}

GroupEntry open_session(MPI_Comm comm, int size) {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE) {
    return {
        nullptr,
        "this program has begun MPI without MPI_THREAD_MULTIPLE, which gradplane asks for where "
        "MPI_Init or MPI_Init_thread of C is called and MPI offers it",
        environment().require || Carrier::daemon_requires(), PassReason::kPeers};
  }
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  auto session =
      std::make_shared<GroupSession>(std::make_unique<SideComm>(comm, rank, size), rank, size);
  session->start();
  return {session, "", false, PassReason::kPeers};
}

/// What becomes of a communicator, at its first collective that could be carried.
GroupEntry open(MPI_Comm comm, int size) {
  GroupEntry entry = open_session(comm, size);
  groups().add(name_of(comm), entry);
  PMPI_Comm_set_attr(comm, keys().comm, nullptr);
  return entry;
}

}  // namespace

std::shared_ptr<GroupSession> session_for(MPI_Comm comm, Operation operation,
                                          std::optional<PassReason> reason) {
  note_use();
  GroupEntry entry = groups().find(name_of(comm));
  const bool is_new = !entry.session && entry.refusal.empty();
  int inter = 0;
  int size = 0;
  if (is_new && !reason) {
    // What is no communicator is for MPI to refuse.
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) return nullptr;
    PMPI_Comm_size(comm, &size);
    if (size == 1) reason = PassReason::kOneRank;
    if (inter != 0) reason = PassReason::kArguments;
  }
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

GroupSession::Gradient gradient_of(MPI_Comm comm, const Collective& collective) {
  const bool is_gradient = environment().mpi_sums_are_gradients && is_floating(collective.type) &&
                           collective.reduction == Reduction::kSum;
  if (!is_gradient) return {};
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  // Open MPI calls a communicator by a number, which another rank may have for another one.
  if (length == 0 || std::string_view(name).starts_with("MPI COMMUNICATOR")) return {};
  const std::uint64_t elements = collective.bytes / element_bytes(collective.type);
  auto layout = std::make_shared<BucketLayout>();
  layout->key = elements << 8 | static_cast<std::uint8_t>(collective.type);
  layout->tensors.push_back({name, 0, elements});
  return {layout, nullptr};
}

}  // namespace gradplane::shim
