// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/environment.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::cli;

namespace {

const RunSettings kSettings{.preload_library = "/lib/libgradplane_preload.so",
                            .socket_path = "/run/s",
                            .run_id = "r1",
                            .job = "",
                            .report_path = "",
                            .require = false,
                            .verbose = false};

Environment made(const Environment& base, const RunSettings& settings = kSettings) {
  const auto environment = run_environment(base, settings);
  REQUIRE(environment.ok());
  return environment.value();
}

}  // namespace

TEST_CASE("the preload library goes before what is preloaded already") {
  CHECK(value_of(made({}), "LD_PRELOAD") == "/lib/libgradplane_preload.so");
  CHECK(value_of(made({"LD_PRELOAD=a.so:b.so"}), "LD_PRELOAD") ==
        "/lib/libgradplane_preload.so:a.so:b.so");
  CHECK(value_of(made({"LD_PRELOAD="}), "LD_PRELOAD") == "/lib/libgradplane_preload.so");
}

TEST_CASE("a path that the dynamic linker would split is refused") {
  for (const char* path : {"/my lib/x.so", "/a:b/x.so"}) {
    RunSettings settings = kSettings;
    settings.preload_library = path;
    CHECK_FALSE(run_environment({}, settings).ok());
  }
}

TEST_CASE("gradplane's variables are set once and the others stay") {
  RunSettings settings = kSettings;
  settings.require = settings.verbose = true;
  settings.report_path = "/tmp/%p";
  settings.job = "bert";
  const Environment made_here = made(
      {"PATH=/bin", "GRADPLANE_SOCKET=/old", "GRADPLANE_SOCKET=/older", "X", "GRADPLANE_SOCKETS=z"},
      settings);
  CHECK(std::count_if(made_here.begin(), made_here.end(), [](const std::string& entry) {
          return entry.starts_with("GRADPLANE_SOCKET=");
        }) == 1);
  CHECK(value_of(made_here, "GRADPLANE_SOCKET") == "/run/s");
  CHECK(value_of(made_here, "GRADPLANE_SOCKETS") == "z");
  CHECK(value_of(made_here, "GRADPLANE_REQUIRE") == "1");
  CHECK(value_of(made_here, "GRADPLANE_VERBOSE") == "1");
  CHECK(value_of(made_here, "GRADPLANE_REPORT") == "/tmp/%p");
  CHECK(value_of(made_here, "GRADPLANE_JOB") == "bert");
  CHECK(value_of(made_here, "PATH") == "/bin");
}

TEST_CASE("what is not asked for is left as the user set it") {
  const Environment made_here = made({"GRADPLANE_REQUIRE=1", "GRADPLANE_REPORT=/r",
                                      "GRADPLANE_RUN_ID=shared", "GRADPLANE_JOB=bert"});
  CHECK(value_of(made_here, "GRADPLANE_JOB") == "bert");
  CHECK(value_of(made_here, "GRADPLANE_REQUIRE") == "1");
  CHECK(value_of(made_here, "GRADPLANE_REPORT") == "/r");
  CHECK(value_of(made_here, "GRADPLANE_RUN_ID") == "shared");
  CHECK(value_of(made({}), "GRADPLANE_RUN_ID") == "r1");
  CHECK(value_of(made({}), "GRADPLANE_REQUIRE").empty());
}

TEST_CASE("where the preload library is looked for") {
  CHECK(preload_candidates({}, "/opt/bin") ==
        std::vector<std::string>{"/opt/bin/../lib/gradplane/libgradplane_preload.so",
                                 "/opt/bin/../../trainer-shim/preload/libgradplane_preload.so"});
  CHECK(preload_candidates({"GRADPLANE_LIB_DIR=/x"}, "/opt/bin") ==
        std::vector<std::string>{"/x/libgradplane_preload.so"});
}

TEST_CASE("adapters are built from the sources beside the program, to where the shim looks") {
  const auto found = adapter_builder_candidates({}, "/opt/bin");
  REQUIRE(found.size() == 2);
  CHECK(found[0].script == "/opt/bin/../share/gradplane/source/trainer-shim/dist/build_adapter.py");
  CHECK(found[0].adapter_folder == "/opt/bin/../lib/gradplane");
  CHECK(found[1].script == "/opt/bin/../../../trainer-shim/dist/build_adapter.py");
  CHECK(found[1].adapter_folder == "/opt/bin/../../trainer-shim/torch");
  for (const auto& builder : adapter_builder_candidates({"GRADPLANE_LIB_DIR=/x"}, "/opt/bin")) {
    CHECK(builder.adapter_folder == "/x");
  }
}
