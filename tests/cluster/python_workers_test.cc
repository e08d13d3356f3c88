// SPDX-License-Identifier: Apache-2.0
// Workers that run functions written in Python, each with its own config. PYTHON is an interpreter
// with NumPy, FUNCTIONS the folder of doubling.py.
#include <cstdlib>

#include "dataplane/dataset/expr/python_host.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset Mapped(int64_t count, const std::string& function) {
  return Dataset::Range(count).Map([&](Expr x) {
    return CallPython({.name = absl::StrCat("doubling:", function),
                       .pickle = "",
                       .version = "",
                       .call = R"({"kind": "map", "input": ["t", [0]], "output": 0,)"
                               R"( "dtypes": ["int64"], "shapes": [[]]})"},
                      Scalar(kInt64), /*deterministic=*/true, x);
  });
}

Dataset Doubled(int64_t count) {
  return Mapped(count, "doubled");
}

WorkerConfig WithPython() {
  WorkerConfig config;
  config.python = 1;
  config.python_command = PYTHON;
  config.python_path = {FUNCTIONS};
  return config;
}

TEST(PythonWorkers, DifferInOneProcess) {
  Cluster with(0);
  with.AddWorker(WithPython());
  Cluster without(1);
  const auto read = [](const Cluster& cluster) {
    return Doubled(4).Distribute(cluster.Options(ShardingPolicy::kOff));
  };
  EXPECT_THAT(ReadAll(read(with)), ElementsAre(0, 2, 4, 6));
  const absl::Status refused = FirstError(read(without));
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("setting python"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("doubling:doubled"));
  EXPECT_THAT(ReadAll(read(with)), ElementsAre(0, 2, 4, 6)) << "whoever was started last";
}

TEST(PythonWorkers, RunNothingForReadersInTheSameProcess) {
  Cluster cluster(0);
  cluster.AddWorker(WithPython());
  const absl::Status refused = FirstError(Doubled(4));
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("this process"));
}

TEST(PythonWorkers, AdmitTheModulesOfTheirConfigAlone) {
  Cluster cluster(0);
  WorkerConfig config = WithPython();
  config.python_allow = {"elsewhere"};
  cluster.AddWorker(config);
  const absl::Status refused =
      FirstError(Doubled(4).Distribute(cluster.Options(ShardingPolicy::kOff)));
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("python-allow"));
}

TEST(PythonWorkers, GetOnlyNamedVariables) {
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  setenv("PENSTOCK_METRICS_TOKEN", "secret", 1);
  setenv("MY_DATA", "/data", 1);
  const auto seen = [](std::vector<std::string> python_env) {
    Cluster cluster(0);
    WorkerConfig config = WithPython();
    config.python_env = std::move(python_env);
    cluster.AddWorker(config);
    return ReadAll(Mapped(1, "secrets_seen").Distribute(cluster.Options(ShardingPolicy::kOff)));
  };
  EXPECT_THAT(seen({}), ElementsAre(0));
  EXPECT_THAT(seen({"MY_DATA"}), ElementsAre(100));
  EXPECT_THAT(seen({"MY_DATA", "AWS_SECRET_ACCESS_KEY"}), ElementsAre(101));
  for (const char* name : {"AWS_SECRET_ACCESS_KEY", "PENSTOCK_METRICS_TOKEN", "MY_DATA"}) {
    unsetenv(name);
  }
}

TEST(PythonWorkers, RefuseAConfigThatMakesNoSenseAndAnInterpreterThatIsNotThere) {
  Cluster cluster(0);
  WorkerConfig config = WithPython();
  config.dispatcher_address = cluster.service();
  config.python = -1;
  absl::Status refused = WorkerServer::Start(config).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("python is -1"));
  config.python = 1;
  config.python_env = {"AWS_REGION=eu"};
  refused = WorkerServer::Start(config).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("python_env contains 'AWS_REGION=eu'"));
  config.python_env = {};
  config.python_command = "/nowhere/python3";
  refused = WorkerServer::Start(config).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/nowhere/python3"));
}

}  // namespace
}  // namespace penstock
