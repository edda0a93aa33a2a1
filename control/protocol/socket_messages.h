// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "control/protocol/job_key.h"
#include "control/protocol/parsed.h"
#include "dataplane/model/element_type.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/plan_kind.h"

/// The messages of the control socket (docs/control-api.md), their encoding as one JSON object
/// each, and their parsing. No input makes parsing throw. Texts in a parsed message have no control
/// characters, except for the json of a reply, which the code that prints it must clean.
namespace gradplane::protocol {

inline constexpr std::uint32_t kSocketVersion = 1;
inline constexpr std::size_t kMaxSocketMessageBytes = std::size_t{64} << 10;
/// The most values of a client's message, counted by its brackets and commas, and their deepest
/// nesting. A message with more is refused before anything is built. The densest message is a table
/// of tensors without names, `{"offset":0,"elements":1},`, with three values in 26 bytes.
inline constexpr std::size_t kMaxClientValues = kMaxSocketMessageBytes / 6;
inline constexpr std::size_t kMaxClientDepth = 8;
/// While `ranks.require` is true there is a file with the socket's name and this suffix. It tells
/// those whom the kernel does not let connect that they must not go on without gradplane.
inline constexpr std::string_view kRequireFileSuffix = ".require";
/// The most ranks that a `waiting` names; missing_count counts the others, too.
inline constexpr std::size_t kMaxMissingNamed = 64;
inline constexpr std::size_t kMaxTensorNameBytes = 256;
inline constexpr std::size_t kMaxLabelBytes = 256;
inline constexpr std::size_t kMaxRunIdBytes = 64;
inline constexpr std::size_t kMaxReasonBytes = 512;
/// The most elements of a bucket: as many as a round can hold.
inline constexpr std::uint64_t kMaxBucketElements = kMaxRoundBytes / kMinElementBytes;

enum class Role : std::uint8_t { kRank, kOperator };

struct ClientHello {
  std::uint32_t version = kSocketVersion;  // any number; the server checks it
  Role role = Role::kRank;
  std::uint32_t pid = 0;
};
struct Attach {
  JobKey key{};
  std::uint32_t rank = 0;        // < world_size
  std::uint32_t world_size = 0;  // 1..kMaxRanks
  std::string label;             // may be left out
  std::string run_id;            // may be left out
};
struct BucketTensor {
  std::string name;  // may be empty
  std::uint64_t offset_elements = 0;
  std::uint64_t elements = 0;
};
/// The tensors from number `first` on, of the `total` tensors of a bucket, in the order of their
/// offsets and without overlap. A bucket that does not fit one message comes in several, in order.
struct RegisterBucket {
  std::uint32_t bucket = 0;  // 1..kMaxBuckets; each id is used for one bucket only
  ElementType element_type = ElementType::kFloat32;
  std::uint32_t total = 0;  // 1..kMaxTensorsPerBucket
  std::uint32_t first = 0;
  std::vector<BucketTensor> tensors;  // at least one
};
struct Detach {
  bool clean = false;
};
/// The drift of a rank's parameters from their mean over all ranks, in a job whose ranks exchange
/// updates. Both values are norms over all parameters, finite and not negative.
struct Drift {
  std::uint64_t step = 0;  // of the training, as the rank counts
  double distance = 0;     // from its parameters to the mean, before it took the mean
  double norm = 0;         // of the mean
};
struct StatusRequest {};
/// Asks for the bounds in force of one job. The answer has as many as fit, and says where the next
/// request goes on.
struct BoundsRequest {
  std::uint32_t job = 0;     // 0: the first job
  std::uint32_t bucket = 0;  // 0, or next_bucket of the last answer; a position, not an id
  std::uint32_t tensor = 0;  // 0, or next_tensor of the last answer
};
/// Asks for the last rounds of one job that were gathered here. The answer has as many as fit, and
/// says where the next request goes on.
struct RoundsRequest {
  std::uint32_t job = 0;    // 0: the first job
  std::uint32_t epoch = 0;  // that of the last answer, or 0; `after` counts only for this epoch
  std::uint64_t after = 0;  // next_after of the last answer, or 0: asks only for later rounds
  std::uint32_t last = 0;   // the largest number of rounds; the newest count
};
/// Asks for another plan for a job that runs. The answer comes when the plan is in force.
struct ReplanRequest {
  std::uint32_t job = 0;
  PlanKind plan = PlanKind::kStar;
  std::vector<std::string> roots;         // names of nodes, at most kMaxTrees; empty: as configured
  std::vector<std::string> without = {};  // nodes whose ranks are taken out; may be left out
};
/// Asks for the measured network and the trees over it, as the node knows them.
struct TopologyRequest {
  bool why = false;  // also compare the plans that all planners would make for each job
};
using ClientMessage =
    std::variant<ClientHello, Attach, RegisterBucket, Detach, Drift, StatusRequest, BoundsRequest,
                 RoundsRequest, ReplanRequest, TopologyRequest>;

struct DaemonHello {
  std::uint32_t version = kSocketVersion;
  std::string node;
  std::string software;
  bool require = false;  // may be left out: ranks here must not fall back (ranks.require)
};
/// Comes with descriptors: the memfd of the channel, the ringing end of the doorbell of the first
/// core that shares the job, the listening end of the rank's own doorbell, and the ringing ends of
/// the doorbells of the other cores.
struct Attached {
  std::uint32_t slot_count = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint32_t core_count = 1;
};
struct Waiting {
  std::vector<std::uint32_t> missing;  // at most kMaxMissingNamed
  std::uint32_t missing_count = 0;
  std::string reason;
};
struct Ready {
  std::uint32_t epoch = 0;
  std::uint32_t nodes = 0;
  std::uint32_t first_round = 0;  // the first that the rank submits; may be left out
  /// How many the plan has, at most kMaxSelections; 0: the job carries no exchanges. May be left
  /// out.
  std::uint32_t selections = 0;
  /// Steps between exact averages of the parameters where updates are exchanged; 0: never. May be
  /// left out.
  std::uint32_t average_every = 0;
  /// A result waits only for ranks that are more steps behind, and may hold older updates of
  /// others. At most kMaxStalenessSteps; 0: it waits for all. May be left out.
  std::uint32_t staleness = 0;
};
struct JobFailed {
  std::string reason;
};
struct StatusReply {
  std::string json;  // the text of a JSON object: what `gradplane status --json` prints
};
struct BoundsReply {
  std::string json;  // the text of a JSON object: telemetry::BoundsPage
};
struct RoundsReply {
  std::string json;  // the text of a JSON object: telemetry::RoundsPage
};
struct TopologyReply {
  std::string json;  // the text of a JSON object: telemetry::Topology
};
struct Replanned {
  std::uint32_t epoch = 0;             // of the plan in force now
  std::uint32_t activation_round = 0;  // its first round
  std::string text;                    // what has changed
};
struct SocketError {
  std::string reason;
  bool require = false;  // as in DaemonHello, for clients that are refused before it
};
using DaemonMessage = std::variant<DaemonHello, Attached, Waiting, Ready, JobFailed, StatusReply,
                                   BoundsReply, RoundsReply, TopologyReply, Replanned, SocketError>;

/// The text of a message. Lists and reasons that are too long are cut. A reply whose json is no
/// object, or is too long, becomes a SocketError that says so.
std::string encode(const ClientMessage& message);
std::string encode(const DaemonMessage& message);

/// Parses a message and checks the type and range of every member. Unknown members are ignored,
/// because newer peers may send them.
Parsed<ClientMessage> parse_client_message(std::string_view text);
Parsed<DaemonMessage> parse_daemon_message(std::string_view text);

}  // namespace gradplane::protocol
