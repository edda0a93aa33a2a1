// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/mpi/calls.h"

#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "trainer-shim/group/counters.h"
#include "trainer-shim/mpi/communicators.h"
#include "trainer-shim/mpi/requests.h"
#include "trainer-shim/mpi/types.h"
#include "trainer-shim/mpi/world.h"

namespace gradplane::shim::replacement {
namespace {

/// The completion for which a blocking call of MPI waits.
class BlockingCall final : public Completion {
 public:
  bool may_finish_in_place() override { return true; }
  void finish(std::exception_ptr failure) override {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    over_ = true;
    ended_.notify_all();
  }

  /// Waits for the end of the collective. Throws its failure.
  void wait() {
    const std::int64_t from_ns = now_ns();
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return over_; });
    counters().waited_ns += static_cast<std::uint64_t>(now_ns() - from_ns);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::exception_ptr failure_;
};

struct Nothing {};
/// MPI's rules make the program keep its memory until the collective is over.
StagingPtr programs_memory() {
  return std::make_shared<HostMemory<Nothing>>(Nothing{});
}

std::optional<PassReason> why_passed(const void* send, const void* receive, int count,
                                     MPI_Datatype type, MPI_Op op) {
  if (!reduction_of(op)) return PassReason::kReduceOp;
  if (!element_type_of(type)) return PassReason::kElementType;
  if (count == 0) return PassReason::kEmpty;
  // MPI itself must refuse invalid arguments.
  const bool has_memory = send != nullptr && receive != nullptr && receive != MPI_IN_PLACE;
  if (count < 0 || !has_memory) return PassReason::kArguments;
  return std::nullopt;
}

Collective collective_of(void* memory, int count, MPI_Datatype type, MPI_Op op) {
  Collective collective;
  collective.data = static_cast<std::byte*>(memory);
  collective.type = *element_type_of(type);
  collective.bytes = static_cast<std::size_t>(count) * element_bytes(collective.type);
  collective.reduction = *reduction_of(op);
  return collective;
}

Collective sum_of(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op) {
  const Collective collective = collective_of(receive, count, type, op);
  if (send != MPI_IN_PLACE && send != receive) std::memcpy(receive, send, collective.bytes);
  return collective;
}

/// Runs `body`, which carries a collective. An exception becomes an error of MPI on the
/// communicator.
template <typename Body>
int guarded(MPI_Comm comm, const char* function, const Body& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gradplane: %s: %s\n", function, e.what());
    const int code = error_code(e);
    PMPI_Comm_call_errhandler(comm, code);
    return code;
  }
}

int carry(GroupSession& session, const Collective& collective,
          GroupSession::Gradient gradient = {}) {
  const auto call = std::make_shared<BlockingCall>();
  session.enqueue(call, collective, programs_memory(), std::move(gradient));
  call->wait();
  return MPI_SUCCESS;
}

}  // namespace

int init(int* argc, char*** argv) {
  int provided = MPI_THREAD_SINGLE;
  return init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

int init_thread(int* argc, char*** argv, int, int* provided) {
  const int status = PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided);
  if (status == MPI_SUCCESS) make_world();
  return status;
}

int finalize() {
  end_sessions();
  return PMPI_Finalize();
}

int allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm) {
  return guarded(comm, "MPI_Allreduce", [&] {
    const auto session =
        session_for(comm, Operation::kAllReduce, why_passed(send, receive, count, type, op));
    if (!session) return PMPI_Allreduce(send, receive, count, type, op, comm);
    const Collective sum = sum_of(send, receive, count, type, op);
    return carry(*session, sum, gradient_of(comm, sum));
  });
}

int iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm, MPI_Request* request) {
  return guarded(comm, "MPI_Iallreduce", [&] {
    const auto session =
        session_for(comm, Operation::kAllReduce, why_passed(send, receive, count, type, op));
    if (!session) return PMPI_Iallreduce(send, receive, count, type, op, comm, request);
    const auto made = std::make_shared<Request>();
    *request = made->handle();
    const Collective sum = sum_of(send, receive, count, type, op);
    session->enqueue(made, sum, programs_memory(), gradient_of(comm, sum));
    return MPI_SUCCESS;
  });
}

/// With MPI_IN_PLACE the result overwrites the first shard of the contribution. Only parts that
/// have been submitted are overwritten.
int reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm) {
  return guarded(comm, "MPI_Reduce_scatter_block", [&] {
    const auto session =
        session_for(comm, Operation::kReduceScatter, why_passed(send, receive, count, type, op));
    if (!session) return PMPI_Reduce_scatter_block(send, receive, count, type, op, comm);
    void* const given = send == MPI_IN_PLACE ? receive : const_cast<void*>(send);  // only read
    Collective collective = collective_of(given, count, type, op);
    collective.operation = Operation::kReduceScatter;
    collective.shards = static_cast<std::size_t>(session->size());
    collective.result = static_cast<std::byte*>(receive);
    return carry(*session, collective);
  });
}

#if MPI_VERSION >= 4
int allreduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm) {
  if (count > INT_MAX) return PMPI_Allreduce_c(send, receive, count, type, op, comm);
  return allreduce(send, receive, static_cast<int>(count), type, op, comm);
}

int iallreduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm, MPI_Request* request) {
  if (count > INT_MAX) return PMPI_Iallreduce_c(send, receive, count, type, op, comm, request);
  return iallreduce(send, receive, static_cast<int>(count), type, op, comm, request);
}

int reduce_scatter_block_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type,
                           MPI_Op op, MPI_Comm comm) {
  if (count > INT_MAX) return PMPI_Reduce_scatter_block_c(send, receive, count, type, op, comm);
  return reduce_scatter_block(send, receive, static_cast<int>(count), type, op, comm);
}
#endif

}  // namespace gradplane::shim::replacement
