// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/child.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "control/cli/exit_codes.h"
#include "control/cli/output.h"

namespace gradplane::cli {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : kForwarded) sigaddset(&signals, number);
  sigaddset(&signals, SIGCHLD);
  return signals;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

bool has_ended(pid_t child, ChildEnd& end) {
  int status = 0;
  const pid_t waited = waitpid(child, &status, WNOHANG);
  if (waited == 0 || (waited < 0 && errno == EINTR)) return false;
  if (waited < 0) {
    end.exit_code = kExitFailure;
  } else if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    end.exit_code = kExitSignalBase + end.signal;
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return true;
}

}  // namespace

Environment own_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

int exec_command(const std::vector<std::string>& command, const Environment& environment) {
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  execvpe(arguments[0], arguments.data(), variables.data());
  const int error_number = errno;
  complain(fmt::format("cannot run {}: {}", command[0], std::strerror(error_number)));
  return error_number == ENOENT ? kExitNotFound : kExitCannotRun;
}

ChildEnd run_child(const std::vector<std::string>& command, const Environment& environment) {
  const sigset_t watched = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &watched, &before);
  // The process that started us may have ignored SIGCHLD. Then we could wait for no child.
  struct sigaction child_action {};
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &default_action, &child_action);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    complain(fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
    return {.exit_code = kExitFailure, .signal = 0};
  }
  if (child == 0) {
    // The command must end with this process, as it does when this process becomes the command.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kExitFailure);
    sigaction(SIGCHLD, &child_action, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    _exit(exec_command(command, environment));
  }
  ChildEnd end;
  while (!has_ended(child, end)) {
    siginfo_t info{};
    const int number = sigwaitinfo(&watched, &info);
    // A signal from the terminal has reached the child already: its whole foreground group gets it.
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) kill(child, number);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return end;
}

void end_like(const ChildEnd& end) {
  if (end.signal != 0) {
    // The child has written a core file; this process needs none.
    const rlimit no_core{};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(end.signal, SIG_DFL);
    raise(end.signal);
  }
  std::_Exit(end.exit_code);
}

}  // namespace gradplane::cli
