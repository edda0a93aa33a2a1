// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/daemon.h"

#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "control/daemon/huge_pages.h"
#include "control/daemon/kernel_interface.h"
#include "control/daemon/numa.h"
#include "control/daemon/placement.h"
#include "control/daemon/planners.h"
#include "control/daemon/ports.h"
#include "control/daemon/session_config.h"
#include "control/daemon/status.h"
#include "dataplane/ipc/doorbell.h"

namespace gradplane::daemon {
namespace {

/// How often the control thread beats for ranks whose channel no poll loop has.
constexpr Duration kBeatInterval = Duration::ms(250);
/// How often bounds are learned anew, and rounds that closed badly are looked for.
constexpr Duration kBoundsInterval = Duration::seconds(1);
/// How often reports of rounds are taken from the poll loop. kReportQueueEntries are enough for
/// rounds that take 100 us or more.
constexpr Duration kReportsInterval = Duration::ms(100);
/// How often memory is freed: that of one rank that has left, and what the port has let go of.
constexpr Duration kMemoryInterval = Duration::ms(100);
/// How often the engines are asked what they have measured of links.
constexpr Duration kLinksInterval = Duration::seconds(1);
/// How soon the control thread tries again when buckets wait for room in a command queue.
constexpr Duration kHandOverInterval = Duration::ms(5);

Result<std::uint64_t> random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) {
    return Error{std::string("cannot get random bytes: ") + std::strerror(errno)};
  }
  return number | 1;  // never 0
}

Result<session::SessionConfig> load_session_config(const config::Config& config) {
  auto key = config::load_cluster_key(config);
  if (!key) return key.error();
  auto incarnation = random_number();
  if (!incarnation) return incarnation.error();
  return session_config(config, key.value(), incarnation.value());
}

Cores make_cores(std::size_t count) {
  Cores cores;
  for (std::size_t c = 0; c < count; ++c) cores.push_back(std::make_unique<Core>());
  return cores;
}

/// The CPUs of the poll threads that the configuration names; empty: the kernel chooses.
std::vector<std::uint32_t> poll_cpus(const config::Config& config) {
  if (!config.poll.cores.empty()) return config.poll.cores;
  return config.poll.core ? std::vector{*config.poll.core} : std::vector<std::uint32_t>{};
}

}  // namespace

Daemon::Daemon(config::Config config)
    : config_(std::move(config)),
      started_(clock_now()),
      log_(config_.log_level, config_.self_node().name),
      cores_(make_cores(core_count(config_))),
      jobs_(config_, commands_of(cores_)) {}

Result<std::unique_ptr<Daemon>> Daemon::start(config::Config config) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(config)));
  if (Status opened = daemon->open_control(); !opened) return opened.error();
  if (Status opened = daemon->open_dataplane(); !opened) return opened.error();
  daemon->announce();
  return daemon;
}

Status Daemon::open_control() {
  auto loop = server::EventLoop::create();
  if (!loop) return loop.error();
  loop_ = std::move(loop.value());
  // This comes before any thread starts, so that all threads inherit the mask and take no signal.
  auto signals = server::Signals::create(*loop_, {SIGTERM, SIGINT, SIGHUP}, [this](int number) {
    if (number == SIGHUP) return;  // a terminal that closes is no reason to stop
    log_.info("{}: ending", strsignal(number));
    loop_->stop();
  });
  if (!signals) return signals.error();
  signals_ = std::move(signals.value());
  // The kernel sends SIGIO when a process opens the memory of a rank while we take it back.
  std::signal(SIGIO, SIG_IGN);
  auto session = load_session_config(config_);
  if (!session) return session.error();
  session_ = std::make_unique<session::SessionManager>(session.value());
  server::ServerOptions options;
  options.socket_path = config_.control.socket;
  options.access = {.group = config_.control.group,
                    .users = {config_.control.allow_uids.begin(), config_.control.allow_uids.end()},
                    .require = config_.require};
  options.node = config_.self_node().name;
  options.software = software();
  auto server = server::Server::create(*loop_, *this, std::move(options));
  if (!server) return server.error();
  server_ = std::move(server.value());
  if (const std::size_t limit = server_->open_files_limit(); limit < server::kMaxOpenFiles) {
    log_.line(config::LogLevel::kWarn,
              fmt::format("this process may open {} files, and may need {}: clients of the control "
                          "socket may be turned away; raise the hard limit (ulimit -Hn, or "
                          "LimitNOFILE of the systemd unit)",
                          limit, server::kMaxOpenFiles));
  }
  return Nothing{};
}

Status Daemon::open_dataplane() {
  const std::vector<std::uint32_t> cpus = poll_cpus(config_);
  for (const std::uint32_t cpu : cpus) {
    if (cpu < std::thread::hardware_concurrency()) continue;
    return Error{fmt::format("{}: {}: this host has the processors 0 to {}",
                             config_.poll.cores.empty() ? "poll.core" : "poll.cores", cpu,
                             std::thread::hardware_concurrency() - 1)};
  }
  if (!cpus.empty()) (void)prefer_memory_of(cpus.front());
  const std::string& interface = config_.port().interface;
  for (const std::string& warning :
       {numa_warning(cpus, config_.port()),
        kernel_address_warning(interface, kernel_addresses(interface))})
    if (!warning.empty()) log_.line(config::LogLevel::kWarn, warning);
  const std::string note = short_packets_note(config_.port(), kernel_mtu(interface));
  if (!note.empty()) log_.line(config::LogLevel::kInfo, note);
  if (Status opened = open_doorbells(); !opened) return opened;
  if (Status opened = open_port(); !opened) return opened;
  groups_ = std::make_unique<GroupMembership>(config_, *port_);
  if (cores_.size() > 1) {
    shared_link_ = std::make_unique<engine::SharedLink>(
        config_.port().link_rate_bits_per_s.value_or(0), cores_.size());
  }
  plans_ = std::make_unique<PlanThread>(
      planner_of(config_), [ring = plans_made_.ring.get()] { ipc::ring_doorbell(ring); });
  // All engines are made before the first loop starts, because a loop changes what engines share.
  for (std::size_t c = 0; c < cores_.size(); ++c) make_engine(c);
  for (std::size_t c = 0; c < cores_.size(); ++c) {
    if (const Status started = start_loop(c); !started) return started;
  }
  return Nothing{};
}

Status Daemon::open_doorbells() {
  for (const auto& core : cores_) {
    auto doorbell = ipc::create_doorbell();
    if (!doorbell) return doorbell.error();
    core->doorbell = std::move(doorbell.value());
  }
  auto engine_events = ipc::create_doorbell();
  if (!engine_events) return engine_events.error();
  engine_events_ = std::move(engine_events.value());
  Status watched = loop_->watch(engine_events_.listen.get(), EPOLLIN, [this](std::uint32_t) {
    ipc::silence_doorbell(engine_events_.listen.get());
    take_engine_events();
  });
  if (!watched) return watched;
  auto plans_made = ipc::create_doorbell();
  if (!plans_made) return plans_made.error();
  plans_made_ = std::move(plans_made.value());
  return loop_->watch(plans_made_.listen.get(), EPOLLIN, [this](std::uint32_t) {
    ipc::silence_doorbell(plans_made_.listen.get());
    take_plans();
  });
}

Status Daemon::open_port() {
  auto port = daemon::open_port(config_);
  if (!port) return port.error();
  port_ = std::move(port.value());
  lent_memory_ = std::make_shared<LentMemory>(*port_);
  huge_pages().lend_by(lent_memory_);
  if (port_->mtu_payload_bytes() < wire::kBlockOverheadBytes + config_.block_bytes) {
    return Error{
        fmt::format("block.bytes: {} bytes and a header do not fit the {} bytes that a "
                    "datagram of this port may have; lower block.bytes or raise the MTU",
                    config_.block_bytes, port_->mtu_payload_bytes())};
  }
  return Nothing{};
}

engine::EngineOptions Daemon::engine_options(std::size_t core) const {
  engine::EngineOptions options;
  options.self = config_.self;
  options.queue = static_cast<std::uint16_t>(core);
  options.udp_port = static_cast<std::uint16_t>(config_.cluster.udp_port + core);
  options.link = {.bits_per_second = config_.port().link_rate_bits_per_s.value_or(0),
                  .buffer_bytes = config_.port().buffer_bytes.value_or(0),
                  .block_bytes = config_.block_bytes};
  options.shared_link = shared_link_.get();
  options.groups = config_.multicast.range;
  options.clock = clock_now;
  options.grants = {.policy = config_.grants.policy, .mltcp = config_.mltcp};
  for (const config::NodeConfig& node : config_.cluster.nodes) {
    options.nodes.push_back(node.address);
  }
  return options;
}

void Daemon::make_engine(std::size_t index) {
  Core& core = *cores_[index];
  const MemoryNear near(poll_cpu(config_, index));
  core.snapshot = std::make_unique<api::EngineSnapshot>();
  core.engine = std::make_unique<engine::Engine>(engine_options(index), port_->queue(index),
                                                 core.commands, core.events, core.reports);
}

Status Daemon::start_loop(std::size_t index) {
  Core& core = *cores_[index];
  core.poll = std::make_unique<PollThread>(
      *core.engine,
      PollOptions{.adaptive = config_.poll.idle == config::IdlePolicy::kAdaptive,
                  .spin = config_.poll.spin,
                  .max_sleep = config_.poll.max_sleep,
                  .core = poll_cpu(config_, index),
                  .link_bits_per_second = config_.port().link_rate_bits_per_s.value_or(0)},
      core.doorbell, engine_events_.ring.get(), core.events);
  return config_.poll.real_time ? core.poll->go_before_others() : Status(Nothing{});
}

Daemon::~Daemon() {
  if (groups_ && !cores_.empty() && cores_[0]->poll) {
    session_->say_goodbye(clock_now());
    run_actions();
    groups_->leave_all();
  }
  // The poll loops end first, because they use everything else.
  for (const auto& core : cores_) {
    if (core->poll) core->poll->stop();
  }
  plans_.reset();
  if (loop_ && engine_events_.listen) loop_->forget(engine_events_.listen.get());
  if (loop_ && plans_made_.listen) loop_->forget(plans_made_.listen.get());
  // A rank may have sent a descriptor to this socket that is slow to close. So the sockets stay
  // open, and the kernel closes them when the process has ended.
  for (const auto& core : cores_) (void)core->doorbell.listen.release();
}

void Daemon::announce() const {
  log_.info("{} ready: node {} of {}, {} port {}, control socket {}", software(), config_.self,
            config_.cluster.nodes.size(), config::name_of(config_.port().kind),
            device_name(config_.port()), config_.control.socket);
  const std::string why = why_one_core(config_);
  if (cores_.size() > 1 && !why.empty()) {
    log_.line(config::LogLevel::kWarn,
              fmt::format("each job has one of the {} poll cores, because {}", cores_.size(), why));
  }
}

void Daemon::run() {
  beat();
  watch_bounds();
  watch_rounds();
  watch_links();
  watch_drops();
  watch_memory();
  session_->greet(clock_now());
  run_actions();
  loop_->run();
}

/// Beats for ranks whose channel no poll loop has, so that they do not take the daemon for dead.
void Daemon::beat() {
  for (auto& [handle, rank] : ranks_) {
    ipc::Channel& channel = rank.channel->channel;
    for (std::size_t c = 0; !rank.in_engine && c < channel.sizes().core_count; ++c) channel.beat(c);
  }
  loop_->start_timer(server::EventLoop::now() + kBeatInterval, [this] { beat(); });
}

void Daemon::watch_bounds() {
  jobs_.learn_bounds();
  for (const std::string& warning : jobs_.take_close_warnings(clock_now())) {
    log_.line(config::LogLevel::kWarn, warning);
  }
  loop_->start_timer(server::EventLoop::now() + kBoundsInterval, [this] { watch_bounds(); });
}

void Daemon::watch_rounds() {
  take_round_reports();
  loop_->start_timer(server::EventLoop::now() + kReportsInterval, [this] { watch_rounds(); });
}

/// Asks the engines for their links, as long as the session has somebody to report them to.
void Daemon::watch_links() {
  links_wanted_ = session_->wants_links();
  ask_snapshot();
  loop_->start_timer(server::EventLoop::now() + kLinksInterval, [this] { watch_links(); });
}

void Daemon::watch_memory() {
  if (const auto freed = left_memory_.free_one()) session_->memory_freed(*freed);
  lent_memory_->retry();
  if (const auto warning = lent_memory_->take_warning())
    log_.line(config::LogLevel::kWarn, *warning);
  loop_->start_timer(server::EventLoop::now() + kMemoryInterval, [this] { watch_memory(); });
}

void Daemon::run_actions() {
  while (const auto action = session_->next_action()) {
    std::visit([this](const auto& a) { act(a); }, *action);
  }
  jobs_.ask_back();
  if (const auto warning = groups_->follow(jobs_)) log_.line(config::LogLevel::kWarn, *warning);
  if (!jobs_.hand_over_buckets() && hand_over_timer_ == 0) {
    hand_over_timer_ = loop_->start_timer(server::EventLoop::now() + kHandOverInterval, [this] {
      hand_over_timer_ = 0;
      run_actions();
    });
  }
  if (snapshot_wanted_) ask_snapshot();
  loop_->cancel_timer(session_timer_);
  session_timer_ = loop_->start_timer(session_->next_deadline(), [this] {
    session_->tick(clock_now());
    run_actions();
  });
}

void Daemon::act(const session::InstallJob& action) {
  const Status installed = jobs_.install(action, ranks_);
  if (!installed) session_->on_job_error(action.job_id, installed.error().message, clock_now());
}

void Daemon::act(const session::RemoveJob& action) {
  jobs_.remove(action.job_id, action.first_epoch);
}

void Daemon::act(const session::PreparePlan& action) {
  const Status ordered = jobs_.prepare_plan(action);
  if (ordered) return;
  session_->on_plan_refused(action.job_id, action.plan.epoch, ordered.error().message, clock_now());
}

void Daemon::act(const session::CommitPlan& action) {
  jobs_.commit_plan(action);
}

void Daemon::act(const session::AbortPlan& action) {
  jobs_.abort_plan(action);
}

void Daemon::act(const session::EndOlderPlan& action) {
  jobs_.end_older_plan(action);
}

void Daemon::act(const session::AnswerReplan& action) {
  if (!action.committed) {
    server_->hang_up(action.asker, action.text);
    return;
  }
  server_->send(action.asker, protocol::Replanned{.epoch = action.epoch,
                                                  .activation_round = action.activation_round,
                                                  .text = action.text});
}

void Daemon::act(const session::MakePlan& action) {
  plans_->order(action);
}

void Daemon::take_plans() {
  while (auto made = plans_->take())
    session_->on_plan_made(made->ticket, std::move(made->offer), clock_now());
  if (const auto answer = plans_->take_answer()) {
    why_under_way_ = false;
    for (const server::ConnectionId asker : std::exchange(why_askers_, {}))
      server_->send_encoded(asker, *answer);
  }
  run_actions();
}

void Daemon::act(const session::InstallBounds& action) {
  const Status installed = jobs_.install_bounds(action);
  if (!installed)
    session_->on_bucket_refused(action.job_id, installed.error().message, clock_now());
}

void Daemon::act(const session::NotifyRank& action) {
  if (const auto rank = ranks_.find(action.handle); rank != ranks_.end())
    rank->second.told_ready |= std::holds_alternative<protocol::Ready>(action.notice);
  std::visit([&](const auto& notice) { server_->send(action.handle, notice); }, action.notice);
}

void Daemon::act(const session::LogLine& action) {
  static_assert(static_cast<int>(session::LogLevel::kDebug) ==
                static_cast<int>(config::LogLevel::kDebug));
  log_.line(static_cast<config::LogLevel>(action.level), action.text);
}

}  // namespace gradplane::daemon
