// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/lent_memory.h"

#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include "control/daemon/huge_pages.h"
#include "control/daemon/ranks.h"
#include "tests/support/catch.h"

namespace gradplane::daemon {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugeBytes = std::size_t{2} << 20;

/// A port that reads memory late. Its queues are not used.
class LatePort final : public port::Port {
 public:
  std::size_t queue_count() const noexcept override { return 0; }
  port::PortQueue& queue(std::size_t /*index*/) noexcept override { std::abort(); }
  Status join_group(const port::Group& /*group*/) override { return Nothing{}; }
  void leave_group(const port::Group& /*group*/) override {}
  std::size_t mtu_payload_bytes() const noexcept override { return 0; }
  Ipv4 address() const noexcept override { return {}; }
  Status add_memory(std::span<const std::byte> memory) override {
    if (!refusal.empty()) return Error{refusal};
    CHECK(memory.size() % kPageBytes == 0);
    CHECK(has.insert(memory.data()).second);
    return Nothing{};
  }
  bool remove_memory(std::span<const std::byte> memory) override {
    if (reads.contains(memory.data())) return false;
    has.erase(memory.data());
    return true;
  }

  std::string refusal;
  std::set<const std::byte*> has;
  std::set<const std::byte*> reads;  // sent frames refer to these
};

}  // namespace

TEST_CASE("memory that a port still reads is kept until it lets go") {
  LatePort port;
  LentMemory lent(port);
  std::vector<std::byte> first(100);
  std::vector<std::byte> second(2 * kPageBytes);
  lent.add(first);
  lent.add(second);
  REQUIRE(port.has.size() == 2);
  std::vector<int> let_go;
  lent.remove(first, [&] { let_go.push_back(1); });
  CHECK(let_go == std::vector{1});
  port.reads = {second.data()};
  lent.remove(second, [&] { let_go.push_back(2); });
  lent.retry();
  CHECK(let_go == std::vector{1});
  CHECK(lent.kept_count() == 1);
  port.reads.clear();
  lent.retry();
  CHECK(let_go == std::vector{1, 2});
  CHECK(lent.kept_count() == 0);
  CHECK(port.has.empty());
}

TEST_CASE("a port that is closed reads nothing, so all memory goes") {
  LatePort port;
  int let_go = 0;
  {
    LentMemory lent(port);
    std::vector<std::byte> memory(kPageBytes);
    lent.add(memory);
    port.reads = {memory.data()};
    lent.remove(memory, [&] { ++let_go; });
    CHECK(let_go == 0);
  }
  CHECK(let_go == 1);
}

TEST_CASE("a port that cannot have memory is said once") {
  LatePort port;
  port.refusal = "there is no room";
  LentMemory lent(port);
  std::vector<std::byte> memory(kPageBytes);
  CHECK(!lent.take_warning());
  lent.add(memory);
  CHECK(lent.take_warning() ==
        "port: payloads are copied into packet buffers, because there is no room (said once; it "
        "only costs time)");
  lent.add(memory);
  CHECK(!lent.take_warning());
}

TEST_CASE("memory that a port could not have is offered again when it has let go of some") {
  LatePort port;
  LentMemory lent(port);
  std::vector<std::byte> first(kPageBytes);
  std::vector<std::byte> second(kPageBytes);
  std::vector<std::byte> third(kPageBytes);
  lent.add(first);
  port.refusal = "there is no room";
  lent.add(second);
  lent.add(third);
  port.refusal.clear();
  lent.retry();
  CHECK(port.has == std::set<const std::byte*>{first.data()});  // it has let go of nothing
  lent.remove(second, [] {});
  lent.retry();
  CHECK(port.has == std::set<const std::byte*>{first.data()});  // it never had that
  lent.remove(first, [] {});
  lent.retry();
  CHECK(port.has == std::set<const std::byte*>{third.data()});
}

TEST_CASE("large sums are lent, and unmapped when the port has let go of them") {
  LatePort port;
  auto lent = std::make_shared<LentMemory>(port);
  HugePages pages;
  void* const before = pages.allocate(kHugeBytes);
  pages.lend_by(lent);
  void* const small = pages.allocate(100);
  CHECK(port.has.empty());
  void* const large = pages.allocate(kHugeBytes + 1);
  CHECK(port.has == std::set{static_cast<const std::byte*>(large)});
  port.reads = port.has;
  pages.deallocate(large, kHugeBytes + 1);
  static_cast<volatile char*>(large)[kHugeBytes] = 1;  // still mapped
  CHECK(lent->kept_count() == 1);
  port.reads.clear();
  lent->retry();
  CHECK(port.has.empty());
  void* const last = pages.allocate(kHugeBytes);
  pages.deallocate(before, kHugeBytes);
  lent.reset();
  pages.deallocate(last, kHugeBytes);
  pages.deallocate(small, 100);
}

TEST_CASE("the arena of a rank is lent, and kept while the port reads it") {
  LatePort port;
  auto lent = std::make_shared<LentMemory>(port);
  auto channel = make_channel(512, 1, lent);
  REQUIRE(channel.ok());
  const std::byte* const at = channel.value().channel->channel.memory().data();
  CHECK(port.has == std::set{at});
  port.reads = port.has;
  channel.value().channel.reset();
  CHECK(lent->kept_count() == 1);
  CHECK(std::to_integer<int>(at[0]) != 0);  // still mapped
  port.reads.clear();
  lent->retry();
  CHECK(lent->kept_count() == 0);
  CHECK(port.has.empty());
}

}  // namespace gradplane::daemon
