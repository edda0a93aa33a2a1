// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Emulates a network between real interfaces. One thread; runs until SIGTERM.
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

#include "tests/lab/control_socket.h"
#include "tests/lab/network.h"
#include "tests/lab/ports.h"
#include "tests/lab/requests.h"

namespace gradplane::lab {
namespace {

// The switch delivers single frames to the microsecond: it wakes up for each of them, and spins for
// the time that a wake-up takes. It spins for at most one part in kPunctualPart of the time.
constexpr Duration kSpin = Duration::us(30);
constexpr Duration kWakeCost = Duration::us(20);
constexpr std::int64_t kPunctualPart = 20;
constexpr Duration kMaxCredit = Duration::ms(2);
// Under load the switch works once in this interval and not for each event, like a NIC that
// coalesces interrupts. Frames have the time of their arrival, so the delay does not add up over
// hops.
constexpr Duration kGrain = Duration::us(100);
// How often a busy switch looks for requests.
constexpr Duration kServeInterval = Duration::ms(2);

Instant read_clock(clockid_t clock) {
  timespec t = {};
  clock_gettime(clock, &t);
  return Instant::from_ns(std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec);
}

Instant read_clock() {
  return read_clock(CLOCK_MONOTONIC);
}

timespec to_timespec(std::int64_t ns) {
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Switch {
 public:
  Switch(Network& network, std::vector<Port>& ports, ControlSocket& control, int epoll_fd,
         int signal_fd)
      : network_(network),
        ports_(ports),
        control_(control),
        epoll_fd_(epoll_fd),
        signal_fd_(signal_fd) {}

  void run() {
    while (!ended_) {
      const std::size_t received = receive();
      const bool delivered = deliver();
      const Instant now = read_clock();
      if (now >= next_serve_) serve(now);
      wait(now, received != 0 || delivered);
    }
  }

 private:
  /// Empties all rings before it runs events, so that frames are ordered by time.
  std::size_t receive() {
    const Instant now = read_clock();
    const Duration offset = read_clock(CLOCK_REALTIME) - now;
    std::size_t count = 0;
    for (std::size_t host = 0; host < ports_.size(); ++host) {
      count += ports_[host].receive(
          now, offset, kRingFrames,
          [&](Instant at, std::span<const std::byte> frame) { network_.offer(host, at, frame); });
    }
    return count;
  }

  bool deliver() {
    const Instant now = read_clock();
    if (network_.next_event() > now) return false;
    network_.run_until(now, [&](std::size_t host, Instant at, std::span<const std::byte> frame) {
      const std::int64_t late_ns = (now - at).count_ns();
      latest_ns_ = std::max(latest_ns_, late_ns);
      if (late_ns > Duration::ms(1).count_ns()) ++late_1ms_;
      ports_[host].send(frame);
    });
    for (Port& port : ports_) port.flush();
    network_.release_delivered();
    return true;
  }

  /// Waits until the next event or arrival. If arrivals are rare it wakes at once, otherwise after
  /// a sleep of kGrain.
  void wait(Instant now, bool busy) {
    credit_ = std::min(credit_ + (now - last_wait_) / kPunctualPart, kMaxCredit);
    last_wait_ = now;
    const Instant next = network_.next_event();
    if (next - now < kGrain || (busy && credit_ < kWakeCost)) {
      nap(now, next);
      return;
    }
    if (busy) credit_ = credit_ - kWakeCost;
    const Duration ahead = std::min(next - now - kSpin, Duration::seconds(1));
    const timespec patience = to_timespec(ahead.count_ns());
    epoll_event events[8];
    const int count = epoll_pwait2(epoll_fd_, events, 8, &patience, nullptr);
    // Such an event is a request or a signal, and not of a port.
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd >= 0) next_serve_ = {};
    }
  }

  void nap(Instant now, Instant next) {
    const bool may_spin = next - now <= kSpin && credit_ > kSpin;
    if (may_spin) {
      while (read_clock() < next) {
      }
      credit_ = credit_ - (read_clock() - now);
      return;
    }
    const timespec until = to_timespec((now + kGrain).count_ns());
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }

  void serve(Instant now) {
    next_serve_ = now + kServeInterval;
    signalfd_siginfo signal = {};
    ended_ = read(signal_fd_, &signal, sizeof(signal)) > 0;
    control_.serve([&](const std::string& request) {
      const Answer answer = answer_request(request, network_, counters(), now);
      if (answer.resets) {
        latest_ns_ = 0;
        late_1ms_ = 0;
        for (Port& port : ports_) port.reset_counters();
      }
      return answer.json;
    });
  }

  SwitchCounters counters() {
    SwitchCounters result{cpu_seconds(), late_1ms_, latest_ns_, 0, 0};
    for (Port& port : ports_) {
      const PortCounters c = port.counters();
      result.ring_drops += c.ring_drops;
      result.send_failures += c.send_failures;
    }
    return result;
  }

  Network& network_;
  std::vector<Port>& ports_;
  ControlSocket& control_;
  int epoll_fd_;
  int signal_fd_;
  bool ended_ = false;
  Instant next_serve_;
  Instant last_wait_ = read_clock();
  Duration credit_;
  std::uint64_t late_1ms_ = 0;
  std::int64_t latest_ns_ = 0;
};

struct Options {
  std::string network_file;
  std::string socket_path;
  std::vector<std::string> ports;  // HOST=INTERFACE
  bool run_schedule = false;
};

int fail(const std::string& why) {
  std::fprintf(stderr, "lab_switch: %s\n", why.c_str());
  return 1;
}

std::optional<Description> read_description(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    fail(path + ": cannot be read");
    return std::nullopt;
  }
  ParsedDescription parsed = parse_description(text.str(), path);
  for (const auto& error : parsed.errors) fail(error.text());
  return std::move(parsed.description);
}

/// Opens the ports in the order of the hosts. Each host has exactly one.
Result<std::vector<Port>> open_ports(const Options& options, const Description& description,
                                     int epoll_fd) {
  std::vector<Port> ports;
  for (const HostDescription& host : description.hosts) {
    const auto given = std::ranges::find_if(options.ports, [&host](const std::string& text) {
      return text.starts_with(host.name + "=");
    });
    if (given == options.ports.end()) {
      return Error{"host " + host.name + " has no --port " + host.name + "=INTERFACE"};
    }
    Result<Port> port = Port::open(given->substr(host.name.size() + 1));
    if (!port.ok()) return port.error();
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = ~std::uint64_t{0}}};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, port.value().receive_fd(), &event);
    ports.push_back(std::move(port.value()));
  }
  if (options.ports.size() != ports.size())
    return Error{"--port names a host twice or an unknown one"};
  return ports;
}

int run(const Options& options) {
  const auto description = read_description(options.network_file);
  if (!description) return 1;
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  const ipc::UniqueFd epoll_fd(epoll_create1(EPOLL_CLOEXEC));
  const ipc::UniqueFd signal_fd(signalfd(-1, &ending, SFD_NONBLOCK | SFD_CLOEXEC));
  epoll_event event = {.events = EPOLLIN, .data = {.fd = signal_fd.get()}};
  epoll_ctl(epoll_fd.get(), EPOLL_CTL_ADD, signal_fd.get(), &event);
  auto ports = open_ports(options, *description, epoll_fd.get());
  if (!ports.ok()) return fail(ports.error().message);
  auto control = ControlSocket::open(options.socket_path, epoll_fd.get());
  if (!control.ok()) return fail(control.error().message);
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  Network network(*description);
  if (options.run_schedule) network.start_schedule(read_clock());
  std::puts("ready");
  std::fflush(stdout);
  Switch(network, ports.value(), control.value(), epoll_fd.get(), signal_fd.get()).run();
  return 0;
}

}  // namespace
}  // namespace gradplane::lab

int main(int argc, char** argv) {
  CLI::App app("Puts an emulated network between interfaces; prints `ready`; runs until SIGTERM.");
  gradplane::lab::Options options;
  app.add_option("--network", options.network_file, "the network in YAML")->required();
  app.add_option("--port", options.ports, "HOST=INTERFACE, for every host")->required();
  app.add_option("--socket", options.socket_path, "where it is asked in JSON")->required();
  app.add_flag("--run-schedule", options.run_schedule, "the schedule counts from the start");
  CLI11_PARSE(app, argc, argv);
  return gradplane::lab::run(options);
}
