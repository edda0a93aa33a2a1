// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// A simulated GPU for a libtorch without CUDA. Its memory, streams and events behave as CUDA's in
// the respects that cause errors. Each stream is a thread that works through its queue, with delays
// on purpose. Freed memory is overwritten, unless a stream was recorded as its user. So a
// collective that does not wait for a copy, or frees memory too early, has wrong results on every
// machine.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "trainer-shim/torch/version.h"

namespace simulated {
namespace {

constexpr c10::DeviceType kGpu = c10::DeviceType::CUDA;
constexpr c10::StreamId kDefaultStream = 0;
constexpr c10::StreamId kPoolStreams = 8;  // besides the default stream
constexpr auto kCopyTakes = std::chrono::milliseconds(3);
constexpr int kPoison = 0xEE;

/// The flag of an event: whether the stream has reached it.
class Flag {
 public:
  void raise() {
    const std::lock_guard lock(mutex_);
    raised_ = true;
    changed_.notify_all();
  }
  bool is_raised() {
    const std::lock_guard lock(mutex_);
    return raised_;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return raised_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool raised_ = false;
};
using FlagPtr = std::shared_ptr<Flag>;

void take(std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, time, [] { return false; });
}

class Queue {
 public:
  void add(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    if (!has_thread_) std::thread([this] { run(); }).detach();
    has_thread_ = true;
    tasks_.push_back(std::move(task));
    added_.notify_one();
  }
  /// A flag that is raised when all that is queued now is done.
  FlagPtr mark() {
    auto flag = std::make_shared<Flag>();
    add([flag] { flag->raise(); });
    return flag;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      added_.wait(lock, [this] { return !tasks_.empty(); });
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> tasks_;
  bool has_thread_ = false;
};

/// The queues are never destroyed, because their threads outlive static destruction.
std::vector<Queue>& queues() {
  static auto* all = new std::vector<Queue>(1 + kPoolStreams);
  return *all;
}
Queue& queue_of(const c10::Stream& stream) {
  return queues()[static_cast<std::size_t>(stream.id())];
}

c10::Device device() {
  return {kGpu, 0};
}
c10::Stream stream_of(c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, device(), id);
}
thread_local c10::StreamId current = kDefaultStream;
std::atomic<c10::StreamId> last_of_pool{0};
std::atomic<bool> unloaded{false};
std::atomic<std::int64_t> blocks_in_use{0};

class Memory final : public c10::Allocator {
 public:
#if GP_TORCH_AT_LEAST(2, 6)
  c10::DataPtr allocate(std::size_t bytes) override {
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
#endif
    static const int registered = std::atexit([] { unloaded = true; });
    static_cast<void>(registered);
    auto* block = new Block{std::malloc(bytes + 1), bytes};
    ++blocks_in_use;
    return {block->data, block, &Memory::free, device()};
  }
#if GP_TORCH_AT_LEAST(2, 6)
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
#endif

  static void used_by(const c10::DataPtr& memory, const c10::Stream& stream) {
    auto* block = static_cast<Block*>(memory.get_context());
    const std::lock_guard lock(block->mutex);
    block->streams.insert(stream.id());
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
    std::mutex mutex;
    std::set<c10::StreamId> streams;

    Block(void* of, std::size_t size) : data(of), bytes(size) {}
  };

  /// Frees memory in the order of the default stream, to which all memory belongs.
  static void free(void* context) {
    auto* block = static_cast<Block*>(context);
    --blocks_in_use;
    if (unloaded && !block->streams.empty()) std::terminate();  // as in CUDA's allocator
    std::vector<FlagPtr> last_uses;
    for (const c10::StreamId id : block->streams) {
      last_uses.push_back(queue_of(stream_of(id)).mark());
    }
    queue_of(stream_of(kDefaultStream)).add([block, last_uses] {
      for (const FlagPtr& flag : last_uses) flag->wait();
      std::memset(block->data, kPoison, block->bytes);
      std::free(block->data);
      delete block;
    });
  }
};
Memory memory;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kGpu; }
  c10::Device exchangeDevice(c10::Device) const override { return device(); }
  c10::Device getDevice() const override { return device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const noexcept override { return stream_of(current); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream_of(kDefaultStream); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    return stream_of(1 + last_of_pool++ % kPoolStreams);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return stream_of(std::exchange(current, stream.id()));
  }
  bool queryStream(const c10::Stream& stream) const override {
    return queue_of(stream).mark()->is_raised();
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    queue_of(stream).mark()->wait();
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = new FlagPtr;
    *static_cast<FlagPtr*>(*event) = queue_of(stream).mark();
  }
  void block(void* event, const c10::Stream& stream) const override {
    queue_of(stream).add([flag = *static_cast<FlagPtr*>(event)] { flag->wait(); });
  }
  bool queryEvent(void* event) const override {
    return (*static_cast<FlagPtr*>(event))->is_raised();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<FlagPtr*>(event);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    Memory::used_by(data, stream);
  }
};

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
                         c10::optional<at::Device>, c10::optional<bool>) {
  const auto meta = at::scalarTypeToTypeMeta(type.value_or(at::kFloat));
  std::size_t bytes = meta.itemsize();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    bytes += static_cast<std::size_t>((sizes[i] - 1) * strides[i]) * meta.itemsize();
  }
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, memory.allocate(bytes), &memory,
                       false);
  auto made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), meta);
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

at::Tensor empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> type,
                 c10::optional<at::Layout> layout, c10::optional<at::Device> on,
                 c10::optional<bool> pinned, c10::optional<at::MemoryFormat>) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return empty_strided(sizes, strides, type, layout, on, pinned);
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                      c10::optional<std::int64_t> offset) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(self.storage()), self.key_set(), self.dtype());
  made.unsafeGetTensorImpl()->set_storage_offset(offset.value_or(self.storage_offset()));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

/// A tensor on the CPU with the same memory. It does not own the memory.
at::Tensor plain(const at::Tensor& t) {
  if (t.device().is_cpu()) return t.detach();
  return at::from_blob(t.data_ptr(), t.sizes(), t.strides(), at::dtype(t.scalar_type()));
}

at::Tensor& copy_(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  queue_of(stream_of(current)).add([to = plain(to), from = plain(from)] {
    const c10::InferenceMode any_tensor;
    take(kCopyTakes);
    at::Tensor(to).copy_(from);
  });
  if (!non_blocking) queue_of(stream_of(current)).mark()->wait();
  return to;
}

at::Tensor on_gpu(const at::Tensor& t) {
  at::Tensor made = at::empty_strided(t.sizes(), t.strides(), t.options().device(device()));
  return made.copy_(t);
}

/// Stops the stream of this thread until release().
FlagPtr& gate() {
  static FlagPtr flag = std::make_shared<Flag>();
  return flag;
}
void hold() {
  gate() = std::make_shared<Flag>();
  queue_of(stream_of(current)).add([flag = gate()] { flag->wait(); });
}
void release() {
  gate()->raise();
}

/// The content of the memory now, whatever is queued.
at::Tensor peek(const at::Tensor& t) {
  return plain(t).clone();
}

/// The content of the memory when this thread's stream reaches this call.
at::Tensor read(const at::Tensor& t) {
  at::Tensor found;
  queue_of(stream_of(current)).add([&found, from = plain(t)] { found = from.clone(); });
  queue_of(stream_of(current)).mark()->wait();
  return found;
}

void fill_later(const at::Tensor& t, double value, std::int64_t milliseconds) {
  queue_of(stream_of(current)).add([to = plain(t), value, milliseconds] {
    take(std::chrono::milliseconds(milliseconds));
    at::Tensor(to).fill_(value);
  });
}

std::int64_t use_stream(std::int64_t id) {
  return std::exchange(current, id);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &as_strided);
  m.impl("copy_", &copy_);
}

TORCH_LIBRARY(simulated_gpu, m) {
  m.def("on_gpu", &on_gpu);
  m.def("peek", &peek);
  m.def("read", &read);
  m.def("fill_later", &fill_later);
  m.def("use_stream", &use_stream);
  m.def("blocks_in_use", [] { return blocks_in_use.load(); });
  m.def("hold", &hold);
  m.def("release", &release);
}

C10_REGISTER_GUARD_IMPL(CUDA, Guard);

}  // namespace simulated

namespace at {

/// libtorch finds the class by this name.
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  bool hasCUDA() const override { return true; }
  Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(kCPU); }
};
REGISTER_CUDA_HOOKS(CUDAHooks);

}  // namespace at
