// SPDX-License-Identifier: Apache-2.0
// Reports when ports of a device go up and down, from libibverbs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::transfer::verbs {

struct Library;

struct PortChange {
  int port = 0;  // from 1
  bool active = false;
};

// Keeps the device and its stream of events open. One thread at a time.
class PortWatch {
 public:
  // NotFound if there is no such device, PermissionDenied if it may not be opened, and the errors
  // of ListDevices().
  static absl::StatusOr<std::unique_ptr<PortWatch>> Open(const std::string& device);
  static absl::StatusOr<std::unique_ptr<PortWatch>> Open(const std::string& device,
                                                         const Library& library);
  virtual ~PortWatch() = default;

  // Becomes readable when there is an event. Valid as long as this object lives.
  virtual int fd() const = 0;

  // Returns the next event, or nullopt if there is none yet; never waits. Unavailable once the
  // device itself has failed or has been removed.
  virtual absl::StatusOr<std::optional<PortChange>> Next() = 0;
};

}  // namespace penstock::transfer::verbs
