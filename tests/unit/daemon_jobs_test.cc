// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The daemon's table of jobs, and the memory of ranks that have left.
#include <vector>

#include "control/daemon/status.h"
#include "control/telemetry/rounds.h"
#include "tests/unit/daemon_bench.h"

using namespace gradplane;
using namespace gradplane::daemon;
using namespace gradplane::daemon::testing;

using Kind = api::Command::Kind;

TEST_CASE("a job goes to the poll loop, and is gone when it has come back") {
  JobBench bench;
  bench.install(5);
  const api::Command add = bench.next();
  CHECK(add.kind == Kind::kAddJob);
  CHECK(bench.ranks.at(kHandle).in_engine);
  CHECK(bench.jobs.running_ids() == std::vector<std::uint32_t>{5});
  REQUIRE(bench.jobs.find_running(add.job) != nullptr);
  CHECK(bench.jobs.find_running(add.job)->run_id == "run");

  bench.jobs.remove(5, 2);  // another epoch
  bench.jobs.remove(6, 1);  // another job
  CHECK(bench.commands.empty());
  bench.jobs.remove(5, 1);
  bench.jobs.remove(5, 1);
  bench.jobs.ask_back();
  const api::Command remove = bench.next();
  CHECK(remove.kind == Kind::kRemoveJob);
  CHECK(remove.job == add.job);
  CHECK(bench.commands.empty());  // the job is asked back only once
  CHECK(bench.jobs.find_running(add.job) == nullptr);
  CHECK(bench.jobs.running_ids().empty());
  CHECK(!bench.jobs.empty());

  bench.jobs.on_returned(add.job);
  CHECK(bench.jobs.empty());
  REQUIRE(bench.jobs.ended().size() == 1);
  CHECK(bench.jobs.ended()[0].id == 5);
  CHECK(bench.jobs.ended()[0].label == "train");
  bench.jobs.on_returned(add.job);  // a second answer is ignored
  CHECK(bench.jobs.ended().size() == 1);
}

TEST_CASE("a job that cannot be asked back now is asked back when there is room") {
  JobBench bench(2);
  bench.install(5);
  REQUIRE(bench.commands.push({}));
  bench.jobs.remove(5, 1);
  CHECK(bench.commands.room() == 0);
  bench.next();
  bench.next();
  CHECK(bench.commands.front() == nullptr);
  bench.jobs.ask_back();
  CHECK(bench.next().kind == Kind::kRemoveJob);
}

TEST_CASE("a job is not installed without room, or without one of its ranks") {
  JobBench bench(1);
  const Status gone = bench.jobs.install(JobBench::order(5), bench.ranks);
  REQUIRE(!gone.ok());
  CHECK(gone.error().message == "rank 0 is no longer attached");
  bench.attach(kHandle);
  REQUIRE(bench.commands.push({}));
  const Status full = bench.jobs.install(JobBench::order(5), bench.ranks);
  REQUIRE(!full.ok());
  CHECK(full.error().message.find("a poll loop does not take commands") == 0);
  CHECK(bench.jobs.empty());
  CHECK(!bench.ranks.at(kHandle).in_engine);
}

TEST_CASE("the last jobs that ended are remembered, oldest first") {
  JobBench bench;
  for (std::uint32_t id = 1; id <= 18; ++id) {
    bench.install(id);
    bench.jobs.on_returned(bench.next().job);
  }
  REQUIRE(bench.jobs.ended().size() == 16);
  CHECK(bench.jobs.ended().front().id == 3);
  CHECK(bench.jobs.ended().back().id == 18);
}

TEST_CASE("buckets leave room in the queue for whole jobs") {
  constexpr std::size_t kKept = 2 * kMaxJobs;
  constexpr std::size_t kRoom = kKept;
  constexpr std::uint32_t kBuckets = kRoom + 20;
  JobBench bench(kKept + kRoom);
  bench.install(5);
  for (std::uint32_t bucket = 1; bucket <= kBuckets; ++bucket) REQUIRE(bench.add_bucket(5, bucket));
  CHECK(bench.commands.room() == kKept);
  CHECK(!bench.jobs.hand_over_buckets());
  CHECK(bench.next().kind == Kind::kAddJob);
  std::size_t handed_over = 0;
  while (bench.commands.front() != nullptr) {
    CHECK(bench.next().kind == Kind::kAddBucket);
    ++handed_over;
  }
  CHECK(handed_over == kRoom - 1);
  CHECK(bench.jobs.hand_over_buckets());
  while (bench.commands.front() != nullptr) {
    CHECK(bench.next().bucket != nullptr);
    ++handed_over;
  }
  CHECK(handed_over == kBuckets);  // each bucket once
}

TEST_CASE("bounds count for a job that runs, in the epoch that it has") {
  JobBench bench;
  bench.install(5, 2);
  bench.next();
  CHECK(bench.add_bucket(5, 1));  // of epoch 1, which does not run
  CHECK(bench.add_bucket(6, 1));  // of a job that does not run
  CHECK(bench.commands.empty());
  bench.install(6, 1);
  bench.next();
  bench.jobs.remove(6, 1);
  bench.next();
  CHECK(bench.add_bucket(6, 1));
  CHECK(bench.commands.empty());
  for (const InstalledJob& job : bench.jobs.installed()) CHECK(job.bounds->buckets().empty());
}

TEST_CASE("bounds that fit no round are refused by name") {
  JobBench bench;
  bench.install(5);
  session::InstallBounds bounds;
  bounds.job_id = 5;
  bounds.first_epoch = 1;
  bounds.table.bucket = 3;
  bounds.table.elements = kRoundBytes;  // four times as large as a round
  bounds.table.tensors = {{"a", 0, kRoundBytes, 0.25F, api::BoundReason::kPreset, ""}};
  const Status refused = bench.jobs.install_bounds(bounds);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("the bounds of bucket 3 fit no round") == 0);
}

TEST_CASE("the jobs of one user share what quotas.updates gives to updates on their way") {
  constexpr std::size_t kOfBucket = kRoundBytes;
  JobBench bench;
  bench.config.training.mode = config::TrainingMode::kSelectiveSsp;
  bench.config.training.staleness = 4;
  bench.config.quotas.updates = 3 * kOfBucket;
  bench.attach(kHandle);
  const bool is_root = GENERATE(false, true);
  bench.ranks.at(kHandle).user = is_root ? 0 : 1000;
  bench.install(5);
  bench.install(6);
  CHECK(bench.add_bucket(5, 1));
  CHECK(bench.add_bucket(5, 2));
  CHECK(bench.add_bucket(6, 1));
  CHECK(bench.add_bucket(6, 2) == is_root);
  CHECK(bench.add_bucket(5, 3) == is_root);
  // A job of another user has a quota of its own.
  bench.ranks.at(kHandle).user = 2000;
  bench.install(7);
  CHECK(bench.add_bucket(7, 1));
}

TEST_CASE("of buckets with more tensors than a job may have the first one is told, by name") {
  Rank rank;
  const auto take = [&rank](std::uint32_t bucket, std::uint32_t first, std::uint32_t total) {
    protocol::RegisterBucket said{.bucket = bucket,
                                  .element_type = ElementType::kFloat32,
                                  .total = total,
                                  .first = first,
                                  .tensors = {}};
    for (std::uint64_t t = 0; t < 512 && first + t < total; ++t)
      said.tensors.push_back({"t", first + t, 1});
    return take_bucket(rank, said);
  };
  constexpr std::uint32_t kEach = kMaxTensorsPerBucket;
  for (std::uint32_t bucket = 1; bucket <= session::kMaxTensorsPerJob / kEach; ++bucket) {
    for (std::uint32_t first = 0; first < kEach; first += 512) {
      const auto taken = take(bucket, first, kEach);
      REQUIRE(taken.ok());
      CHECK(taken.value().whole.has_value() == (first + 512 == kEach));
      CHECK(taken.value().refusal.empty());
    }
  }
  const auto more = take(5, 0, 1);
  REQUIRE(more.ok());
  CHECK(!more.value().whole);
  CHECK(more.value().refusal == "with bucket 5 the job has more than 65536 tensors");
  CHECK(take(6, 0, 1).value().refusal.empty());  // the refusal is told once
  CHECK(!take(6, 0, 1).ok());
}

TEST_CASE("a job is found by its number, and the first one without") {
  JobBench bench;
  CHECK(bench.jobs.find_asked(0).value() == nullptr);
  CHECK(bench.jobs.find_asked(7).error().message ==
        "there is no job 00000007 here; there are: none");
  bench.install(5);
  bench.install(6);
  CHECK(bench.jobs.find_asked(0).value()->id == 5);
  CHECK(bench.jobs.find_asked(6).value()->id == 6);
  CHECK(bench.jobs.find_asked(7).error().message ==
        "there is no job 00000007 here; there are: 00000005 00000006");
  bench.jobs.remove(5, 1);
  CHECK(bench.jobs.find_asked(0).value()->id == 6);
  CHECK(!bench.jobs.find_asked(5).ok());
}

TEST_CASE("reports of rounds are kept for their job and epoch, and lost ones are counted") {
  JobBench bench;
  bench.install(5, 2);
  api::JobRoundReport report;
  report.job = 5;
  report.epoch = 1;
  report.report.number = 1;
  CHECK(bench.jobs.keep_report(report) == nullptr);
  report.epoch = 2;
  const InstalledJob* job = bench.jobs.keep_report(report);
  REQUIRE(job != nullptr);
  CHECK(job->rounds.lost() == 0);
  report.report.number = 4;
  bench.jobs.keep_report(report);
  CHECK(job->rounds.lost() == 2);
  CHECK(job->rounds.closed() == 4);
  for (report.report.number = 5; report.report.number < 205; ++report.report.number)
    bench.jobs.keep_report(report);
  CHECK(job->rounds.kept().size() == telemetry::kKeptRounds);
  CHECK(job->rounds.kept().back().number == 204);
  CHECK(job->rounds.lost() == 2);
}

TEST_CASE("a job has grants as its coordinator says, and the status says the same") {
  for (const bool grants : {false, true}) {
    INFO(grants);
    JobBench bench;
    bench.config.grants = {.enabled = grants ? GrantChoice::kAuto : GrantChoice::kTrue,
                           .policy = GrantPolicy::kWeighted,
                           .weights = {{"train", 2}}};
    bench.attach(kHandle);
    session::InstallJob order = JobBench::order(5);
    order.grants = grants;
    REQUIRE(bench.jobs.install(order, bench.ranks).ok());
    CHECK(bench.next().job->job().config().grants == grants);
    const auto snapshot = std::make_unique<api::EngineSnapshot>();
    snapshot->job_count = 1;
    snapshot->jobs[0].job = 5;
    snapshot->jobs[0].epoch = 1;
    std::vector<session::JobView> views(1);
    views[0].job_id = 5;
    views[0].first_epoch = 1;
    views[0].label = "train";
    const std::deque<session::FailureView> failures;
    const auto told =
        job_statuses({bench.config, views, failures, bench.jobs, bench.ranks, *snapshot});
    REQUIRE(told.size() == 1);
    CHECK(told[0].grant_policy == (grants ? "weighted" : ""));
    CHECK(told[0].grant_weight == (grants ? 2 : 1));
  }
}

TEST_CASE("a further plan of a job with grants has no soundings") {
  for (const bool grants : {false, true}) {
    INFO(grants);
    JobBench bench;
    bench.attach(kHandle);
    session::InstallJob order = JobBench::order(5);
    order.grants = grants;
    REQUIRE(bench.jobs.install(order, bench.ranks).ok());
    (void)bench.next();
    session::PreparePlan further{
        .job_id = 5, .first_epoch = 1, .packet_key = {}, .plan = order.plan};
    further.plan.epoch = 2;
    further.plan.soundings = {{0, 2}};
    REQUIRE(bench.jobs.prepare_plan(further).ok());
    const api::Command prepare = bench.next();
    REQUIRE(prepare.plan != nullptr);
    CHECK(prepare.plan->sounded().size() == (grants ? 0 : 1));
    prepare.job->destroy_plan(prepare.plan);
  }
}

TEST_CASE("a coordinator tells of a job once, also when its own part in it has ended") {
  JobBench bench;
  bench.install(5);
  const auto snapshot = std::make_unique<api::EngineSnapshot>();
  snapshot->job_count = 1;
  snapshot->jobs[0].job = 5;
  snapshot->jobs[0].epoch = 1;
  snapshot->jobs[0].traffic.blocks_sent = 70;
  std::vector<session::JobView> views(1);
  views[0].job_id = 5;
  views[0].first_epoch = 1;
  views[0].state = session::JobState::kReady;
  const std::deque<session::FailureView> failures;
  const auto told = [&] {
    return job_statuses({bench.config, views, failures, bench.jobs, bench.ranks, *snapshot});
  };
  REQUIRE(told().size() == 1);
  CHECK(told()[0].has_part);
  const api::Command add = bench.next();
  bench.jobs.remove(5, 1);
  // The poll loop has not returned the job yet.
  REQUIRE(told().size() == 1);
  CHECK(told()[0].state == telemetry::JobState::kReady);
  CHECK_FALSE(told()[0].has_part);
  CHECK(told()[0].blocks_sent == 70);
  bench.jobs.ask_back();
  bench.jobs.on_returned(add.job);
  snapshot->job_count = 0;
  REQUIRE(told().size() == 1);
  CHECK(told()[0].state == telemetry::JobState::kReady);
  CHECK_FALSE(told()[0].has_part);
  // An earlier run of the same key is a job of its own, and so is a job that the session does not
  // know.
  views[0].first_epoch = 2;
  REQUIRE(told().size() == 2);
  CHECK(told()[1].state == telemetry::JobState::kEnded);
  views.clear();
  REQUIRE(told().size() == 1);
  CHECK(told()[0].has_part);
}

namespace {

struct Left {
  /// Adds a rank that has left. `held` plays a process that keeps the memory mapped.
  void add(session::RankHandle handle, std::uint32_t user) {
    auto channel = make_channel(kRoundBytes);
    REQUIRE(channel.ok());
    held[handle] = std::move(channel.value().trainer_memory);
    Rank rank;
    rank.user = user;
    rank.channel = std::move(channel.value().channel);
    memory.add(handle, std::move(rank));
  }

  LeftMemory memory;
  std::map<session::RankHandle, ipc::UniqueFd> held;
};

}  // namespace

TEST_CASE("the memory of a rank that left is freed when nobody has it, for its user") {
  Left left;
  left.add(1, 1000);
  left.add(2, 1000);
  left.add(3, 2000);
  CHECK(!left.memory.free_one_of(1000));
  left.held.erase(2);
  left.held.erase(3);
  CHECK(!left.memory.free_one_of(3000));
  CHECK(left.memory.free_one_of(1000) == session::RankHandle{2});
  CHECK(!left.memory.free_one_of(1000));
  CHECK(left.memory.free_one() == session::RankHandle{3});
  CHECK(!left.memory.free_one());
  left.held.erase(1);
  CHECK(left.memory.free_one() == session::RankHandle{1});
}

TEST_CASE("memory that the poll loop still has is not freed") {
  LeftMemory memory;
  auto channel = make_channel(kRoundBytes);
  REQUIRE(channel.ok());
  channel.value().trainer_memory.reset();
  std::shared_ptr<engine::RankChannel> of_the_job = channel.value().channel;
  Rank rank;
  rank.channel = std::move(channel.value().channel);
  memory.add(1, std::move(rank));
  CHECK(!memory.free_one());
  of_the_job.reset();
  CHECK(memory.free_one() == session::RankHandle{1});
}

TEST_CASE("however many ranks have left and are still held, each is looked at in turn") {
  Left left;
  for (session::RankHandle handle = 1; handle <= 150; ++handle) left.add(handle, 1000);
  left.held.erase(150);
  CHECK(!left.memory.free_one());
  CHECK(!left.memory.free_one());
  CHECK(left.memory.free_one() == session::RankHandle{150});
  left.held.erase(1);
  CHECK(left.memory.free_one() == session::RankHandle{1});
}
