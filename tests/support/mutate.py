#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Breaks each core rule of the protocol on purpose and expects the named test to fail.

Works on a copy of the tree: nothing here is changed. A mutation that no test notices, or whose
text is no longer in the code, is a failure of this script. Slow (one small build for each), so no
part of the ordinary test run.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECEIVE = "dataplane/core/job_receive.cc"
ROUNDS = "dataplane/core/job_rounds.cc"
TRANSMIT = "dataplane/core/job_transmit.cc"
CLOSING = "dataplane/core/job_gather.cc"
GATHER = "dataplane/core/gather.cc"
TABLES = "tests/protocol/protocol_packet_tables"
PLANS = "tests/property/property_core -# [#core_plans]"
SENDER = "tests/unit/unit_core -# [#block_sender_order]"
ORDER = "tests/unit/unit_core -# [#job_order]"
RECEIVER = "tests/unit/unit_core -# [#block_receiver_acks]"
REPORTS = "tests/unit/unit_core -# [#round_reports]"
CORNERS = "tests/property/property_sim -# [#tolerant_corners]"
CONTROLLERS = "dataplane/congestion"
CONFORMANCE = "tests/property/property_core -# [#congestion_conformance]"
WINDOWS = "tests/unit/unit_core -# [#congestion_windows]"
RATES = "tests/unit/unit_core -# [#congestion_rates]"
BBR = "tests/unit/unit_core -# [#congestion_bbr]"
FLOW = "tests/unit/unit_core -# [#flow_congestion]"
ITERATION = "tests/unit/unit_core -# [#iteration_ratio]"
SEEDS = "tests/sim/simulate --tolerant --count 300 --stop"
SCHEDULER = "dataplane/core/grant_scheduler.cc"
TURNS = "dataplane/core/grant_turns.cc"
GRANTS = "tests/unit/unit_core -# [#grant_scheduler]"
GRANT_GUARDS = "tests/unit/unit_core -# [#grant_guards]"
GRANT_POLICIES = "tests/unit/unit_core -# [#grant_policies]"
GRANT_RULES = "tests/property/property_grants -# [#grant_rules]"
WATCH = "dataplane/core/job_watch.cc"
STALLS = "tests/unit/unit_core -# [#job_stalls]"
TEST_SECONDS = 120


@dataclass(frozen=True)
class Mutation:
    rule: str
    file: str
    original: str
    mutated: str
    test: str  # what ninja builds, and its arguments


MUTATIONS = [
    Mutation("a block is accepted once", "dataplane/core/block_receiver.cc",
             "if (arrived_.test(i)) return false;", "", RECEIVER),
    Mutation("a duplicate is not summed", RECEIVE,
             "  if (duplicate) return;\n", "", TABLES),
    Mutation("a packet of another epoch is dropped", RECEIVE,
             "if (h.epoch != config_.epoch) return counters_.drop(Drop::kWrongEpoch);", "", TABLES),
    Mutation("a packet with a wrong tag is dropped", RECEIVE,
             "if (config_.authenticate && !wire::is_authentic(datagram, config_.key, self)) {",
             "if (false) {", TABLES),
    Mutation("the tag covers the receiver", "dataplane/wire/packet.cc",
             "to_network_order(receiver.covered());", "to_network_order(0 * receiver.covered());",
             "tests/property/property_core -# [#readdressed_acks]"),
    Mutation("a block names every rank of its subtree", RECEIVE,
             "if (!names_its_ranks(h, edge)) return counters_.drop(Drop::kBadContributors);", "",
             TABLES),
    Mutation("a lost block is queued again", "dataplane/core/block_sender.cc",
             "    queue_again(i);\n    ++found;",
             "    in_flight_.clear(i);\n    --in_flight_count_;\n    ++found;", SENDER),
    Mutation("a silent peer is probed", TRANSMIT,
             "const std::uint32_t queued = edge.senders[slot].probe(now_us);",
             "const std::uint32_t queued = 0;", PLANS),
    Mutation("a probe goes whatever the window says", TRANSMIT,
             "if (queued > 0) flow.on_probe();", "", "tests/unit/unit_core -# [#job_timers]"),
    Mutation("an ack's complete flag counts", RECEIVE,
             "if ((h.flags & wire::kFlagComplete) != 0) acked += sender.on_complete();", "",
             TABLES),
    Mutation("an ack of what was never sent does not count", "dataplane/core/block_sender.cc",
             "const std::uint64_t fresh = arrived & sent_.word(w) & ~acked_.word(w);",
             "const std::uint64_t fresh = arrived & ~acked_.word(w);", SENDER),
    Mutation("all senders rotate alike", ROUNDS,
             "range, round.id * kRotationStride,",
             "range, (round.id + config_.self) * kRotationStride,", ORDER),
    Mutation("new blocks begin at the rotation", "dataplane/core/block_sender.cc",
             "rotation % range.size()", "0 * rotation", SENDER),
    Mutation("a result answers a push", RECEIVE,
             "if (push.was_sent(h.block)) return true;", "return true;", TABLES),
    Mutation("a block lies in its tree's range", RECEIVE,
             "!range_of(h.tree, h.round, geometry).contains(h.block)) {", "false) {", TABLES),
    Mutation("a round waits for the acks of its results", ROUNDS,
             "if (!round.open || !round.told || round.results_unacked > 0) return;",
             "if (!round.open || !round.told) return;", PLANS),
    Mutation("a past round is answered", RECEIVE,
             "    request_ack(edge, h.round, true, now);\n    return nullptr;",
             "    return nullptr;", TABLES),
    Mutation("a node without ranks skips rounds that passed it by", RECEIVE,
             "return !round.open && config_.local_ranks.empty();", "return false;", PLANS),
    Mutation("an echo of the future proves no loss", RECEIVE,
             "if (!before_us(clock_us(now), body.echo_us)) {", "if (true) {", TABLES),
    Mutation("the parser checks the length", "dataplane/wire/packet.cc",
             "if (bytes > kMaxBlockBytes || payload_bytes != bytes) return ParseError::kBadLength;",
             "if (bytes > kMaxBlockBytes) return ParseError::kBadLength;",
             "tests/unit/unit_core -# [#wire_packet]"),
    Mutation("the tag covers the payload", "dataplane/wire/packet.cc",
             "return siphash24(key, header, packet.subspan(kHeaderBytes));",
             "return siphash24(key, header);", "tests/unit/unit_core -# [#wire_packet]"),
    Mutation("a submission is the next round", "dataplane/engine/job_runtime.cc",
             "return s.round == next_round && s.elements > 0", "return s.elements > 0",
             "tests/unit/unit_core -# [#engine_hostile_ranks]"),
    Mutation("an answer waits for room", "dataplane/engine/engine.cc",
             "if (events_.room() == 0 || !obey(*command)) break;", "if (!obey(*command)) break;",
             "tests/unit/unit_core -# [#engine_jobs]"),
    # Rounds that are given up
    Mutation("a child that has sent nothing owes nothing", WATCH,
             "if (!round.open || !receiver.has_heard()) continue;",
             "if (!round.open) continue;", STALLS),
    Mutation("a late look counts for little", "dataplane/core/progress_watch.cc",
             "std::clamp(now - last_look_, Duration{}, kLongestStep)", "now - last_look_", STALLS),
    Mutation("an unanswered question is put again at once", "dataplane/core/progress_watch.cc",
             "  next_at_ = now;", "  next_at_ = now + kAskInterval;",
             "tests/unit/unit_control -# [#progress_watch]"),
    Mutation("a question names a block without a result", WATCH,
             "if (results.has(block) || !push", "if (!push", STALLS),
    Mutation("an answer lacks nothing that was acked", WATCH,
             "if (disputed == 0 && !reopened) return;",
             "if (disputed == 0 || !reopened) return;", STALLS),
    Mutation("a parent ends no round before its children have the results", WATCH,
             "if (results.complete()) return;", "return;", STALLS),
    Mutation("what was acked anew is a move", RECEIVE,
             "if (settled > 0) watch_.moved();", "", STALLS),
    # Loss-tolerant gathering
    Mutation("Early Close keeps the bounds", GATHER,
             "if (source.critical_missing > 0 || source.over_bound > 0) return false;",
             "if (source.critical_missing > 0) return false;", CORNERS),
    Mutation("the deadline waits for critical blocks", GATHER,
             "deadline = deadline && source.critical_missing == 0 &&",
             "deadline = deadline &&", CORNERS),
    Mutation("Early Close waits for the floor", GATHER,
             "if (!is_above_floor(source)) return false;", "", SEEDS),
    Mutation("strict rounds are exact", GATHER,
             "if (!open_ || rounds_ <= limits_.strict_rounds) return std::nullopt;",
             "if (!open_) return std::nullopt;", SEEDS),
    Mutation("who does not know the bounds loses nothing", GATHER,
             "if (!source.bounded) return std::nullopt;", "", CORNERS),
    Mutation("a rank that has sent nothing is waited for", GATHER,
             "if (!is_absent(source, now)) return std::nullopt;", "", CORNERS),
    Mutation("an absent rank is gone on without", GATHER,
             "return !source.started && source.knows_bounds &&",
             "return false && source.knows_bounds &&", CORNERS),
    Mutation("an absent rank has known the bounds", GATHER,
             "return !source.started && source.knows_bounds &&",
             "return !source.started &&", SEEDS),
    Mutation("a bound that is learned anew holds", "dataplane/core/bucket.cc",
             "bounds_[tensor].store(std::clamp(bound, 0.0F, kMaxBound),", "(void)(0.0F,", SEEDS),
    Mutation("a block of two tensors counts for both", "dataplane/core/tensor_map.h",
             "blocks_[t].begin <= block; ++t) f(t);",
             "blocks_[t].begin <= block && t == first_[block]; ++t) f(t);", SEEDS),
    Mutation("roots share a tensor's bound", "dataplane/core/tensor_map.h",
             "return static_cast<std::uint32_t>(before(range.end) - before(range.begin));",
             "return static_cast<std::uint32_t>(whole);", SEEDS),
    Mutation("elements of no tensor are exact", GATHER,
             "if (!map_.is_covered(b)) critical_.set(b);", "", SEEDS),
    Mutation("a late block is not summed", RECEIVE,
             "const bool late = receiver.closed();", "const bool late = false;", CORNERS),
    Mutation("a block of a tolerant round is summed once", RECEIVE,
             "const bool duplicate = late || !receiver.accept(h.block);",
             "const bool duplicate = late || (!receiver.accept(h.block) && h.bucket == 0);",
             SEEDS),
    Mutation("sources are told what entered", "dataplane/core/block_receiver.cc",
             "if (closed_) out.flags |= wire::kFlagClosed;", "", CORNERS),
    Mutation("a sum is scaled by ranks over contributions", CLOSING,
             "static_cast<double>(config_.world_size) / came",
             "static_cast<double>(config_.world_size) / (came + 1)", CORNERS),
    Mutation("what did not enter is kept", CLOSING,
             "if (residual == nullptr || push.is_acked(block)) return;", "return;", CORNERS),
    Mutation("what entered is not kept", CLOSING, "residual->forget(b);", "", SEEDS),
    Mutation("what is carried is kept no more", "dataplane/core/residual.cc",
             "  kernels.finish(wire_bytes, sum.data(), count);\n  kept_.clear(block);",
             "  kernels.finish(wire_bytes, sum.data(), count);",
             "tests/unit/unit_core -# [#tensor_map_blocks]"),
    Mutation("what is not finite is not kept", "dataplane/core/residual.cc",
             "if (!reduce::is_finite(geometry_.type, at(block), count)) return false;", "",
             CORNERS),
    Mutation("partial blocks are counted", ROUNDS,
             "round.partial_blocks += contributors < config_.world_size ? 1 : 0;", "", CORNERS),
    Mutation("a bucket has one round in hand", CLOSING,
             "return !in_hand || *in_hand == round;", "return true;", SEEDS),
    Mutation("a round opens when its bucket is free", ROUNDS,
             "if (!round.open && !is_free(bounds_of(geometry), id)) return SubmitResult::kBusy;",
             "", CORNERS),
    Mutation("new blocks begin elsewhere in every round", ROUNDS,
             "range, round.id * kRotationStride,", "range, kRotationStride,", ORDER),
    Mutation("a threshold grows again", "dataplane/core/threshold.cc",
             "value_ = median({sorted.data(), count_});",
             "value_ = count_ == 1 ? completion : std::min(value_, completion);",
             "tests/unit/unit_core -# [#gather_rules]"),
    Mutation("a long repair teaches no threshold", GATHER,
             "complete ? std::min(source.latest_at - source.first_at, with_repair) : with_repair",
             "complete ? source.latest_at - source.first_at : with_repair",
             "tests/unit/unit_core -# [#gather_rules]"),
    Mutation("whole numbers are exact", "dataplane/engine/job_runtime.cc",
             "|| !is_floating(bounds.type) ||", "||", CORNERS),
    Mutation("what all buckets keep has a limit", "dataplane/engine/job_runtime.cc",
             "if (bytes > job.residual_bytes - residual_bytes_) return nullptr;", "",
             "tests/unit/unit_core -# [#bucket_memory]"),
    Mutation("a result waits until all local ranks are summed", RECEIVE,
             "all_submitted(round) && round.local_left[h.tree] == 0;", "all_submitted(round);",
             "tests/unit/unit_core -# [#job_bounds]"),
    Mutation("an old echo measures nothing", "dataplane/core/flow.h",
             "return static_cast<std::int32_t>(echo_us - newest_echo_us_) > 0;",
             "return newest_echo_us_ != echo_us + 1 || true;",
             "tests/unit/unit_core -# [#flow_window]"),
    Mutation("a new echo measures a round trip", "dataplane/core/flow.h",
             "return static_cast<std::int32_t>(echo_us - newest_echo_us_) > 0;",
             "return newest_echo_us_ == echo_us && false;",
             "tests/unit/unit_core -# [#flow_window]"),
    Mutation("a report tells what each source lacks", GATHER,
             "range_.size() - sources_[s].arrived});", "range_.size()});", REPORTS),
    Mutation("a report names sources that lack something", GATHER,
             "if (complete(sources_[s])) continue;", "", REPORTS),
    Mutation("a report names those that lack most", GATHER,
             "if (entry.missing_blocks <= worst[at].missing_blocks) return;", "return;", REPORTS),
    Mutation("a report sorts what it names", GATHER,
             "at > 0 && worst[at - 1].missing_blocks < entry.missing_blocks", "false", REPORTS),
    Mutation("a report adds up a tensor's sources", GATHER,
             "++s) missing += missing_of(s, t);", "++s) missing = missing_of(s, t);", REPORTS),
    Mutation("a report counts the tensors that it does not name", GATHER,
             "    report.other_tensors_missing_blocks += missing;\n", "", REPORTS),
    Mutation("a report says why", GATHER,
             "  report.reason = reason;\n", "", REPORTS),
    Mutation("a report's time begins with the first block", GATHER,
             "report.duration = closed_at - first_arrival_;",
             "report.duration = closed_at - last_arrival_;", REPORTS),
    Mutation("a lost report shows", CLOSING,
             "report.number = ++rounds_reported_;",
             "report.number = rounds_reported_ += reports_.full() ? 0 : 1;", REPORTS),
    Mutation("a report names its job", "dataplane/engine/engine_control.cc",
             "scratch_report_.epoch = job.config().epoch;", "",
             "tests/unit/unit_core -# [#engine_jobs]"),
    Mutation("a controller reacts once in a round trip", f"{CONTROLLERS}/reactions.h",
             "return now >= again_at_;", "return true;", WINDOWS),
    Mutation("a window that is not used does not grow", f"{CONTROLLERS}/reactions.h",
             "event.in_flight_blocks * 2 >=", "event.in_flight_blocks * 2000 >=", CONFORMANCE),
    Mutation("a rest takes TCP's window back", f"{CONTROLLERS}/additive_window.h",
             "    blocks_ = kInitialWindow;\n", "", CONFORMANCE),
    Mutation("CUBIC's curve", f"{CONTROLLERS}/cubic.cc", "kC = 0.4", "kC = 0.5", WINDOWS),
    Mutation("CUBIC leaves room for others", f"{CONTROLLERS}/cubic.cc",
             "blocks_ * (1 + kBeta) / 2 : blocks_", "blocks_ : blocks_", WINDOWS),
    Mutation("DCTCP reduces by the share of marks", f"{CONTROLLERS}/dctcp.cc",
             "1 - alpha_ / 2", "0.5", WINDOWS),
    Mutation("DCQCN remembers the rate that it had", f"{CONTROLLERS}/dcqcn.cc",
             "  target_ = rate_;\n", "", RATES),
    Mutation("Swift's window of less than a block is paced", f"{CONTROLLERS}/swift.cc",
             "kMinWindow);\n  reactions_", "1.0);\n  reactions_", RATES),
    Mutation("random loss does not shrink BBR", f"{CONTROLLERS}/bbr.cc",
             "event.why != LossEvent::Why::kSilence || ", "", BBR),
    Mutation("an idle application is no slow path", f"{CONTROLLERS}/bbr.cc",
             "!round_is_app_limited_ || rate", "true || rate", FLOW),
    Mutation("MLTCP scales by the phase", f"{CONTROLLERS}/mltcp.h",
             "set_gain(function_.at(phase.ratio))", "set_gain(function_.at(0))", RATES),
    Mutation("a mark reaches the controller", RECEIVE,
             "  heard = total;\n  return static_cast<std::uint32_t>(more);", "  return 0;", FLOW),
    Mutation("what a peer has is told to MLTCP", RECEIVE,
             "  iteration_->on_settled(slot, edge.peer, settled);\n", "", FLOW),
    Mutation("an iteration ends where a bucket comes again", "dataplane/core/iteration.cc",
             "bucket == 0 || last_seen_[bucket] == number_", "bucket == 0", ITERATION),
    Mutation("no grant exceeds the window", TURNS,
             "outstanding_ + blocks > window_.blocks(now)", "false", GRANTS),
    Mutation("grants are paced", TURNS, "if (window_.free_at() > now) {", "if (false) {", GRANTS),
    Mutation("what expired is used before more is granted", TURNS,
             "s.unheard == 0 && s.expired == 0", "s.unheard == 0", GRANTS),
    Mutation("who is silent gets no more credit", TURNS,
             "s.unheard == 0 && s.expired == 0", "s.expired == 0", GRANT_RULES),
    Mutation("sources take turns by blocks", TURNS,
             "{s.in_burst, ++sequence_}", "{0, ++sequence_}", GRANTS),
    Mutation("jobs take turns by weight", TURNS,
             "if (policy_ == Policy::kWeighted) return job.weight;", "", GRANT_POLICIES),
    Mutation("losses return their credit", TURNS,
             "const Instant missed = s.missing > 0 ? s.missing_until : Instant::never();",
             "const Instant missed = Instant::never();", GRANTS),
    Mutation("only credit that was given is outstanding when a count jumps", SCHEDULER,
             "std::min(ahead - 1, unused - s.expired)", "ahead - 1", GRANT_GUARDS),
    Mutation("one job's marks do not slow another", SCHEDULER,
             "signs.mark_cut = std::min(signs.mark_cut, job.path.take_mark_cut());",
             "const double c = job.path.take_mark_cut();\n"
             "    signs.mark_cut = signs.mark_cut == 1 ? c : std::max(signs.mark_cut, c);",
             GRANT_GUARDS),
    Mutation("slow senders are capped", "dataplane/core/source_cap.cc",
             "if (took > allowed)", "if (false)", GRANT_GUARDS),
    Mutation("a job that rested does not make up for it", SCHEDULER,
             "job.virtual_time = std::max(job.virtual_time, virtual_time_);", "", GRANT_POLICIES),
]


def copy_tree(to: pathlib.Path) -> None:
    """The tracked and untracked sources as they are now; no build folder."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True).stdout
    for name in listed.decode().split("\0"):
        source = ROOT / name
        if not name or not source.is_file():
            continue
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def run(command: list[str], folder: pathlib.Path, seconds: int | None = None) -> tuple[int, str]:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return -1, "timed out"


def try_one(mutation: Mutation, tree: pathlib.Path) -> str:
    """What is wrong with this mutation's guard; empty when the test noticed."""
    file = tree / mutation.file
    before = file.read_text()
    if before.count(mutation.original) != 1:
        return f"the text is in {mutation.file} {before.count(mutation.original)} times, not once"
    file.write_text(before.replace(mutation.original, mutation.mutated))
    try:
        code, output = run(["ninja", "-C", "build", mutation.test.split()[0]], tree)
        if code != 0:
            return "does not build: " + output[-600:]
        code, _ = run(mutation.test.split(), tree / "build", TEST_SECONDS)
        return "" if code != 0 else f"{mutation.test} passes"
    finally:
        file.write_text(before)


def prepare(tree: pathlib.Path, tests: list[str]) -> str:
    copy_tree(tree)
    # A mutated function may leave a parameter unused.
    options = ["-Ddpdk=disabled", "-Dtorch=disabled", "-Dwerror=false"]
    for command in (["meson", "setup", "build", *options],
                    ["ninja", "-C", "build", *(test.split()[0] for test in tests)]):
        code, output = run(command, tree)
        if code != 0:
            return output[-2000:]
    for test in tests:
        code, output = run(test.split(), tree / "build", TEST_SECONDS)
        if code != 0:
            return f"{test} fails without any mutation:\n{output[-2000:]}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="run those whose rule contains this text")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS if arguments.only in m.rule]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gradplane-mutate-") as folder:
        tree = pathlib.Path(folder)
        trouble = prepare(tree, sorted({m.test for m in chosen}))
        if trouble:
            print(f"cannot begin: {trouble}", file=sys.stderr)
            return 2
        for mutation in chosen:
            trouble = try_one(mutation, tree)
            failed += bool(trouble)
            print(f"{'MISSED' if trouble else 'caught'}  {mutation.rule}"
                  + (f": {trouble}" if trouble else ""), flush=True)
    print(f"{len(chosen) - failed} caught, {failed} missed")
    return 0 if failed == 0 and chosen else 1


if __name__ == "__main__":
    sys.exit(main())
