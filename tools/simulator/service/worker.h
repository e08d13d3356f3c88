// SPDX-License-Identifier: Apache-2.0
// A worker of a simulated cluster: the product's agent, tasks and partitions, with links of the
// transport "sim". worker_server.cc puts the same parts together.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tools/simulator/service/role.h"

namespace penstock::simulator {

class Worker final : public Role {
 public:
  using Role::Role;

 private:
  absl::Status Main(Life& life) override;
};

}  // namespace penstock::simulator
