// SPDX-License-Identifier: Apache-2.0
// Ports of a device that go up and down, as libibverbs reports them.
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

// Holds the device open, and with it the stream of its events. One thread at a
// time.
class PortWatch {
 public:
  // NotFound if there is no such device, PermissionDenied if it may not be opened,
  // and what ListDevices() fails with.
  static absl::StatusOr<std::unique_ptr<PortWatch>> Open(const std::string& device);
  static absl::StatusOr<std::unique_ptr<PortWatch>> Open(const std::string& device,
                                                         const Library& library);
  virtual ~PortWatch() = default;

  // Becomes readable when there is an event. Lives as long as this object.
  virtual int fd() const = 0;

  // What has happened next, or nothing yet; never waits. Unavailable when the
  // device itself has failed or was taken out, and ever after.
  virtual absl::StatusOr<std::optional<PortChange>> Next() = 0;
};

}  // namespace penstock::transfer::verbs
