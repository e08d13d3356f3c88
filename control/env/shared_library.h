// SPDX-License-Identifier: Apache-2.0
// Opens shared libraries that are built outside Penstock's source tree and add transports or
// plug-ins. Each library has a stamp, which names the release against which it was built, and the
// compiler. The stamp is checked before any other function of the library is called. Then the
// library registers its additions.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock {

// One kind of such libraries, and the symbols that each library of this kind must have.
struct LibraryKind {
  const char* what;   // "transport library", in messages
  const char* stamp;  // its C function const char*(), which returns the library's stamp
  const char* enter;  // its C function void(absl::Status*), which registers the additions
  const char* macro;  // the macro that defines `stamp` and `enter`, for messages
  std::string ours;   // the stamp of this program
};

// Opens the library and lets it register its additions, unless it is already open as a library of
// this kind. NotFound if the library cannot be opened. FailedPrecondition if it is not of this
// kind, or if its stamp differs from `ours` (the error names both stamps). Otherwise returns the
// status of the registration. Once a library has been asked to register, it stays open, even if the
// registration fails. Any thread may call this.
absl::Status LoadLibrary(const std::string& path, const LibraryKind& kind);

}  // namespace penstock
