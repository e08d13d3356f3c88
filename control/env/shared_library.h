// SPDX-License-Identifier: Apache-2.0
// Shared libraries, built outside the tree, that add transports or plug-ins. Each has a stamp that
// names the release and the compiler it was built with. The stamp is checked before anything else
// is called; then the library registers its additions.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock {

// The symbols that such a library must have.
struct LibraryKind {
  const char* what;   // "transport library", in messages
  const char* stamp;  // its C function const char*(): what it was built against
  const char* enter;  // its C function void(absl::Status*): registers
  const char* macro;  // the macro that defines `stamp` and `enter`, for messages
  std::string ours;   // the stamp of this program
};

// Opens the library, unless it is already open as one of that kind, and lets it register. NotFound
// if it cannot be opened; FailedPrecondition if it is not of that kind, or if its stamp differs
// from `ours` (with both stamps); otherwise the status of its registration. It stays open once it
// has been asked to register, even if that fails. Any thread.
absl::Status LoadLibrary(const std::string& path, const LibraryKind& kind);

}  // namespace penstock
