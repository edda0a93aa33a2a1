// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/ipc/channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/ipc/channel_view.h"
#include "dataplane/ipc/ring.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::ipc;

namespace {

constexpr ChannelSizes kSmall{.slot_count = 4, .slot_bytes = 512};
constexpr std::size_t kArenaOffset = arena_offset(1);

ChannelIdentity honest_identity() {
  return {kChannelMagic,
          kAbiVersion,
          kSmall.slot_count,
          kSmall.slot_bytes,
          kArenaOffset,
          kSmall.total_bytes(),
          1,
          0};
}

/// A memfd as a daemon could pass it, with any content, size and seals.
UniqueFd make_memory(const ChannelIdentity& identity, std::uint64_t size_bytes, int seals) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(fd);
  REQUIRE(::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) == 0);
  if (size_bytes >= sizeof(identity)) {
    REQUIRE(::pwrite(fd.get(), &identity, sizeof(identity), 0) == sizeof(identity));
  }
  REQUIRE(::fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

TEST_CASE("both ends see the same slots, rings and flags") {
  auto daemon = Channel::create(kSmall);
  REQUIRE(daemon.ok());
  const auto memory = daemon.value().open_for_trainer();
  REQUIRE(memory.ok());
  auto trainer = ChannelView::map(memory.value().get());
  REQUIRE(trainer.ok());
  CHECK(trainer.value().sizes() == kSmall);

  for (std::uint32_t round = 0; round < 4; ++round) {
    const auto written = trainer.value().slot(round);
    REQUIRE(written.size() == kSmall.slot_bytes);
    std::fill(written.begin(), written.end(), static_cast<std::byte>(round + 1));
  }
  for (std::uint32_t round = 0; round < 4; ++round) {
    const auto read = daemon.value().slot(round + 8);
    CHECK(std::all_of(read.begin(), read.end(),
                      [round](std::byte b) { return b == static_cast<std::byte>(round + 1); }));
  }

  RingProducer<Submission> submit(trainer.value().submissions());
  RingConsumer<Submission> submissions(daemon.value().submissions());
  Submission taken{};
  REQUIRE(submit.push({.round = 3, .elements = 5}));
  REQUIRE(submissions.pop(taken));
  CHECK(taken.elements == 5);

  CHECK(trainer.value().daemon_beat() == 0);
  daemon.value().beat();
  daemon.value().beat();
  CHECK(trainer.value().daemon_beat() == 2);
  trainer.value().trainer_sleeps().store(1);
  CHECK(daemon.value().trainer_sleeps().load() == 1);
}

TEST_CASE("the slots stay in turn when the round number wraps") {
  CHECK(kSmall.slot_offset(0xffffffffu) == kArenaOffset + 3 * kSmall.slot_bytes);
  CHECK(kSmall.slot_offset(0) == kArenaOffset);
}

TEST_CASE("a channel of impossible sizes is refused with a reason") {
  for (const ChannelSizes sizes :
       {ChannelSizes{0, 512}, ChannelSizes{1, 512}, ChannelSizes{3, 512}, ChannelSizes{32, 512},
        ChannelSizes{4, 0}, ChannelSizes{4, 100}, ChannelSizes{4, kMaxRoundBytes + 64}}) {
    const auto channel = Channel::create(sizes);
    REQUIRE_FALSE(channel.ok());
    CHECK(channel.error().message.find("power of two") != std::string::npos);
  }
}

TEST_CASE("nobody can resize a channel, so that no access faults") {
  auto daemon = Channel::create(kSmall);
  REQUIRE(daemon.ok());
  const auto memory = daemon.value().open_for_trainer();
  REQUIRE(memory.ok());
  const int fd = memory.value().get();
  errno = 0;
  CHECK(::ftruncate(fd, 0) != 0);
  CHECK(errno == EPERM);
  CHECK(::ftruncate(fd, 1 << 20) != 0);
  errno = 0;
  CHECK(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0);
  // F_SEAL_SEAL forbids it. EBUSY would only say that somebody can write at present.
  CHECK(errno == EPERM);
  // The holder of the descriptor can punch out the pages. They come back as zeros.
  REQUIRE(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      static_cast<off_t>(kSmall.total_bytes())) == 0);
  for (std::uint32_t round = 0; round < kSmall.slot_count; ++round) {
    const auto slot = daemon.value().slot(round);
    CHECK(std::all_of(slot.begin(), slot.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
  daemon.value().beat();
}

TEST_CASE("memory is taken back only when the daemon alone has it") {
  auto daemon = Channel::create(kSmall);
  REQUIRE(daemon.ok());
  Channel& channel = daemon.value();
  auto passed = channel.open_for_trainer();
  REQUIRE(passed.ok());
  UniqueFd& memory = passed.value();
  const std::string path = "/proc/self/fd/" + std::to_string(memory.get());
  const auto first = [&] { return channel.slot(0).front(); };
  channel.slot(0).front() = std::byte{7};
  SECTION("its descriptor is open") {
    CHECK_FALSE(channel.take_back());
  }
  SECTION("a copy of its descriptor is open") {
    const UniqueFd copy(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0));
    memory.reset();
    CHECK_FALSE(channel.take_back());
  }
  SECTION("it is mapped, and its descriptor closed") {
    const auto mapping = Mapping::map(memory.get(), 64, Mapping::Fault::kLater);
    REQUIRE(mapping.ok());
    memory.reset();
    CHECK_FALSE(channel.take_back());
  }
  SECTION("it was opened anew for reading alone") {
    const UniqueFd reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(reader);
    memory.reset();
    CHECK_FALSE(channel.take_back());
  }
  CHECK(first() == std::byte{7});
  memory.reset();
  CHECK(channel.take_back());
  CHECK(first() == std::byte{0});
}

TEST_CASE("memory that is taken back is empty, and open to who kept a path to it") {
  auto daemon = Channel::create(kSmall);
  REQUIRE(daemon.ok());
  auto passed = daemon.value().open_for_trainer();
  REQUIRE(passed.ok());
  const std::string open_path = "/proc/self/fd/" + std::to_string(passed.value().get());
  const UniqueFd kept(::open(open_path.c_str(), O_PATH | O_CLOEXEC));
  REQUIRE(kept);
  passed.value().reset();
  CHECK(daemon.value().take_back());
  const std::string kept_path = "/proc/self/fd/" + std::to_string(kept.get());
  const UniqueFd again(::open(kept_path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  REQUIRE(again);  // the daemon holds no lease any more
  struct stat file {};
  REQUIRE(::fstat(again.get(), &file) == 0);
  CHECK(file.st_blocks == 0);
}

TEST_CASE("the daemon uses its own sizes, whatever the trainer writes into the header") {
  auto daemon = Channel::create(kSmall);
  REQUIRE(daemon.ok());
  const std::vector<std::byte> garbage(kArenaOffset, std::byte{0xff});
  const auto memory = daemon.value().open_for_trainer();
  REQUIRE(memory.ok());
  REQUIRE(::pwrite(memory.value().get(), garbage.data(), garbage.size(), 0) ==
          static_cast<ssize_t>(garbage.size()));
  CHECK(daemon.value().sizes() == kSmall);
  CHECK(daemon.value().slot(7).data() - daemon.value().slot(0).data() ==
        static_cast<std::ptrdiff_t>(3 * kSmall.slot_bytes));
  Submission taken{};
  RingConsumer<Submission> submissions(daemon.value().submissions());
  CHECK_FALSE(submissions.pop(taken));
  CHECK(submissions.broken());
}

TEST_CASE("the trainer refuses a header that does not fit the file") {
  using Change = std::function<void(ChannelIdentity&)>;
  const Change changes[] = {
      [](ChannelIdentity& i) { i.magic ^= 1; },
      [](ChannelIdentity& i) { i.abi_version = kAbiVersion + 1; },
      [](ChannelIdentity& i) { i.slot_count = 0; },
      [](ChannelIdentity& i) { i.slot_count = 8; },
      [](ChannelIdentity& i) { i.slot_count = 0x80000000; },
      [](ChannelIdentity& i) { i.slot_bytes = 576; },
      [](ChannelIdentity& i) { i.slot_bytes = 0; },
      [](ChannelIdentity& i) { i.slot_bytes = ~std::uint64_t{63}; },
      [](ChannelIdentity& i) { i.slot_bytes = std::uint64_t{1} << 62; },
      [](ChannelIdentity& i) { i.arena_offset = 0; },
      [](ChannelIdentity& i) { i.arena_offset += 4096; },
      [](ChannelIdentity& i) { i.total_bytes += 1; },
      [](ChannelIdentity& i) { i.total_bytes = 0; },
      [](ChannelIdentity& i) { i = ChannelIdentity{}; },
  };
  const auto honest = make_memory(honest_identity(), kSmall.total_bytes(), kSeals);
  REQUIRE(ChannelView::map(honest.get()).ok());
  for (const Change& change : changes) {
    ChannelIdentity identity = honest_identity();
    change(identity);
    const auto fd = make_memory(identity, kSmall.total_bytes(), kSeals);
    const auto view = ChannelView::map(fd.get());
    REQUIRE_FALSE(view.ok());
    CHECK(view.error().message.find("header says") != std::string::npos);
  }
}

TEST_CASE("the trainer refuses a file of the wrong size or without seals") {
  for (const std::uint64_t size_bytes :
       {std::uint64_t{0}, std::uint64_t{4096}, kSmall.total_bytes() - 1, kSmall.total_bytes() + 1,
        std::uint64_t{1} << 40}) {
    const auto fd = make_memory(honest_identity(), size_bytes, kSeals);
    CHECK_FALSE(ChannelView::map(fd.get()).ok());
  }
  const auto unsealed = make_memory(honest_identity(), kSmall.total_bytes(), F_SEAL_GROW);
  const auto view = ChannelView::map(unsealed.get());
  REQUIRE_FALSE(view.ok());
  CHECK(view.error().message.find("not sealed") != std::string::npos);
}

TEST_CASE("the trainer refuses what is no channel at all") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  CHECK_FALSE(ChannelView::map(reading.get()).ok());
  CHECK_FALSE(ChannelView::map(-1).ok());
  const UniqueFd directory(::open("/tmp", O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(ChannelView::map(directory.get()).ok());
}

TEST_CASE("a shortage of descriptors is an error that says what to do") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 3;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto channel = Channel::create(kSmall);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE_FALSE(channel.ok());
  CHECK(channel.error().message.find("open files") != std::string::npos);
}
