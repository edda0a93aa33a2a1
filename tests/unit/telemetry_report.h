// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/telemetry/status.h"

namespace gradplane::telemetry {

/// The job of full_report().
inline JobStatus full_job() {
  JobStatus job;
  job.id = 0x3fa81c02;
  job.label = "train.py";
  job.run_id = "r1";
  job.epoch = 14;
  job.plan_kind = "star";
  job.plan_change = "epoch 15 is in force from round 900 on";
  job.mode = "selective-bsp";
  job.state = JobState::kFailed;
  job.reason = "rank 3 left";
  job.world_size = 4;
  job.joined_count = 2;
  job.missing = {1, 3};
  job.missing_count = 2;
  job.ranks = {{.rank = 0,
                .node = "w0",
                .joined = true,
                .attached = true,
                .pid = 77,
                .rounds_completed = 15},
               {.rank = 2,
                .node = "w2",
                .joined = true,
                .attached = false,
                .pid = 0,
                .rounds_completed = 0}};
  job.ranks_omitted = 16;
  job.groups = 39;
  job.group_receivers = 40;
  job.group_receivers_hear = 41;
  job.group_receivers_listen = 42;
  job.grant_policy = "weighted";
  job.grant_weight = 3.5;
  job.rounds_completed = 17;
  job.payload_bytes_reduced = 18;
  job.blocks_sent = 1000;
  job.blocks_received = 20;
  job.blocks_retransmitted = 10;
  job.blocks_suspected_lost = 22;
  job.blocks_duplicate = 23;
  job.blocks_routed = 26;
  job.blocks_relayed = 27;
  job.blocks_to_groups = 33;
  job.group_trials = 36;
  job.group_members_left = 34;
  job.group_members_deaf = 35;
  job.blocks_of_soundings = 28;
  job.sounding_packets_sent = 29;
  job.sounding_packets_received = 30;
  job.rounds_closed_early = 31;
  job.rounds_closed_deadline = 32;
  job.rounds_closed_absent = 33;
  job.blocks_missing = 34;
  job.blocks_late = 35;
  job.blocks_excluded = 36;
  job.blocks_carried = 37;
  job.carry_dropped = 38;
  job.parity_sent = job.parity_received = 42;
  job.blocks_recovered = 43;
  job.payload_bytes_sent = 39 << 10;
  job.payload_bytes_saved = 40 << 10;
  job.drops = {{"late", 24}};
  return job;
}

/// A report in which no field has its default value.
inline StatusReport full_report() {
  StatusReport r;
  r.node = "w0";
  r.software = "gradplaned 0.1.0";
  r.role = "relay";
  r.pid = 123;
  r.uptime_ns = 11520ULL * 1000000000;
  r.port = {.kind = "af_packet",
            .interface = "eth1",
            .address = "10.0.0.2/24",
            .mtu_bytes = 1500,
            .rx_datagrams = 1,
            .rx_bytes = 2,
            .tx_datagrams = 3,
            .tx_bytes = 4,
            .tx_lent = 78,
            .rx_missed = 5,
            .handed_over = 77,
            .groups = 38,
            .igmp_version = 3,
            .drops = {{"bad_header", 6}, {"not_for_us", 0}}};
  r.poll = {.idle = "adaptive",
            .iterations = 7,
            .busy_ns = 250,
            .total_ns = 1000,
            .sleeps = 9,
            .wakes = 4,
            .rx_bursts = 2,
            .tx_bursts = 3,
            .stage_ns = {{"receive", 30}, {"transmit", 50}, {"sum", 10}, {"submit", 10}},
            .cores = {{2, 47000, 41, 100, 5, 3, 4, 1}},
            .why_one_core = "a reason"};
  r.peers = {{.node = "agg",
              .address = "10.0.0.1",
              .state = "alive",
              .silence_ns = 40,
              .rtt_ns = 250000,
              .rtt_min_ns = 100000,
              .window_blocks = 64,
              .blocks_sent = 10,
              .blocks_retransmitted = 11,
              .blocks_lost = 12}};
  r.peers_omitted = 13;
  r.links = {{.node = "w3",
              .rate_bits_per_second = 70'400'000,
              .rate_is_lower_bound = true,
              .rate_confidence_percent = 80,
              .rate_age_ns = 2'000'000'000,
              .rtt_ns = 41'000'000,
              .rtt_age_ns = 1'500'000'000,
              .loss_ppm = 1200,
              .loss_confidence_percent = 45,
              .loss_age_ns = 3'000'000'000}};
  r.links_omitted = 14;
  r.jobs = {full_job()};
  r.drops = {{"unknown_job", 25}};
  r.control_rejected = {{"wrong_type", 26}};
  return r;
}

}  // namespace gradplane::telemetry
