// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/mpi/side_comm.h"

#include <sys/random.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include "trainer-shim/group/threads.h"
#include "trainer-shim/mpi/types.h"
#include "trainer-shim/mpi/world.h"

namespace gradplane::shim {
namespace {

/// The timeout of operations. It is long, because MPI itself waits for ever: a rank may come to a
/// collective long after the others.
constexpr std::chrono::hours kTimeout{24};
/// How long the end of a group waits for a call of MPI that is about to return.
constexpr std::chrono::seconds kAlmostOver{1};

void check(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  PMPI_Error_string(status, text, &length);
  throw std::runtime_error(std::string(what) + ": " + text);
}

int count_of(std::size_t bytes, ElementType type) {
  return static_cast<int>(bytes / element_bytes(type));
}

/// A call of MPI that the thread of a SideComm makes.
struct Task {
  std::function<void()> call;
  std::mutex mutex{};
  std::condition_variable ended{};
  bool over = false;
  std::exception_ptr failure{};
  std::function<void()> then{};

  void run() {
    std::exception_ptr thrown;
    try {
      call();
    } catch (...) {
      thrown = std::current_exception();
    }
    std::function<void()> callback;
    {
      const std::lock_guard lock(mutex);
      call = nullptr;
      failure = thrown;
      over = true;
      callback = std::exchange(then, nullptr);
      ended.notify_all();
    }
    if (callback) callback();
  }
};

class TaskWork final : public OriginalWork {
 public:
  explicit TaskWork(std::shared_ptr<Task> task) : task_(std::move(task)) {}

  bool is_over() const override {
    const std::lock_guard lock(task_->mutex);
    return task_->over;
  }
  void wait() override {
    std::unique_lock lock(task_->mutex);
    task_->ended.wait(lock, [this] { return task_->over; });
    if (task_->failure) std::rethrow_exception(task_->failure);
  }
  void when_over(std::function<void()> then) override {
    {
      const std::lock_guard lock(task_->mutex);
      if (!task_->over) {
        task_->then = std::move(then);
        return;
      }
    }
    then();
  }

 private:
  const std::shared_ptr<Task> task_;
};

}  // namespace

/// The values that the lowest rank sends to the others before there is a communicator.
struct Agreed {
  JobKey key{};  // of the group's jobs
  std::int32_t tag = 0;
};
static_assert(sizeof(Agreed) == sizeof(JobKey) + sizeof(std::int32_t), "plain bytes");

struct SideComm::Comm {
  MPI_Comm handle = MPI_COMM_NULL;
  MPI_Group ranks = MPI_GROUP_NULL;
  Agreed agreed;
  MPI_Request agreeing = MPI_REQUEST_NULL;
};

/// The thread and its queue of tasks. Any thread may call its functions, except for run().
class SideComm::Worker {
 public:
  static std::shared_ptr<Worker> start() {
    auto worker = std::make_shared<Worker>();
    worker->thread_ = std::thread([worker] { worker->run(); });
    return worker;
  }

  OriginalWorkPtr add(std::function<void()> call) {
    auto task = std::make_shared<Task>(std::move(call));
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(task);
    }
    changed_.notify_one();
    return std::make_unique<TaskWork>(std::move(task));
  }

  /// Stops the thread. False if it is in a call that does not end; then it is left behind.
  bool stop() {
    bool busy = false;
    {
      std::unique_lock lock(mutex_);
      stopping_ = true;
      idle_.wait_for(lock, kAlmostOver, [this] { return !busy_ && tasks_.empty(); });
      busy = busy_ || !tasks_.empty();
    }
    changed_.notify_one();
    if (busy) {
      thread_.detach();
    } else {
      thread_.join();
    }
    return !busy;
  }

 private:
  void run() {
    name_thread("gp-mpi");
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      task->run();
      lock.lock();
      busy_ = false;
      idle_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::deque<std::shared_ptr<Task>> tasks_;
  bool busy_ = false;  // the thread runs a task, which is no longer in tasks_
  bool stopping_ = false;
  std::thread thread_;
};

namespace {

/// The values that the lowest rank of a communicator proposes. On the other ranks they are zeros,
/// so that a bitwise or gives all ranks the proposal.
Agreed proposal(int rank) {
  static std::atomic<int> sessions{0};
  Agreed agreed;
  if (rank != 0) return agreed;
  if (getrandom(agreed.key.data(), agreed.key.size(), 0) !=
      static_cast<ssize_t>(agreed.key.size())) {
    throw std::runtime_error("the kernel gave no random bytes for the job key");
  }
  int world_rank = 0;
  PMPI_Comm_rank(world().comm, &world_rank);
  agreed.tag = tag_of_session(world_rank, sessions++);
  return agreed;
}

/// The ranks of a communicator as a group of ranks of world(). MPICH 4.0.2 can make a communicator
/// only of a group of the parent communicator.
MPI_Group ranks_in_world(MPI_Comm comm, int size) {
  std::vector<int> own(static_cast<std::size_t>(size));
  std::vector<int> in_world(own.size());
  std::iota(own.begin(), own.end(), 0);
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group theirs = MPI_GROUP_NULL;
  MPI_Group found = MPI_GROUP_NULL;
  check(PMPI_Comm_group(world().comm, &all), "MPI_Comm_group");
  check(PMPI_Comm_group(comm, &theirs), "MPI_Comm_group");
  check(PMPI_Group_translate_ranks(theirs, size, own.data(), all, in_world.data()),
        "MPI_Group_translate_ranks");
  check(PMPI_Group_incl(all, size, in_world.data(), &found), "MPI_Group_incl");
  PMPI_Group_free(&theirs);
  PMPI_Group_free(&all);
  return found;
}

}  // namespace

/// The ranks agree by a collective on `of`. When it has ended, all ranks have come to their first
/// collective there. Only then they make the second communicator, so no rank waits in that call for
/// something that the program does later.
SideComm::SideComm(MPI_Comm of, int rank, int size)
    : rank_(rank), size_(size), comm_(std::make_shared<Comm>()), worker_(Worker::start()) {
  comm_->agreed = proposal(rank);
  comm_->ranks = ranks_in_world(of, size);
  check(PMPI_Iallreduce(MPI_IN_PLACE, &comm_->agreed, sizeof(Agreed), MPI_BYTE, MPI_BOR, of,
                        &comm_->agreeing),
        "MPI_Iallreduce");
  made_ = worker_->add([comm = comm_] {
    check(PMPI_Wait(&comm->agreeing, MPI_STATUS_IGNORE), "MPI_Wait");
    check(PMPI_Comm_create_group(world().comm, comm->ranks, comm->agreed.tag, &comm->handle),
          "MPI_Comm_create_group");
    PMPI_Group_free(&comm->ranks);
    check(PMPI_Comm_set_errhandler(comm->handle, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  });
}

SideComm::~SideComm() {
  if (worker_->stop() && comm_->handle != MPI_COMM_NULL) PMPI_Comm_free(&comm_->handle);
}

/// True for a rank that exits without MPI_Finalize: it cannot help other ranks any more, and the
/// launcher ends those that wait for it.
bool SideComm::closing_ends_waits() const {
  return is_exiting();
}

std::chrono::milliseconds SideComm::timeout() const {
  return kTimeout;
}

JobKey SideComm::key() {
  wait_for(*made_, [this](std::int64_t seconds) {
    std::fprintf(stderr,
                 "gradplane: rank %d of %d has waited %lld s for the other ranks of a communicator "
                 "to call their first collective on it\n",
                 rank_, size_, static_cast<long long>(seconds));
  });
  return comm_->agreed.key;
}

OriginalWorkPtr SideComm::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  return worker_->add([comm = comm_, mine, all] {
    const int bytes = static_cast<int>(mine.size());
    check(PMPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, comm->handle),
          "MPI_Allgather");
  });
}

OriginalWorkPtr SideComm::broadcast(std::span<std::byte> bytes, int root) {
  return worker_->add([comm = comm_, bytes, root] {
    check(PMPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, root, comm->handle),
          "MPI_Bcast");
  });
}

OriginalWorkPtr SideComm::start(const Collective& collective, std::size_t offset_bytes,
                                std::size_t bytes, const StagingPtr& memory) {
  const MPI_Datatype type = datatype_of(collective.type);
  const MPI_Op op = op_of(collective.reduction);
  const int count = count_of(bytes, collective.type);
  std::byte* const data = collective.data + offset_bytes;
  if (collective.operation == Operation::kAllReduce) {
    return worker_->add([comm = comm_, data, count, type, op, memory] {
      check(PMPI_Allreduce(MPI_IN_PLACE, data, count, type, op, comm->handle), "MPI_Allreduce");
    });
  }
  if (collective.operation != Operation::kReduceScatter) {
    throw std::logic_error("gradplane: this collective of MPI is not carried");
  }
  // The parts of all shards, one after the other.
  auto given = std::make_shared<std::vector<std::byte>>(collective.shards * bytes);
  for (std::size_t shard = 0; shard < collective.shards; ++shard) {
    std::memcpy(given->data() + shard * bytes, data + shard * collective.bytes, bytes);
  }
  std::byte* const result = collective.result + offset_bytes;
  return worker_->add([comm = comm_, given, result, count, type, op, memory] {
    check(PMPI_Reduce_scatter_block(given->data(), result, count, type, op, comm->handle),
          "MPI_Reduce_scatter_block");
  });
}

}  // namespace gradplane::shim
