// SPDX-License-Identifier: Apache-2.0
// Who makes a request to the dispatcher (docs/security.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::control {

enum class Role : uint8_t { kTrainer = 1, kWorker = 2, kOperator = 3 };

// Returns the role's name, as the auth_file spells it.
constexpr std::string_view ToText(Role role) {
  return role == Role::kTrainer ? "trainer" : role == Role::kWorker ? "worker" : "operator";
}

// A user or service that the dispatcher's auth_file names. Jobs and datasets belong to the
// principal that created them; all processes of one principal have the same rights.
struct Principal {
  std::string name;  // not empty, unique in the file
  Role role = Role::kTrainer;
  std::vector<std::string> namespaces;  // that it may use; empty: all. None for a worker

  bool operator==(const Principal&) const = default;
};

// The sender of a request. nullopt: the dispatcher has no auth_file, so everything is allowed.
using Caller = std::optional<Principal>;

}  // namespace penstock::control
