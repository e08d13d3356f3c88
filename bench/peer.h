// SPDX-License-Identifier: Apache-2.0
// A side of another system, run by a program that speaks bench/wire.h.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/process.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

class Peer final : public Side {
 public:
  // Runs `launcher NAME` and sends it the setup. Returns when it has read its first elements; the
  // program's own error if it cannot.
  static absl::StatusOr<std::unique_ptr<Peer>> Start(const std::string& launcher,
                                                     const std::string& name, const Setup& setup);

  std::string name() const override { return name_; }
  const Roles& roles() const override { return roles_; }
  absl::StatusOr<Done> Read(double seconds) override;

  // Returns a field of its description: "system", "version", "protocol", "variant" or "settings".
  // "" for a missing field; JSON for a field that is not text.
  std::string About(const std::string& field) const;

 private:
  Peer(std::string name, std::unique_ptr<Process> process)
      : name_(std::move(name)), process_(std::move(process)) {}

  std::string name_;
  std::unique_ptr<Process> process_;
  Roles roles_;
  std::map<std::string, std::string> about_;
};

}  // namespace penstock::bench
