// SPDX-License-Identifier: Apache-2.0
// Shared libraries outside the tree that bring something along: transports,
// plug-ins. Each says what it was built against, which is looked at before
// anything else of it is called, and then registers what it brings.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock {

// What such a library must have.
struct LibraryKind {
  const char* what;   // "transport library", in messages
  const char* stamp;  // its C function const char*(): what it was built against
  const char* enter;  // its C function void(absl::Status*): registers
  const char* macro;  // what defines both, in messages
  std::string ours;   // the stamp of this program
};

// Opens the library, unless it is open as one of that kind, and lets it register.
// NotFound if it cannot be opened; FailedPrecondition if it is none of that kind,
// or has another stamp than `ours` (both are named); else what registering says. What
// was opened stays so. Any thread.
absl::Status LoadLibrary(const std::string& path, const LibraryKind& kind);

}  // namespace penstock
