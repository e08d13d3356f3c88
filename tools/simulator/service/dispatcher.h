// SPDX-License-Identifier: Apache-2.0
// A dispatcher of a simulated cluster: the product's core over its log journal on a simulated disk,
// served at the port of world/port.h. If there are several dispatchers, the product's leadership
// elects the one that serves, and the journal is in etcd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/core_options.h"
#include "control/env/fake_disk.h"
#include "control/journal/journal.h"
#include "control/leadership/leadership.h"
#include "tools/simulator/service/role.h"
#include "tools/simulator/service/world.h"
#include "tools/simulator/world/disk.h"

namespace penstock::simulator {

class Dispatcher final : public Role {
 public:
  // `number`: counted from 1.
  Dispatcher(World& world, int number) : Role(world, DispatcherHost(number)) {}

  // The disk forgets data that were not synced. Call it after Crash().
  void LosePower();
  void SetFull(bool full);  // the disk has no room
  // The number of the latest election that it has won in this life; 0: none, or it is the only one.
  uint64_t term() const { return term_; }

 private:
  using End = std::function<void(const absl::Status& why)>;

  absl::Status Main(Life& life) override;
  void OnKilled() override;
  std::unique_ptr<control::Leadership> MakeLeadership(const Life& life) const;
  // Opens the journal in etcd.
  absl::StatusOr<std::unique_ptr<control::Journal>> OpenJournal(
      const Life& life, const control::Leadership& leadership) const;
  // Lets the shadow compare the core's own state, and compares what the core keeps in it with what
  // it would compute. `number`: of the life, for the shadow.
  void CompareState(const Life& life, uint64_t number, control::Core& core);
  // `leadership`: null if there are no standbys. `end` ends the process, with a reason.
  control::CoreOptions Options(const Life& life, const control::Leadership* leadership, End end);

  FakeDisk device_;          // of all lives
  SimDisk* disk_ = nullptr;  // of the present life
  uint64_t term_ = 0;
};

}  // namespace penstock::simulator
