// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/device_stream.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
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

/// Pauses between two looks at a device. A small copy arrives before the first pause ends. While a
/// program computes for longer, a look after each longest pause costs a few per cent of a core.
constexpr auto kFirstPause = std::chrono::microseconds(10);
constexpr auto kLongestPause = std::chrono::microseconds(100);
constexpr unsigned long kTimerSlackNs = 1000;

std::chrono::microseconds longer(std::chrono::microseconds pause) {
  return std::min<std::chrono::microseconds>(2 * pause, kLongestPause);
}

/// The streams of each device for copies to it.
class OutStreams {
 public:
  c10::Stream next(c10::Device device) {
    const std::lock_guard lock(mutex_);
    Streams& own = of(device);
    return own.streams[own.used++ % own.streams.size()];
  }
  bool has(const c10::Stream& stream) {
    const std::lock_guard lock(mutex_);
    const auto& own = of(stream.device()).streams;
    return std::find(own.begin(), own.end(), stream) != own.end();
  }

 private:
  static constexpr int kStreams = 2;  // a device copies in one direction at a time
  struct Streams {
    std::vector<c10::Stream> streams;
    std::size_t used = 0;
  };

  Streams& of(c10::Device device) {
    Streams& own = by_index_[device.index()];
    while (own.streams.size() < kStreams) {
      own.streams.push_back(guard_of(device).getStreamFromGlobalPool(device, true));
    }
    return own;
  }

  std::mutex mutex_;
  std::map<c10::DeviceIndex, Streams> by_index_;
};

OutStreams& out_streams() {
  static auto* all = new OutStreams;  // outlives static destruction
  return *all;
}

c10::Stream in_stream(c10::Device device) {
  c10::Stream stream = guard_of(device).getStreamFromGlobalPool(device, /*isHighPriority=*/true);
  while (out_streams().has(stream)) {
    stream = guard_of(device).getStreamFromGlobalPool(device, true);
  }
  return stream;
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
  bool start_thread() {
    try {
      std::thread([this] { run(); }).detach();
      has_thread_ = true;
    } catch (const std::system_error&) {
      // is_in() then waits for the copy itself.
    }
    return has_thread_;
  }

  static bool has_come(const DeviceStream& stream) {
    try {
      stream.enter_device();
      return stream.in_.query();
    } catch (...) {
      return true;  // is_in() throws it to whom it concerns
    }
  }

  void run() {
    name_thread("gp-device");
    prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
    std::vector<DeviceStreamPtr> watched;
    auto pause = kFirstPause;
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto has_more = [this] { return !added_.empty(); };
      if (watched.empty()) {
        something_added_.wait(lock, has_more);
      } else {
        something_added_.wait_for(lock, pause, has_more);
      }
      pause = added_.empty() ? longer(pause) : kFirstPause;
      watched.insert(watched.end(), std::make_move_iterator(added_.begin()),
                     std::make_move_iterator(added_.end()));
      added_.clear();
      lock.unlock();
      std::erase_if(watched, [](const DeviceStreamPtr& stream) {
        if (!has_come(*stream)) return false;
        stream->is_watched_ = false;
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
      in_stream_(in_stream(device)),
      out_stream_(out_streams().next(device)),
      in_(device.type()),
      out_(device.type()) {
  c10::Event called(device.type());
  called.record(guard_of(device).getStream(device));
  called.block(in_stream_);
  in_.record(in_stream_);
}

void DeviceStream::enter_device() const noexcept {
  guard_of(device_).uncheckedSetDevice(device_);
}

/// Gloo sums the run of elements from the first one on, whatever the strides, and so does
/// gradplane. The gaps of a view go over the network, too, so they are zeros.
at::Tensor DeviceStream::memory_like(const at::Tensor& t) {
  const at::TensorOptions options = at::dtype(t.scalar_type()).pinned_memory(true);
  if (t.is_non_overlapping_and_dense()) return at::empty_strided(t.sizes(), t.strides(), options);
  return at::empty_strided(t.sizes(), t.strides(), options).zero_();
}

at::Tensor DeviceStream::copy_in(const at::Tensor& given) {
  at::Tensor host = memory_like(given);
  keep(given);
  bring_in([&] { host.copy_(given, /*non_blocking=*/true); });
  return host;
}

void DeviceStream::bring_in(const std::function<void()>& copies) {
  const at::NoGradGuard copies_alone;
  const c10::StreamGuard on_stream(in_stream_);
  copies();
  in_.record(in_stream_);
}

void DeviceStream::keep(const at::Tensor& t) {
  const auto& data = t.storage().data_ptr();
  guard_of(device_).recordDataPtrOnStream(data, in_stream_);
  guard_of(device_).recordDataPtrOnStream(data, out_stream_);
}

bool DeviceStream::is_in() {
  enter_device();
  if (in_.query()) return true;
  if (is_watched_.exchange(true)) return false;
  if (arrivals->watch(shared_from_this())) return false;
  in_stream_.synchronize();
  return true;
}

void DeviceStream::bring_out(const std::function<void()>& copies) {
  enter_device();
  const c10::StreamGuard on_stream(out_stream_);
  copies();
  out_.record(out_stream_);
}

void DeviceStream::hold_current_stream() {
  const c10::DeviceGuard on_device(device_);
  out_.block(guard_of(device_).getStream(device_));
}

void DeviceStream::wait_until_out() {
  enter_device();
  std::mutex mutex;
  std::condition_variable nobody;
  std::unique_lock lock(mutex);
  for (auto pause = kFirstPause; !out_.query(); pause = longer(pause)) {
    nobody.wait_for(lock, pause, [] { return false; });
  }
}

}  // namespace gradplane::shim
