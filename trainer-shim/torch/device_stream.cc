// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/device_stream.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "trainer-shim/group/left_behind.h"
#include "trainer-shim/group/threads.h"

namespace gradplane::shim {
namespace {

c10::impl::VirtualGuardImpl guard_of(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

}  // namespace

/// Watches copies that were not in when the progress thread looked. libtorch can tell whether an
/// event has come, and can wait for one with a busy processor, but does not call anybody.
class Arrivals {
 public:
  /// False where the process may have no more threads.
  bool watch(DeviceStreamPtr stream) {
    {
      const std::lock_guard lock(mutex_);
      if (!has_thread_ && !start_thread()) return false;
      added_.push_back(std::move(stream));
    }
    something_added_.notify_one();
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// While a program computes its next gradients, one look in so long costs a few per cent of a
  /// core; a small copy is in before the first of them.
  static constexpr auto kFirstPause = std::chrono::microseconds(10);
  static constexpr auto kLongestPause = std::chrono::microseconds(100);
  static constexpr unsigned long kTimerSlackNs = 1000;

  bool start_thread() {
    try {
      std::thread([this] { run(); }).detach();
      has_thread_ = true;
    } catch (const std::system_error&) {
      // Then whoever wants to know waits.
    }
    return has_thread_;
  }

  static bool has_come(const DeviceStream& stream) {
    try {
      return stream.in_.query();
    } catch (...) {
      return true;  // is_in() throws it to whom it concerns
    }
  }

  void run() {
    name_thread("gp-device");
    prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
    std::vector<DeviceStreamPtr> watched;
    Clock::duration pause = kFirstPause;
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto has_more = [this] { return !added_.empty(); };
      if (watched.empty()) {
        something_added_.wait(lock, has_more);
      } else {
        something_added_.wait_for(lock, pause, has_more);
      }
      pause = added_.empty() ? std::min<Clock::duration>(2 * pause, kLongestPause) : kFirstPause;
      watched.insert(watched.end(), std::make_move_iterator(added_.begin()),
                     std::make_move_iterator(added_.end()));
      added_.clear();
      lock.unlock();
      std::erase_if(watched, [](const DeviceStreamPtr& stream) {
        if (!has_come(*stream)) return false;
        stream->wake_();
        return true;
      });
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable something_added_;
  std::vector<DeviceStreamPtr> added_;
  bool has_thread_ = false;
};

namespace {

Arrivals* arrivals = new Arrivals;  // its thread outlives static destruction

}  // namespace

void forget_arrivals_after_fork() {
  leave_behind(std::exchange(arrivals, new Arrivals));
}

DeviceStreamPtr DeviceStream::beside(const at::Tensor& t) {
  return t.device().is_cpu() ? nullptr : std::make_shared<DeviceStream>(t.device());
}

DeviceStream::DeviceStream(c10::Device device)
    : device_(device),
      stream_(guard_of(device).getStreamFromGlobalPool(device, /*isHighPriority=*/true)),
      in_(device.type()),
      out_(device.type()) {
  c10::Event called(device.type());
  called.record(guard_of(device).getStream(device));
  called.block(stream_);
}

at::Tensor DeviceStream::memory_like(const at::Tensor& t) {
  return at::empty_like(t, t.options().device(at::kCPU).pinned_memory(true));
}

at::Tensor DeviceStream::copy_in(const at::Tensor& given) {
  at::Tensor host = memory_like(given);
  keep(given);
  bring_in([&] { host.copy_(given, /*non_blocking=*/true); });
  return host;
}

void DeviceStream::bring_in(const std::function<void()>& copies) {
  const at::NoGradGuard copies_alone;
  const c10::StreamGuard on_stream(stream_);
  copies();
  in_.record(stream_);
}

void DeviceStream::keep(const at::Tensor& t) {
  guard_of(device_).recordDataPtrOnStream(t.storage().data_ptr(), stream_);
}

bool DeviceStream::is_in() {
  if (in_.query()) return true;
  if (!is_watched_) is_watched_ = arrivals->watch(shared_from_this());
  if (!is_watched_) stream_.synchronize();
  return !is_watched_;
}

void DeviceStream::bring_out(const std::function<void()>& copies) {
  const at::NoGradGuard copies_alone;
  const c10::StreamGuard on_stream(stream_);
  copies();
  out_.record(stream_);
}

void DeviceStream::hold_current_stream() {
  out_.block(guard_of(device_).getStream(device_));
}

}  // namespace gradplane::shim
