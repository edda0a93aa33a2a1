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

/// The messages of the control socket (docs/control-api.md): one JSON object each. Values in, text
/// out, and back. Nothing here throws on input, and a text that got through parsing holds no
/// control character (save the json of a reply: who prints it cleans it).
namespace gradplane::protocol {

inline constexpr std::uint32_t kSocketVersion = 1;
inline constexpr std::size_t kMaxSocketMessageBytes = std::size_t{64} << 10;
/// Values that a client's message may have, counted by its brackets and commas, and how deep they
/// may be nested: for more nothing is built. The densest message is a table of tensors without
/// names, `{"offset":0,"elements":1},`: three for 26 bytes.
inline constexpr std::size_t kMaxClientValues = kMaxSocketMessageBytes / 6;
inline constexpr std::size_t kMaxClientDepth = 8;
/// A file of the socket's name and this is there while `ranks.require` is true: it tells those whom
/// the kernel refuses.
inline constexpr std::string_view kRequireFileSuffix = ".require";
/// Ranks that a `waiting` names; missing_count counts the others too.
inline constexpr std::size_t kMaxMissingNamed = 64;
inline constexpr std::size_t kMaxTensorNameBytes = 256;
inline constexpr std::size_t kMaxLabelBytes = 256;
inline constexpr std::size_t kMaxRunIdBytes = 64;
inline constexpr std::size_t kMaxReasonBytes = 512;
/// Elements of a bucket: what a round holds.
inline constexpr std::uint64_t kMaxBucketElements = kMaxRoundBytes / kMinElementBytes;

enum class Role : std::uint8_t { kRank, kOperator };

struct ClientHello {
  std::uint32_t version = kSocketVersion;  // any number: who reads it decides
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
/// Tensors first, first + 1, ... of the `total` that lie in a bucket: in the order of their
/// offsets, without overlap. A bucket that does not fit one message comes in parts, one behind the
/// other.
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
/// How far a rank's parameters were from their mean over all ranks, in a job whose ranks exchange
/// updates. Both are norms over all parameters: finite, and not negative.
struct Drift {
  std::uint64_t step = 0;  // of the training, as the rank counts
  double distance = 0;     // of its own from the mean, before it took the mean over
  double norm = 0;         // of the mean
};
struct StatusRequest {};
/// The bounds in force of one job: the answer holds as many as fit, and where to ask on.
struct BoundsRequest {
  std::uint32_t job = 0;     // 0: the first there is
  std::uint32_t bucket = 0;  // 0, or next_bucket of the last answer; a position, not an id
  std::uint32_t tensor = 0;  // 0, or next_tensor of the last answer
};
/// The last rounds of one job that were gathered here: the answer holds as many as fit, and after
/// which to ask on.
struct RoundsRequest {
  std::uint32_t job = 0;    // 0: the first there is
  std::uint32_t epoch = 0;  // 0, or that of the last answer; of another one `after` says nothing
  std::uint64_t after = 0;  // 0, or next_after of the last answer: only rounds that came later
  std::uint32_t last = 0;   // so many at most: the newest
};
/// Another plan for a job that runs. The answer comes when it is in force.
struct ReplanRequest {
  std::uint32_t job = 0;
  PlanKind plan = PlanKind::kStar;
  std::vector<std::string> roots;         // names of nodes, at most kMaxTrees; none: as configured
  std::vector<std::string> without = {};  // nodes whose ranks are taken out; may be left out
};
/// The measured network and the trees over it, as the node knows them.
struct TopologyRequest {
  bool why = false;  // with what all planners would make of each job
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
/// Comes with descriptors: channel memfd, an end each of the doorbell of the first core that shares
/// the job (to ring) and of the rank's (to listen), and of those of the other cores (to ring).
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
  std::uint32_t first_round = 0;  // that the rank submits; may be left out
  /// Of the job's plan, at most kMaxSelections; 0: it carries no exchanges. May be left out.
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
  bool require = false;  // as in hello, for who is refused before it
};
using DaemonMessage = std::variant<DaemonHello, Attached, Waiting, Ready, JobFailed, StatusReply,
                                   BoundsReply, RoundsReply, TopologyReply, Replanned, SocketError>;

/// The text of a message. Over-long lists and reasons are cut to their bound; a reply whose json is
/// no object, or is too long, becomes a SocketError that says so.
std::string encode(const ClientMessage& message);
std::string encode(const DaemonMessage& message);

/// Checks every member: type and range. Unknown members are tolerated, for newer peers.
Parsed<ClientMessage> parse_client_message(std::string_view text);
Parsed<DaemonMessage> parse_daemon_message(std::string_view text);

}  // namespace gradplane::protocol
