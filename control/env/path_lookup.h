// SPDX-License-Identifier: Apache-2.0
// Looks up paths on this machine's file system: all of them, or only paths in allowed folders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/env/descriptor.h"

namespace penstock {

// Any thread may call any method.
//
// A lookup in allowed folders starts at the allowed folder that the path begins with. It opens one
// component at a time, relative to the folder before it, and never lets the kernel follow a link.
// It reads a link's text and looks that up in the same way. This guarantees:
//
// - The entry that is opened is the entry that was checked. If a link is swapped during a lookup,
//   the lookup may fail, but it does not leave the allowed folders.
// - Links and ".." may lead from one allowed folder to another.
// - The lookup touches nothing outside the allowed folders. So its error is the same for a path
//   outside whether or not a file exists there.
//
// A hard link is a file like any other: a file that has a name in an allowed folder is allowed.
//
// Links in the path of an allowed folder itself are followed when the lookup is made. They are
// followed again only when the folder to which they led is missing, or a link has taken its place.
// So only the operator should be able to write above an allowed folder, and a link that is changed
// has no effect as long as its old target is there.
class PathLookup {
 public:
  // A name in an open folder. Pass all three to openat() and the like.
  struct Entry {
    Descriptor folder;
    std::string name;
    int flags = 0;  // O_NOFOLLOW if `name` must not be followed as a link
  };

  // Allows all paths.
  PathLookup() = default;
  // Allows the folders and files `allowed`, and the contents of the folders. They need not exist
  // yet; a relative one begins at the present working directory. `remedy` ends the error for all
  // other paths.
  PathLookup(const std::vector<std::string>& allowed, std::string remedy);

  bool limited() const { return roots_ != nullptr; }
  // Returns the entry that `path` names, which may be missing. A relative path begins at the
  // working directory. PermissionDenied "<path> is not allowed on this worker: <remedy>" outside
  // the allowed folders; NotFound if the folder of the entry is missing; the error of CheckPath().
  absl::StatusOr<Entry> Find(const std::string& path) const;

 private:
  class Roots;

  std::shared_ptr<Roots> roots_;  // null: all paths are allowed. Copies share it
  std::string remedy_;
};

// Returns InvalidArgument if `path` contains a NUL byte. The system would end the path there, so it
// would open another file than the file that was checked.
absl::Status CheckPath(const std::string& path);

}  // namespace penstock
