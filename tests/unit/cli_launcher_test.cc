// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/launcher.h"

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::cli;

namespace {

Environment launched(const Environment& base, std::string_view launcher) {
  const auto environment = launched_environment(base, launcher);
  if (!environment) FAIL(environment.error().message);
  return environment.value();
}

std::string trouble(const Environment& base, std::string_view launcher) {
  const auto environment = launched_environment(base, launcher);
  REQUIRE(!environment);
  return environment.error().message;
}

const Environment kOpenMpi = {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
                              "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=4",
                              "PMIX_NAMESPACE=1234"};
const Environment kSlurm = {"SLURM_PROCID=5", "SLURM_NTASKS=8", "SLURM_LOCALID=1",
                            "SLURM_JOB_ID=77", "SLURM_JOB_NODELIST=gpu[07-10],login"};

}  // namespace

TEST_CASE("ranks of mpirun on one host find each other there") {
  const Environment found = launched(kOpenMpi, "openmpi");
  CHECK(value_of(found, "RANK") == "2");
  CHECK(value_of(found, "WORLD_SIZE") == "4");
  CHECK(value_of(found, "LOCAL_RANK") == "2");
  CHECK(value_of(found, "MASTER_ADDR") == "127.0.0.1");
  Environment other_job = kOpenMpi;
  other_job.back() = "PMIX_NAMESPACE=1235";
  CHECK(value_of(found, "MASTER_PORT") != value_of(launched(other_job, "openmpi"), "MASTER_PORT"));
  CHECK(value_of(found, "MASTER_PORT") == value_of(launched(kOpenMpi, "openmpi"), "MASTER_PORT"));
}

TEST_CASE("ranks of mpirun on several hosts are told where rank 0 is") {
  Environment base = kOpenMpi;
  base[3] = "OMPI_COMM_WORLD_LOCAL_SIZE=2";
  CHECK(trouble(base, "openmpi").find("set MASTER_ADDR") != std::string::npos);
  base.push_back("MASTER_ADDR=10.0.0.7");
  base.push_back("MASTER_PORT=4711");
  const Environment found = launched(base, "openmpi");
  CHECK(value_of(found, "MASTER_ADDR") == "10.0.0.7");
  CHECK(value_of(found, "MASTER_PORT") == "4711");
}

TEST_CASE("ranks of srun find the first host of their job") {
  const Environment found = launched(kSlurm, "slurm");
  CHECK(value_of(found, "RANK") == "5");
  CHECK(value_of(found, "WORLD_SIZE") == "8");
  CHECK(value_of(found, "LOCAL_RANK") == "1");
  CHECK(value_of(found, "MASTER_ADDR") == "gpu07");
}

TEST_CASE("the first host of a list") {
  CHECK(first_host("login") == "login");
  CHECK(first_host("a1,a2") == "a1");
  CHECK(first_host("gpu[07-12,20],login") == "gpu07");
  CHECK(first_host("gpu[3,5]-ib,x") == "gpu3-ib");
  CHECK(first_host("gpu[9]") == "gpu9");
  CHECK(first_host("gpu[9").empty());
  CHECK(first_host("").empty());
}

TEST_CASE("ranks of MPICH and of an indexed Job") {
  const Environment mpich = launched({"PMI_RANK=0", "PMI_SIZE=1", "MPI_LOCALRANKID=0"}, "mpich");
  CHECK(value_of(mpich, "RANK") == "0");
  CHECK(value_of(mpich, "MASTER_ADDR") == "127.0.0.1");
  CHECK(value_of(mpich, "MASTER_PORT") == "29500");
  const Environment base = {"JOB_COMPLETION_INDEX=3", "WORLD_SIZE=4", "MASTER_ADDR=train-0.train"};
  const Environment job = launched(base, "kubernetes");
  CHECK(value_of(job, "RANK") == "3");
  CHECK(value_of(job, "WORLD_SIZE") == "4");
  CHECK(value_of(job, "LOCAL_RANK").empty());
}

TEST_CASE("what a launcher did not say is named") {
  CHECK(trouble({}, "openmpi").find("OMPI_COMM_WORLD_RANK is not set") != std::string::npos);
  CHECK(trouble({"JOB_COMPLETION_INDEX=3"}, "kubernetes").find("set WORLD_SIZE") !=
        std::string::npos);
  CHECK(trouble({"PMI_RANK=x", "PMI_SIZE=2"}, "mpich").find("\"x\"") != std::string::npos);
  CHECK(trouble({"PMI_RANK=2", "PMI_SIZE=2"}, "mpich").find("PMI_RANK is 2") != std::string::npos);
  CHECK(trouble({}, "yarn").find("yarn") != std::string::npos);
}
