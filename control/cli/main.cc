// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <string>

#include "control/cli/bounds_command.h"
#include "control/cli/build_adapter_command.h"
#include "control/cli/check_config_command.h"
#include "control/cli/daemon_client.h"
#include "control/cli/exit_codes.h"
#include "control/cli/launcher.h"
#include "control/cli/output.h"
#include "control/cli/plan_command.h"
#include "control/cli/replan_command.h"
#include "control/cli/rounds_command.h"
#include "control/cli/run.h"
#include "control/cli/status_command.h"
#include "control/cli/topology_command.h"
#include "control/config/config.h"
#include "control/telemetry/rounds.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/plan_kind.h"

namespace gradplane::cli {
namespace {

constexpr const char* kDescription =
    "gradplane: run trainers through gradplane, watch its daemon, check its configuration.";
constexpr const char* kExitCodes =
    "Exit codes: 0 ok; 1 failure; 2 wrong usage. `run` exits as its command does, with 126 or 127\n"
    "when the command cannot be run or is not there, and with 3 when --verify finds that the\n"
    "command succeeded but nothing went through gradplane.\n"
    "Environment: GRADPLANE_SOCKET (the daemon's socket), GRADPLANE_DAEMON_UID (the daemon's user, "
    "if\n"
    "it is neither root nor you), GRADPLANE_LIB_DIR (where libgradplane_preload.so is), NO_COLOR.";

class Program {
 public:
  Program() : app_(kDescription, "gradplane") {
    app_.footer(kExitCodes);
    app_.require_subcommand(1);
    app_.set_version_flag("--version", version_line());
    run_.socket_path = status_.socket_path = default_socket_path();
    bounds_.socket_path = rounds_.socket_path = default_socket_path();
    replan_.socket_path = topology_.socket_path = default_socket_path();
    add_run();
    add_build_adapter();
    add_status();
    add_flows();
    add_bounds();
    add_rounds();
    add_replan();
    add_plan();
    add_topology();
    add_check_config();
    add_others();
  }

  ChildEnd main(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      // Help and version are "errors" that succeed.
      const bool asked = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
      if (!asked && argc > 1 && app_.get_subcommands().empty() && argv[1][0] != '-') {
        complain(std::string("there is no command '") + argv[1] + "'");
      }
      app_.exit(error);
      return {.exit_code = asked ? kExitOk : kExitUsage, .signal = 0};
    }
    return action_();
  }

 private:
  static std::string version_line() { return "gradplane " GRADPLANE_VERSION; }

  /// Sets what main() does after parsing if this command is given.
  template <typename Action>
  void on(CLI::App* command, Action action) {
    command->callback([this, action] { action_ = action; });
  }

  static ChildEnd ended(int exit_code) { return {.exit_code = exit_code, .signal = 0}; }

  static CLI::IsMember plan_kinds() {
    return CLI::IsMember(std::vector<std::string>(kPlanKindNames.begin(), kPlanKindNames.end()));
  }

  static CLI::Option* add_socket(CLI::App* command, std::string& path) {
    return command->add_option("--socket", path, "Control socket of the daemon")
        ->capture_default_str();
  }

  void add_run() {
    CLI::App* command = app_.add_subcommand("run", "Run a command with gradplane attached to it");
    command->footer("Example: gradplane run --verify -- python3 train.py");
    CLI::Option* socket = add_socket(command, run_.socket_path);
    CLI::Option* config = command->add_option(
        "--config", run_.config_path,
        "The daemon's configuration: takes control.socket and ranks.require from it");
    config->excludes(socket);
    command->add_option("--node", run_.node, "With --config: as this node of the cluster")
        ->needs(config);
    command->add_option("--job", run_.job,
                        "Name of the job, for people and for lines of the configuration that are "
                        "about single jobs; else the script's");
    command
        ->add_option("--launcher", run_.launcher,
                     "Give the command RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, "
                     "from what this launcher has set for the rank")
        ->check(
            CLI::IsMember(std::vector<std::string>(kLauncherNames.begin(), kLauncherNames.end())));
    command->add_flag("--require", run_.require,
                      "Fail the training instead of falling back to the original collectives");
    command->add_flag("--verify", run_.verify,
                      "Stay until the command ends, and say whether gradplane carried anything");
    command->add_flag("--verbose", run_.verbose, "Let every process print its counters at its end");
    command->add_option("command", run_.command, "The command and its arguments, after --")
        ->required();
    // Everything from the first word of the command on belongs to the command.
    command->positionals_at_end();
    command->prefix_command(false);
    on(command, [this] { return run_command(run_); });
  }

  void add_build_adapter() {
    CLI::App* command = app_.add_subcommand(
        "build-adapter", "Build what attaches gradplane to the PyTorch of another Python");
    command->footer("Example: gradplane build-adapter --python ~/venv/bin/python");
    command->add_option("--python", adapter_.python, "The Python that has PyTorch")
        ->capture_default_str();
    command->add_option("--output", adapter_.output,
                        "A folder, for GRADPLANE_ADAPTER_DIR (default: where `gradplane run` looks "
                        "for adapters)");
    command->add_option(
        "--include", adapter_.includes,
        "A folder with headers that the compiler does not find: those of Gloo for a "
        "wheel of PyTorch, or nlohmann/json");
    on(command, [this] { return ended(build_adapter(adapter_)); });
  }

  void add_status() {
    CLI::App* command =
        app_.add_subcommand("status", "Show jobs, ranks, losses and peers of this host's daemon");
    add_socket(command, status_.socket_path);
    command->add_flag("--json", json_, "Print JSON");
    command->add_flag("--watch", status_.watch,
                      "Ask again every second; the text shows what the poll loops did meanwhile");
    on(command, [this] {
      status_.format = json_ ? StatusFormat::kJson : StatusFormat::kText;
      return ended(show_status(status_));
    });
    CLI::App* metrics =
        app_.add_subcommand("metrics", "Print the daemon's counters as OpenMetrics");
    add_socket(metrics, status_.socket_path);
    on(metrics, [this] {
      status_.format = StatusFormat::kOpenMetrics;
      return ended(show_status(status_));
    });
  }

  void add_flows() {
    CLI::App* command = app_.add_subcommand(
        "flows", "Show what each job sends to each node, how fast, and what limits it");
    add_socket(command, status_.socket_path);
    command->add_flag("--json", json_, "Print JSON");
    command->add_flag("--watch", status_.watch, "Ask again every second");
    on(command, [this] {
      status_.format = json_ ? StatusFormat::kFlowsJson : StatusFormat::kFlows;
      return ended(show_status(status_));
    });
  }

  void add_bounds() {
    CLI::App* command = app_.add_subcommand(
        "bounds", "Show how much rounds may miss of each tensor, and what they missed");
    add_socket(command, bounds_.socket_path);
    command->add_option("--job", bounds_.job, "Of this job only, by its id (see status)");
    command->add_flag("--json", bounds_.json, "Print JSON");
    on(command, [this] { return ended(show_bounds(bounds_)); });
  }

  void add_rounds() {
    CLI::App* command = app_.add_subcommand(
        "rounds", "Show the last rounds that were gathered here under loss bounds, one by one");
    command->footer(
        "A row says why a round was closed, how long after its first block, and what was missing\n"
        "of which node and tensor. A node tells of the rounds that it gathers as root: of a\n"
        "sharded plan each has its part, so ask them all.");
    add_socket(command, rounds_.socket_path);
    command->add_option("--job", rounds_.job, "Of this job only, by its id (see status)");
    command->add_option("--last", rounds_.last, "So many of each job at most, the newest")
        ->check(CLI::Range(std::size_t{1}, telemetry::kKeptRounds))
        ->capture_default_str();
    command->add_flag("--json", rounds_.json,
                      "Print JSON; with --follow a line whenever rounds have come");
    command->add_flag("--follow", rounds_.follow, "Go on with what comes, until Ctrl-C");
    on(command, [this] { return ended(show_rounds(rounds_)); });
  }

  void add_replan() {
    CLI::App* command = app_.add_subcommand("replan", "Give a job that runs another plan");
    command->footer(
        "Example: gradplane replan 1a2b3c4d --plan star --root agg\n"
        "Training goes on meanwhile. The answer comes when all nodes have the new plan, or says "
        "why\n"
        "the plan in force stays.");
    add_socket(command, replan_.socket_path);
    command->add_option("job", replan_.job, "The job, by its id (see status)")->required();
    command->add_option("--plan", replan_.plan, "What kind of plan")
        ->required()
        ->check(plan_kinds());
    command
        ->add_option("--root", replan_.roots,
                     "Nodes that may be roots, instead of those that the configuration names")
        ->expected(1, kMaxTrees);
    command->add_option(
        "--without", replan_.without,
        "Nodes whose ranks are taken out of the job (see ranks.elastic; not for torch)");
    on(command, [this] { return ended(replan(replan_)); });
  }

  void add_plan() {
    CLI::App* command = app_.add_subcommand(
        "plan", "Show what planners make of a network: predicted times, trees and shares");
    command->footer(
        "Example: gradplane plan --network configs/wan.yaml --bytes 98MiB --brief\n"
        "Nobody is asked and nothing is changed: it plans with what the file says.");
    command->add_option("--network", plan_.network_path, "A configuration with a section network")
        ->required();
    command->add_option("--plan", plan_.plan, "Only this kind of plan")->check(plan_kinds());
    command->add_option("--bytes", plan_.bytes,
                        "What an all_reduce carries, with a unit; else network.bytes of the file");
    command->add_option("--ranks", plan_.ranks,
                        "Nodes with a rank; else those without aggregate: true, or all");
    command->add_flag("--brief", plan_.brief, "Without the trees and auxiliary routes");
    on(command, [this] { return ended(show_plans(plan_)); });
  }

  void add_topology() {
    CLI::App* command = app_.add_subcommand(
        "topology",
        "Draw the measured links and the trees over them, or say why a job has its plan");
    command->footer(
        "Example: gradplane topology --format svg > topology.svg\n"
        "A node knows the links to itself and the plans of its own jobs. --why plans over the\n"
        "network of the file of the daemon that is asked, so ask at the coordinator.");
    add_socket(command, topology_.socket_path);
    CLI::Option* format =
        command->add_option("--format", topology_.format, "text, dot (graphviz), svg or json")
            ->check(CLI::IsMember(
                std::vector<std::string>(kTopologyFormats.begin(), kTopologyFormats.end())))
            ->capture_default_str();
    command->add_flag("--sites", topology_.sites, "A place for each site, not for each node");
    command->add_flag("--why", topology_.why,
                      "What each planner is predicted to reach, and why the plan in force stays");
    on(command, [this, format] {
      const bool drawn = topology_.format == "dot" || topology_.format == "svg";
      if (topology_.why && drawn) {
        complain("--why is told as text or json, not as " + topology_.format + "; leave " +
                 format->get_name() + " out");
        return ended(kExitUsage);
      }
      return ended(show_topology(topology_));
    });
  }

  void add_check_config() {
    CLI::App* command = app_.add_subcommand("check-config", "Check configuration files");
    command->add_option("file", check_.files, "Files to check")->required();
    command->add_option("--node", check_.node, "Check as this node of the cluster");
    command->add_flag("--effective", check_.effective,
                      "Print every value in force and where it comes from");
    on(command, [this] { return ended(check_config(check_)); });
  }

  void add_others() {
    on(app_.add_subcommand("version", "Print the version"),
       [] { return ended(print(version_line() + "\n")); });
    CLI::App* reference =
        app_.add_subcommand("generate-config-reference", "Print docs/config-reference.md");
    reference->group("");  // for developers: not in --help
    on(reference, [] { return ended(print(config::reference_markdown())); });
  }

  CLI::App app_;
  RunOptions run_;
  BuildAdapterOptions adapter_;
  StatusOptions status_;
  BoundsOptions bounds_;
  RoundsOptions rounds_;
  ReplanOptions replan_;
  PlanOptions plan_;
  TopologyOptions topology_;
  CheckConfigOptions check_;
  bool json_ = false;
  std::function<ChildEnd()> action_;
};

}  // namespace
}  // namespace gradplane::cli

int main(int argc, char** argv) {
  namespace cli = gradplane::cli;
  cli::ChildEnd end{.exit_code = cli::kExitFailure, .signal = 0};
  try {
    end = cli::Program().main(argc, argv);
  } catch (const std::exception& error) {
    cli::complain(error.what());
  }
  if (end.signal != 0) cli::end_like(end);
  return end.exit_code;
}
