// SPDX-License-Identifier: Apache-2.0
// Lets the fake GPUs work by themselves while the program's tests run.
#include <gtest/gtest.h>

#include <optional>

#include "tests/dataplane/replica/fake_gpus.h"

namespace penstock {
namespace {

class WorkingGpus final : public testing::Environment {
 public:
  void SetUp() override { running_.emplace(); }
  void TearDown() override { running_.reset(); }

 private:
  std::optional<RunningGpus> running_;
};

[[maybe_unused]] const testing::Environment* const kWorking =
    testing::AddGlobalTestEnvironment(new WorkingGpus);

}  // namespace
}  // namespace penstock
