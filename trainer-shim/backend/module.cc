// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// A backend of torch.distributed with the name "gradplane", for programs without the preloaded
// shim. Its groups are groups of Gloo whose collectives gradplane carries, as the preloaded shim
// does for all groups of Gloo.
#include <dlfcn.h>
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/groups.h"
#include "trainer-shim/group/process.h"
#include "trainer-shim/torch/replacements.h"

namespace gradplane::shim {
namespace {

constexpr const char* kInterfaces = "GLOO_SOCKET_IFNAME";
/// A function that the preloaded shim replaces.
constexpr const char* kHookedSymbol = "_ZN4c10d16ProcessGroupGlooD1Ev";
constexpr const char* kPreload = "libgradplane_preload";

StorePtr announced(const StorePtr& store, int rank, int size) {
  if (size > 1) announce_group(*store, rank);
  return store;
}

class NamedGroup final : public Group {
 public:
  NamedGroup(const StorePtr& store, int rank, int size, const GroupOptions& options)
      : Group(announced(store, rank, size), rank, size, options) {
    if (size > 1) open_group(this, store, rank, size, options);
  }
  ~NamedGroup() override { groups().remove(this); }

  const std::string getBackendName() const override { return "gradplane"; }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return replacement::allreduce(this, tensors, options);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    return replacement::allreduce_coalesced(this, tensors, options);
  }
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return replacement::broadcast(this, tensors, options);
  }
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    return replacement::allgather(this, outputs, inputs, options);
  }
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override {
    return replacement::allgather_coalesced(this, outputs, inputs, options);
  }
#if GP_TORCH_AT_LEAST(2, 6)
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return replacement::reduce_scatter(this, outputs, inputs, options);
  }
#endif
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return replacement::barrier(this, options);
  }

  void monitoredBarrier(const c10d::BarrierOptions& options, bool all_ranks) override {
    replacement::monitored_barrier(this, options, all_ranks);
  }

  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    replacement::count_pass(*this, OtherOperation::kReduce);
    return Group::reduce(tensors, options);
  }
  WorkPtr gather(TensorLists& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    replacement::count_pass(*this, OtherOperation::kGather);
    return Group::gather(outputs, inputs, options);
  }
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
                  const c10d::ScatterOptions& options) override {
    replacement::count_pass(*this, OtherOperation::kScatter);
    return Group::scatter(outputs, inputs, options);
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& to,
                        std::vector<std::int64_t>& from,
                        const c10d::AllToAllOptions& options) override {
    replacement::count_pass(*this, OtherOperation::kAllToAll);
    return Group::alltoall_base(output, input, to, from, options);
  }
  WorkPtr send(Tensors& tensors, int to, int tag) override {
    replacement::count_pass(*this, OtherOperation::kSend);
    return Group::send(tensors, to, tag);
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    replacement::count_pass(*this, OtherOperation::kReceive);
    return Group::recv(tensors, from, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    replacement::count_pass(*this, OtherOperation::kReceive);
    return Group::recvAnysource(tensors, tag);
  }
};

/// Gloo's own collectives, although NamedGroup overrides them. Gloo constructs the side groups
/// itself.
Originals functions_of_gloo() {
  Originals o{};
  o.allreduce = [](Group* g, Tensors& t, const c10d::AllreduceOptions& options) {
    return g->Group::allreduce(t, options);
  };
  o.allreduce_coalesced = [](Group* g, Tensors& t, const c10d::AllreduceCoalescedOptions& options) {
    return g->Group::allreduce_coalesced(t, options);
  };
  o.broadcast = [](Group* g, Tensors& t, const c10d::BroadcastOptions& options) {
    return g->Group::broadcast(t, options);
  };
  o.allgather = [](Group* g, TensorLists& outputs, Tensors& inputs,
                   const c10d::AllgatherOptions& options) {
    return g->Group::allgather(outputs, inputs, options);
  };
  o.allgather_coalesced = [](Group* g, TensorLists& outputs, Tensors& inputs,
                             const c10d::AllgatherOptions& options) {
    return g->Group::allgather_coalesced(outputs, inputs, options);
  };
#if GP_TORCH_AT_LEAST(2, 6)
  o.reduce_scatter = [](Group* g, Tensors& outputs, Tensors& inputs,
                        const c10d::ReduceScatterOptions& options) {
    return g->Group::reduce_scatter_tensor_coalesced(outputs, inputs, options);
  };
#endif
  o.barrier = [](Group* g, const c10d::BarrierOptions& options) {
    return g->Group::barrier(options);
  };
  o.monitored_barrier = [](Group* g, const c10d::BarrierOptions& options, bool all_ranks) {
    g->Group::monitoredBarrier(options, all_ranks);
  };
  return o;
}

/// Whether the shim is preloaded. It then carries all groups of Gloo, and knows DDP's gradients.
bool is_preloaded() {
  Dl_info info{};
  void* const symbol = dlsym(RTLD_DEFAULT, kHookedSymbol);
  return symbol != nullptr && dladdr(symbol, &info) != 0 &&
         std::strstr(info.dli_fname, kPreload) != nullptr;
}

bool is_disabled() {
  const char* value = std::getenv("GRADPLANE_DISABLE");
  return value != nullptr && *value != 0 && std::strcmp(value, "0") != 0;
}

/// Options with the devices that PyTorch itself gives to a group of Gloo.
GroupOptions options_with(std::chrono::milliseconds timeout) {
  GroupOptions options = Group::Options::create(timeout);
  const char* const chosen = std::getenv(kInterfaces);
  std::string names = chosen != nullptr ? chosen : "";
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    options->devices.push_back(Group::createDeviceForInterface(names.substr(0, end)));
    names.erase(0, std::min(end + 1, names.size()));
  }
  if (options->devices.empty()) options->devices.push_back(Group::createDefaultDevice());
  options->threads = static_cast<int>(2 * options->devices.size());
  return options;
}

#if GP_TORCH_AT_LEAST(2, 6)
using AnyGroup = c10d::Backend;
#else
using AnyGroup = c10d::ProcessGroup;
#endif

/// Makes a group of this backend. torch.distributed calls it on every rank of the group.
c10::intrusive_ptr<AnyGroup> create_group(const StorePtr& store, int rank, int size,
                                          std::chrono::milliseconds timeout) {
  const GroupOptions options = options_with(timeout);
  if (is_preloaded() || is_disabled())
    return c10::make_intrusive<Group>(store, rank, size, options);
  static const bool has_begun = [] {
    keep_originals(functions_of_gloo());
    begin_process(Reports::kAlways, forget_torch_after_fork);
    warn_of_strange_variables();
    return true;
  }();
  static_cast<void>(has_begun);
  return c10::make_intrusive<NamedGroup>(store, rank, size, options);
}

}  // namespace
}  // namespace gradplane::shim

PYBIND11_MODULE(GP_MODULE_NAME, module) {
  module.doc() = "gradplane's groups for one version of PyTorch; use gradplane.torch.";
  module.def("create_group", &gradplane::shim::create_group, pybind11::arg("store"),
             pybind11::arg("rank"), pybind11::arg("size"), pybind11::arg("timeout"),
             pybind11::call_guard<pybind11::gil_scoped_release>());
}
