// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/perf/kernel_rates.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/model/wire_type.h"
#include "dataplane/reduce/kernels.h"
#include "tests/perf/plain_loops.h"

namespace gradplane::testing {
namespace {

using reduce::Kernels;
using reduce::Variant;

enum class Operation { kSet, kAccumulate, kAdd, kFinish };
constexpr std::string_view kOperationNames[] = {"set", "accumulate", "add", "finish"};

/// The layout of a type in memory, and the kernels for it.
struct Kind {
  std::string_view name;
  std::size_t wire_size;
  std::size_t sum_size;
  Kernels Variant::*kernels;
  const Kernels* plain;
};

/// Memory that begins at a page boundary, as arenas and sums do.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : size_(bytes + kScaleBytes), bytes_(allocate(size_)) {
    std::memset(bytes_.get(), 0, size_);
  }
  std::byte* data() { return bytes_.get(); }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::align_val_t kPage{4096};
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, kPage); }
  };
  static std::byte* allocate(std::size_t bytes) { return new (kPage) std::byte[bytes]; }

  std::size_t size_;
  std::unique_ptr<std::byte[], Free> bytes_;
};

/// The memory of one operation. Values are small, so that no sum overflows after many rounds.
struct Arrays {
  Arrays(const Kind& kind, std::size_t elements)
      : count(elements),
        sums(elements * kind.sum_size),
        wire(elements * kind.wire_size),
        more(elements * kind.wire_size) {
    std::minstd_rand random(7);
    std::vector<double> values(elements);
    for (double& v : values) v = static_cast<double>(random() % 2001) / 1000 - 1;
    const Kernels& narrow = reduce::kScalar.*kind.kernels;
    for (std::size_t i = 0; i < elements; ++i) {
      const auto value = static_cast<float>(values[i]);
      const double wide = values[i];
      std::memcpy(sums.data() + i * kind.sum_size,
                  kind.sum_size == 4 ? static_cast<const void*>(&value) : &wide, kind.sum_size);
    }
    narrow.finish(wire.data(), sums.data(), elements);
    narrow.finish(more.data(), sums.data(), elements);
  }

  std::size_t count;
  Pages sums;
  Pages wire;
  Pages more;
};

void run(const Kernels& kernels, Operation operation, Arrays& a) {
  switch (operation) {
    case Operation::kSet:
      return kernels.set(a.sums.data(), a.wire.data(), a.count);
    case Operation::kAccumulate:
      return kernels.accumulate(a.sums.data(), a.wire.data(), a.count);
    case Operation::kAdd:
      return kernels.add(a.sums.data(), a.wire.data(), a.more.data(), a.count);
    case Operation::kFinish:
      return kernels.finish(a.wire.data(), a.sums.data(), a.count);
  }
}

/// The bytes that an operation reads and writes for one element.
std::size_t touched_bytes(const Kind& kind, Operation operation) {
  switch (operation) {
    case Operation::kAccumulate:
      return 2 * kind.sum_size + kind.wire_size;
    case Operation::kAdd:
      return kind.sum_size + 2 * kind.wire_size;
    case Operation::kSet:
    case Operation::kFinish:
      break;
  }
  return kind.sum_size + kind.wire_size;
}

/// CPU time of this process, on which other processes have little influence.
double seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const Kernels& kernels, Operation operation, Arrays& arrays, int repeats) {
  const double begin = seconds();
  for (int r = 0; r < repeats; ++r) run(kernels, operation, arrays);
  return (seconds() - begin) / repeats;
}

bool gives_bits_of_reference(const Kind& kind, Operation operation) {
  constexpr std::size_t kElements = 4099;
  Arrays expected(kind, kElements);
  Arrays found(kind, kElements);
  run(reduce::kScalar.*kind.kernels, operation, expected);
  run(*kind.plain, operation, found);
  const auto same = [](Pages& a, Pages& b) {
    return std::memcmp(a.data(), b.data(), a.size()) == 0;
  };
  return same(expected.sums, found.sums) && same(expected.wire, found.wire);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Variants run in turn, so that a disturbance that lasts affects all of them.
void print_row(const Kind& kind, Operation operation, std::size_t bytes) {
  constexpr int kTurns = 41;
  constexpr std::size_t kBytesOfTurn = std::size_t{8} << 20;
  const std::size_t of_element = touched_bytes(kind, operation);
  const bool reads_sums = operation == Operation::kAccumulate;
  const std::size_t memory_of_element = reads_sums ? of_element - kind.sum_size : of_element;
  Arrays arrays(kind, bytes / memory_of_element / 64 * 64);
  const auto repeats = static_cast<int>(std::max<std::size_t>(1, kBytesOfTurn / bytes));
  std::vector<double> plain;
  std::vector<std::vector<double>> over_plain(reduce::supported_variants().size());
  for (int turn = 0; turn < kTurns; ++turn) {
    plain.push_back(seconds_of(*kind.plain, operation, arrays, repeats));
    for (std::size_t v = 0; v < over_plain.size(); ++v) {
      const Kernels& kernels = reduce::supported_variants()[v]->*kind.kernels;
      over_plain[v].push_back(plain.back() / seconds_of(kernels, operation, arrays, repeats));
    }
  }
  std::printf("%-8s %-10s %5zu KiB: plain loop %6.1f GB/s", std::string(kind.name).c_str(),
              std::string(kOperationNames[static_cast<std::size_t>(operation)]).c_str(),
              bytes >> 10, static_cast<double>(arrays.count * of_element) / median(plain) * 1e-9);
  for (std::size_t v = 0; v < over_plain.size(); ++v) {
    std::printf(", %s %5.2f", std::string(reduce::supported_variants()[v]->name).c_str(),
                median(over_plain[v]));
  }
  std::printf("\n");
}

}  // namespace

bool print_kernel_rates() {
  constexpr Operation kOperations[] = {Operation::kSet, Operation::kAccumulate, Operation::kAdd,
                                       Operation::kFinish};
  const Kind kinds[] = {
      {"fp32", 4, 4, &Variant::fp32, &plain_loops_for(ElementType::kFloat32)},
      {"fp32 a+b", 4, 4, &Variant::fp32, &plain_float_loops()},
      {"fp64", 8, 8, &Variant::fp64, &plain_loops_for(ElementType::kFloat64)},
      {"fp16", 2, 4, &Variant::fp16, &plain_loops_for(ElementType::kFloat16)},
      {"bf16", 2, 4, &Variant::bf16, &plain_loops_for(ElementType::kBfloat16)},
      {"int32", 4, 4, &Variant::int32, &plain_loops_for(ElementType::kInt32)},
      {"int64", 8, 8, &Variant::int64, &plain_loops_for(ElementType::kInt64)},
      {"int8", 1, 4, &Variant::int8, &plain_int8_loops()},
  };
  bool is_fair = true;
  for (const std::size_t bytes : {std::size_t{32} << 10, std::size_t{64} << 20}) {
    for (const Kind& kind : kinds) {
      for (const Operation operation : kOperations) {
        const bool adds = operation == Operation::kAccumulate || operation == Operation::kAdd;
        // The rows of fp32 have it already.
        if (kind.plain == &plain_float_loops() && !adds) continue;
        if (!gives_bits_of_reference(kind, operation)) {
          std::printf("%s: the plain loop of operation %d gives other bits\n",
                      std::string(kind.name).c_str(), static_cast<int>(operation));
          is_fair = false;
        }
        print_row(kind, operation, bytes);
      }
    }
  }
  return is_fair;
}

}  // namespace gradplane::testing
