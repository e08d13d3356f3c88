// SPDX-License-Identifier: Apache-2.0
// Another system, run by a program that speaks bench/wire.h.
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
  // Runs `launcher NAME` and tells it the setup. Returns when it has read its
  // first elements; its own words if it cannot.
  static absl::StatusOr<std::unique_ptr<Peer>> Start(const std::string& launcher,
                                                     const std::string& name, const Setup& setup);

  std::string name() const override { return name_; }
  const Roles& roles() const override { return roles_; }
  absl::StatusOr<Done> Read(double seconds) override;

  // What it says of itself: "system", "version", "protocol", "variant", "settings".
  // Empty for what it does not say; what is no text is there as JSON.
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
