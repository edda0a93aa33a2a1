// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <vector>

#include "control/daemon/poll_thread.h"
#include "dataplane/api/commands.h"
#include "dataplane/engine/engine.h"
#include "dataplane/ipc/doorbell.h"

namespace gradplane::daemon {

/// A poll core: an engine on its queue of the port, the thread that runs it, and the queues and
/// doorbell by which the control thread and ranks reach it.
struct Core {
  ipc::Doorbell doorbell;  // ranks ring the poll loop
  api::CommandQueue commands{api::kQueueEntries};
  api::EventQueue events{api::kQueueEntries};
  api::ReportQueue reports{api::kReportQueueEntries};
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<PollThread> poll;
  std::unique_ptr<api::EngineSnapshot> snapshot;  // null while the poll loop owns it
};
using Cores = std::vector<std::unique_ptr<Core>>;

/// The command queues, by core.
inline std::vector<api::CommandQueue*> commands_of(const Cores& cores) {
  std::vector<api::CommandQueue*> queues;
  for (const auto& core : cores) queues.push_back(&core->commands);
  return queues;
}

}  // namespace gradplane::daemon
