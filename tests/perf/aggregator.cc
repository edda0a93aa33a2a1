// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How fast one core sums: a poll loop runs on one end of a memif or of a veth pair, and on another
// core workers push as fast as it takes their blocks. Prints numbers as JSON, and checks only the
// sums. Both ends are in one process. `scripts/bench aggregator` runs it beside dpdk-testpmd.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "dataplane/port/dpdk/dpdk_port.h"
#include "tests/perf/fan_in.h"
#include "tests/perf/forbidden_calls.h"
#include "tests/perf/workers.h"
#include "tests/support/engine_host.h"

using namespace gradplane;

namespace {

constexpr std::uint16_t kFirstWorkerPort = 48000;
constexpr std::uint64_t kUncountedDatagrams = 10'000;
constexpr Ipv4 kAggregator{0x0a4d0001};
constexpr Ipv4 kWorkers{0x0a4d0002};

struct Options {
  std::uint16_t workers = 8;
  std::size_t block_bytes = kDefaultBlockBytes;
  std::size_t round_kib = 64;
  bool authenticate = true;
  double seconds = 3;
  bool count_calls = false;
  std::vector<int> cores = {0, 1};
  std::string kind = "memif";
  std::vector<std::string> interfaces = {"gpa0", "gpb0"};  // of a veth pair
};

const std::map<std::string, port::DeviceKind> kKinds = {
    {"memif", port::DeviceKind::kMemif},
    {"af_packet", port::DeviceKind::kAfPacket},
    {"af_xdp", port::DeviceKind::kAfXdp},
};

Instant now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Instant::from_ns(t.tv_sec * 1'000'000'000LL + t.tv_nsec);
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    std::fprintf(stderr, "aggregator: there is no core %d; name two with --cores\n", core);
    std::exit(1);
  }
}

std::unique_ptr<port::Port> open_end(const Options& options, const std::string& folder,
                                     port::MemifRole role, Ipv4 address) {
  port::DpdkPortOptions o;
  o.kind = kKinds.at(options.kind);
  if (o.kind == port::DeviceKind::kMemif) {
    o.memif_socket = folder + "/m";
    o.memif_role = role;
    o.mtu = options.block_bytes > kDefaultBlockBytes ? 9000 : 1500;
  } else {
    o.interface = options.interfaces[role == port::MemifRole::kServer ? 0 : 1];
  }
  o.address = address;
  o.memory_mb = 256;
  auto opened = port::open_dpdk_port(o);
  if (!opened) {
    std::fprintf(stderr, "aggregator: %s\n", opened.error().message.c_str());
    std::exit(1);
  }
  return std::move(opened.value());
}

/// A plan in which node 0 has no rank and sums for all others.
api::Plan star_over(std::uint16_t workers) {
  api::Plan plan;
  plan.epoch = 1;
  plan.trees = {{.weight = 1, .root = 0, .parent = {}}};
  for (std::uint16_t n = 0; n <= workers; ++n) {
    plan.members.push_back({.node = n, .ranks = {}});
    if (n > 0) plan.members.back().ranks = {static_cast<std::uint16_t>(n - 1)};
    plan.trees[0].parent.push_back(n == 0 ? api::kNoNode : api::NodeId{0});
  }
  return plan;
}

struct Rates {
  double received = 0;  // datagrams a second
  double sent = 0;
  std::uint64_t lost = 0;
  double idle_share = 0;   // share of the time in turns without work
  Duration longest_pause;  // between two turns with work
  bool without_calls = true;
};

/// Polls for a second at most without measuring, and then for the seconds of the options.
Rates poll(testing::EngineHost& host, const Options& o) {
  Instant at = now();
  const Instant settled = at + Duration::seconds(1);
  // The driver's own threads connect the two ends before the first packet. Calls are counted soon
  // after it, because the workers repair nothing, and stand still after a loss.
  const std::uint64_t enough = o.count_calls ? kUncountedDatagrams : UINT64_MAX;
  while (at < settled && host.queue().counters().rx_datagrams < enough)
    host.engine().poll_once(at = now());
  const Instant begin = at;
  const Instant end = begin + Duration::ns(static_cast<std::int64_t>(o.seconds * 1e9));
  const port::PortCounters before = host.queue().counters();
  Duration idle;
  Duration longest_pause;
  Instant worked_at = at;
  if (o.count_calls) testing::count_forbidden_calls();
  while (at < end) {
    const bool worked = host.engine().poll_once(at);
    const Instant next = now();
    if (!worked) idle = idle + (next - at);
    longest_pause = std::max(longest_pause, next - worked_at);
    if (worked) worked_at = next;
    at = next;
  }
  const bool made_none = !o.count_calls || testing::no_forbidden_calls();
  const port::PortCounters& after = host.queue().counters();
  const bool counted = after.rx_datagrams - before.rx_datagrams >= kUncountedDatagrams;
  const double took = (at - begin).to_seconds();
  const auto full = static_cast<std::size_t>(port::PortDrop::kTxFull);
  return {.received = static_cast<double>(after.rx_datagrams - before.rx_datagrams) / took,
          .sent = static_cast<double>(after.tx_datagrams - before.tx_datagrams) / took,
          .lost = after.drops[full] - before.drops[full],
          .idle_share = idle.to_seconds() / took,
          .longest_pause = longest_pause,
          .without_calls = made_none && (counted || !o.count_calls)};
}

bool measure(const Options& o, const std::string& folder) {
  const auto ours = open_end(o, folder, port::MemifRole::kServer, kAggregator);
  const auto theirs = open_end(o, folder, port::MemifRole::kClient, kWorkers);
  std::vector<Ipv4> nodes = {kAggregator};
  for (std::uint16_t n = 1; n <= o.workers; ++n) nodes.push_back({0x0a4e0000U + n});
  std::vector<Ipv4> fan = nodes;
  fan[0] = {0x0a4e0000U};
  testing::FanIn fan_in(*ours, {kWorkers, kFirstWorkerPort}, fan);
  testing::EngineHost host(fan_in, 0, 0, nodes);
  host.add({.id = 1,
            .plan = star_over(o.workers),
            .block_bytes = o.block_bytes,
            .round_bytes = o.round_kib << 10,
            .authenticate = o.authenticate});
  testing::Workers workers(theirs->queue(0),
                           {.count = o.workers,
                            .block_bytes = o.block_bytes,
                            .round_bytes = o.round_kib << 10,
                            .authenticate = o.authenticate,
                            .aggregator = kAggregator,
                            .aggregator_udp_port = testing::EngineHost::kFirstUdpPort,
                            .first_udp_port = kFirstWorkerPort});
  std::atomic<bool> is_over = false;
  std::thread pushing([&] {
    pin(o.cores[1]);
    while (!is_over) {
      const Instant at = now();
      theirs->queue(0).tick(at);
      workers.turn(at);
    }
  });
  pin(o.cores[0]);
  const Rates rates = poll(host, o);
  is_over = true;
  pushing.join();
  const nlohmann::json out = {{"received_per_second", rates.received},
                              {"sent_per_second", rates.sent},
                              {"results_without_room", rates.lost},
                              {"idle_share", rates.idle_share},
                              {"longest_pause_s", rates.longest_pause.to_seconds()},
                              {"rounds", workers.rounds()},
                              {"correct", workers.correct()}};
  std::printf("%s\n", out.dump().c_str());
  return workers.correct() && workers.rounds() > 0 && rates.without_calls;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Packets that one core receives, sums and answers"};
  app.add_option("--workers", o.workers, "how many push")->check(CLI::Range(1, 64));
  app.add_option("--block-bytes", o.block_bytes, "of a block");
  app.add_option("--round-kib", o.round_kib, "of a round")->check(CLI::Range(4, 1024));
  app.add_flag("!--open", o.authenticate, "without tags");
  app.add_option("--seconds", o.seconds, "to measure for")->check(CLI::Range(0.1, 60.0));
  app.add_flag("--count-calls", o.count_calls,
               "fail if the poll loop allocates, locks or calls the kernel");
  app.add_option("--cores", o.cores, "of the poll loop and of the workers")->expected(2);
  app.add_option("--kind", o.kind, "of the port: memif, af_packet or af_xdp")
      ->check(CLI::IsMember(kKinds));
  app.add_option("--interfaces", o.interfaces,
                 "the two ends of a veth pair in this network namespace, for af_packet and af_xdp")
      ->expected(2);
  CLI11_PARSE(app, argc, argv);
  if (o.count_calls && std::thread::hardware_concurrency() < 2) {
    std::printf("SKIP: two processors are needed, one for the poll loop and one for the workers\n");
    return 77;
  }
  char folder[] = "/tmp/gradplane-aggregator-XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const bool good = measure(o, folder);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return good ? 0 : 1;
}
