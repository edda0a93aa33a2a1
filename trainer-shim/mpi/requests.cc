// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/mpi/requests.h"

#include <array>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <unordered_set>

namespace gradplane::shim {
namespace {

/// The requests that the program has not seen to be complete. Any thread.
class Open {
 public:
  void add(MPI_Request request) {
    const std::lock_guard lock(mutex_);
    requests_.insert(request);
  }
  void remove(MPI_Request request) {
    const std::lock_guard lock(mutex_);
    requests_.erase(request);
  }
  bool has(MPI_Request request) {
    const std::lock_guard lock(mutex_);
    return requests_.contains(request);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<MPI_Request> requests_;
};

Open& open_requests() {
  static auto* instance = new Open;  // never freed
  return *instance;
}

int code_of(const std::exception_ptr& failure) {
  if (!failure) return MPI_SUCCESS;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return error_code(e);
  } catch (...) {
    return MPI_ERR_OTHER;
  }
}

}  // namespace

int error_code(const std::exception& failure) {
  static std::mutex mutex;
  static const int code = [] {
    int own_class = MPI_ERR_OTHER;  // for codes of MPI's own classes MPICH has its own texts
    int made = MPI_ERR_OTHER;
    PMPI_Add_error_class(&own_class);
    PMPI_Add_error_code(own_class, &made);
    return made;
  }();
  const std::lock_guard lock(mutex);
  std::array<char, MPI_MAX_ERROR_STRING> cut{};
  std::snprintf(cut.data(), cut.size(), "%s", failure.what());
  PMPI_Add_error_string(code, cut.data());
  return code;
}

struct Request::Answer {
  int code = MPI_SUCCESS;
  MPI_Request request = MPI_REQUEST_NULL;

  static int query(void* state, MPI_Status* status) {
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return static_cast<Answer*>(state)->code;
  }
  static int release(void* state) {
    auto* answer = static_cast<Answer*>(state);
    open_requests().remove(answer->request);
    delete answer;
    return MPI_SUCCESS;
  }
  static int cancel(void*, int) { return MPI_SUCCESS; }
};

Request::Request() : answer_(new Answer) {
  if (PMPI_Grequest_start(Answer::query, Answer::release, Answer::cancel, answer_, &handle_) !=
      MPI_SUCCESS) {
    delete answer_;
    throw std::runtime_error("MPI_Grequest_start failed");
  }
  answer_->request = handle_;
  open_requests().add(handle_);
}

void Request::finish(std::exception_ptr failure) {
  answer_->code = code_of(failure);
  PMPI_Grequest_complete(handle_);
}

#ifdef MPICH_NUMVERSION
namespace {

/// Waits for requests that are not ours. The status of each gets its error: where one has failed,
/// MPI writes them itself.
int wait_for_others(int count, MPI_Request* requests, MPI_Status* statuses) {
  const int code = PMPI_Waitall(count, requests, statuses);
  if (code == MPI_SUCCESS && statuses != MPI_STATUSES_IGNORE)
    for (int i = 0; i < count; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
  return code;
}

}  // namespace

int wait_for_all(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (count <= 0 || requests == nullptr) return PMPI_Waitall(count, requests, statuses);
  const bool ignored = statuses == MPI_STATUSES_IGNORE;
  bool failed = false;
  for (int i = 0; i < count;) {
    int end = i;
    while (end < count && !open_requests().has(requests[end])) ++end;
    if (end > i) {
      failed |= wait_for_others(end - i, requests + i,
                                ignored ? MPI_STATUSES_IGNORE : statuses + i) != MPI_SUCCESS;
    } else {
      const int code = PMPI_Wait(&requests[i], ignored ? MPI_STATUS_IGNORE : &statuses[i]);
      if (!ignored) statuses[i].MPI_ERROR = code;
      failed |= code != MPI_SUCCESS;
      ++end;
    }
    i = end;
  }
  return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}
#endif

}  // namespace gradplane::shim
