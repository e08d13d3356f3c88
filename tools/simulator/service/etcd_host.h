// SPDX-License-Identifier: Apache-2.0
// The etcd of a simulated cluster, in one process, where a real one has several: a crash loses
// nothing, and lets each lease begin again, as the election of another leader of etcd's processes
// does.
#pragma once

#include "absl/status/status.h"
#include "tools/simulator/service/role.h"
#include "tools/simulator/world/etcd.h"

namespace penstock::simulator {

class EtcdHost final : public Role {
 public:
  explicit EtcdHost(World& world) : Role(world, kEtcdHost) {}

  void SetFull(bool full) { state_.SetFull(full); }  // it has no room for what is put

 private:
  absl::Status Main(Life& life) override;

  EtcdState state_;  // of all lives
};

}  // namespace penstock::simulator
