// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <functional>
#include <memory>

namespace gradplane::shim {

class DeviceStream;
/// Null for a collective of host tensors.
using DeviceStreamPtr = std::shared_ptr<DeviceStream>;

/// The copies of one collective between tensors of a device and host memory. They run beside the
/// program's own work on the device: what the program has queued before it calls the collective
/// comes before them, and what it queues after wait() comes after them, as with Gloo's own works
/// for devices. It knows streams and events as libtorch does for any kind of device, so it needs
/// nothing of CUDA.
///
/// Copies into host memory wait for the program, so each collective has a stream for them.
/// libtorch has but some dozen streams, and gives each to many. Copies to the device wait for
/// nobody, and must not wait behind a later collective's work; they have streams that no other
/// collective gets.
class DeviceStream : public std::enable_shared_from_this<DeviceStream> {
 public:
  /// In the thread that calls the collective. Null if `t` is in host memory.
  static DeviceStreamPtr beside(const at::Tensor& t);

  explicit DeviceStream(c10::Device device);

  /// Queues a copy of `given` into host memory that the device reads and writes by itself, with
  /// the strides of `given`. The calling thread.
  at::Tensor copy_in(const at::Tensor& given);

  /// Host memory for something like `t`, of which nothing is copied. The calling thread.
  static at::Tensor memory_like(const at::Tensor& t);

  /// Queues copies into host memory by `copies`. The calling thread.
  void bring_in(const std::function<void()>& copies);

  /// The program may free `t` while the copies run. The calling thread.
  void keep(const at::Tensor& t);

  /// `wake` is called, in any thread, when is_in() has answered no and may answer yes.
  void on_arrival(std::function<void()> wake) { wake_ = std::move(wake); }

  /// Whether the program's earlier work on the device has ended, and all that was queued by
  /// copy_in() and bring_in() has arrived. Waits only where the process may have no more threads.
  /// Throws what the device reports. The progress thread.
  bool is_in();

  /// Queues copies of results to the device. Once, after is_in(), in a thread of the shim.
  void bring_out(const std::function<void()>& copies);

  /// What the calling thread queues on the device from here on comes after bring_out().
  void hold_current_stream();

  /// Waits until bring_out() has ended on the device, with an idle processor. A thread of the shim.
  void wait_until_out();

 private:
  friend class Arrivals;

  /// A thread of the shim has no device of its own. It must not open a context on the first device,
  /// which would take half a gigabyte there.
  void enter_device() const noexcept;

  const c10::Device device_;
  c10::Stream in_stream_;
  c10::Stream out_stream_;
  c10::Event in_;
  c10::Event out_;
  std::function<void()> wake_;
  std::atomic<bool> is_watched_{false};
};

/// In a child of fork(), which has no thread that watches.
void forget_arrivals_after_fork();

}  // namespace gradplane::shim
