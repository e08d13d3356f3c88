// SPDX-License-Identifier: Apache-2.0
// Files for programs that open files which other people name: only those that a list allows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/disk.h"
#include "control/env/files.h"
#include "control/env/path_lookup.h"

namespace penstock {

// Returns the files of DefaultFiles() that the list `allowed` admits. Each entry is one of:
// - a folder or file of this machine, "/data/" or "file:///data/" (path_lookup.h says how links are
//   treated);
// - "s3://bucket/", "http://host/path/", "https://host/path/": the names that begin with it;
// - "s3://", "http://", "https://": all names of this scheme.
// An entry ends at a whole part of the name: "/data" does not admit "/database".
//
// HTTP requests are checked again at each redirect and at each connection (remote/guard.h).
// All other names get PermissionDenied, which says the flag to add, before anything is touched.
// InvalidArgument for an entry that has none of these forms.
absl::StatusOr<std::unique_ptr<Files>> MakeAllowedFiles(const std::vector<std::string>& allowed);

// Ends the error about a file that a dataset may not read on a worker.
inline constexpr char kAllowItsFolder[] = "add its folder to --files-allow (files_allow)";

// Returns the local files, or the disk, that `lookup` shows. Files that a limited disk makes can be
// read by this user only.
std::unique_ptr<Files> LocalFilesFor(PathLookup lookup);
std::unique_ptr<Disk> LocalDiskFor(PathLookup lookup);

}  // namespace penstock
