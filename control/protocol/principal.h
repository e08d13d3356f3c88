// SPDX-License-Identifier: Apache-2.0
// Who makes a request to the dispatcher (docs/security.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::control {

enum class Role : uint8_t { kTrainer = 1, kWorker = 2, kOperator = 3 };

// A user or service that the dispatcher's auth_file names. Jobs and datasets belong to the
// principal that created them; all processes of one principal have the same rights.
struct Principal {
  std::string name;  // not empty, unique in the file
  Role role = Role::kTrainer;
  std::vector<std::string> namespaces;  // that it may use; empty: all

  bool operator==(const Principal&) const = default;
};

// The sender of a request. nullopt: the dispatcher has no auth_file, so everything is allowed.
using Caller = std::optional<Principal>;

}  // namespace penstock::control
