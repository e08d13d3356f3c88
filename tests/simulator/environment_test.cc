// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/environment.h"

#include <cstdlib>

#include "control/env/launchers.h"
#include "gtest/gtest.h"

namespace penstock::simulator {
namespace {

TEST(Environment, ForgetsSettingsAndLaunchers) {
  for (const char* name : {"PENSTOCK_TIMEOUT", "UCX_TLS", "MASTER_ADDR", "MASTER_PORT"}) {
    setenv(name, "1", /*overwrite=*/1);
  }
  for (const Launcher& launcher : kLaunchers) {
    setenv(launcher.rank, "1", /*overwrite=*/1);
    setenv(launcher.world, "2", /*overwrite=*/1);
    setenv(launcher.launch, "3", /*overwrite=*/1);
    if (launcher.local_world != nullptr) setenv(launcher.local_world, "2", /*overwrite=*/1);
  }
  setenv("UNRELATED", "stays", /*overwrite=*/1);
  ForgetEnvironment();
  for (const char* name : {"PENSTOCK_TIMEOUT", "UCX_TLS", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_EQ(std::getenv(name), nullptr) << name;
  }
  for (const Launcher& launcher : kLaunchers) {
    for (const char* name :
         {launcher.rank, launcher.world, launcher.local_world, launcher.launch}) {
      if (name == nullptr) continue;
      EXPECT_EQ(std::getenv(name), nullptr) << name;
    }
  }
  EXPECT_STREQ(std::getenv("UNRELATED"), "stays");
}

TEST(Environment, PrintsNoEventsUnlessTold) {
  unsetenv("PENSTOCK_EVENTS");
  ForgetEnvironment();
  EXPECT_STREQ(std::getenv("PENSTOCK_EVENTS"), "off");
  setenv("PENSTOCK_EVENTS", "on", /*overwrite=*/1);
  ForgetEnvironment();
  EXPECT_STREQ(std::getenv("PENSTOCK_EVENTS"), "on");
}

}  // namespace
}  // namespace penstock::simulator
