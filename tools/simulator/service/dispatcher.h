// SPDX-License-Identifier: Apache-2.0
// The dispatcher of a simulated cluster: the product's core over its log journal on a simulated
// disk, served at the port of world/port.h.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/core_options.h"
#include "control/env/fake_disk.h"
#include "tools/simulator/service/role.h"
#include "tools/simulator/service/world.h"
#include "tools/simulator/world/disk.h"

namespace penstock::simulator {

class Dispatcher final : public Role {
 public:
  explicit Dispatcher(World& world) : Role(world, kDispatcherHost) {}

  // The disk forgets data that were not synced. Call it after Crash().
  void LosePower();
  // Between these calls the disk has no room. The calls are counted.
  void FillDisk();
  void FreeDisk();

 private:
  absl::Status Main(Life& life) override;
  void OnKilled() override;
  // Lets the shadow compare the core's own state, and compares what the core keeps in it with what
  // it would compute.
  void CompareState(const Life& life, control::Core& core);
  control::CoreOptions Options(Life& life, absl::Status& failure);

  FakeDisk device_;          // of all lives
  SimDisk* disk_ = nullptr;  // of the present life
  int fills_ = 0;            // calls of FillDisk() without FreeDisk()
};

}  // namespace penstock::simulator
