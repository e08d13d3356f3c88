// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/file_access.h"

#include <string>
#include <utility>
#include <vector>

#include "control/env/allowed_files.h"
#include "control/env/path_lookup.h"
#include "control/protocol/host_port.h"
#include "include/status_macros.h"

namespace penstock::worker {
namespace {

constexpr char kSetItsFolder[] = "set --cache-dir (cache_dir) to its folder";

// Returns whether only processes on this machine reach a server that binds `host`. Other names
// count as reachable, even if they mean loopback now.
bool IsLoopback(const std::string& host) {
  const std::string plain = control::WithoutBrackets(host);
  const bool is_number = plain.find_first_not_of("0123456789.") == std::string::npos;
  return plain == "localhost" || plain == "::1" || (is_number && plain.starts_with("127."));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const FileAccess>> FileAccess::Of(const WorkerConfig& config) {
  auto access = std::make_shared<FileAccess>();
  const bool is_loopback = IsLoopback(config.host);
  if (!is_loopback || !config.files_allow.empty()) {
    ASSIGN_OR_RETURN(access->files_, MakeAllowedFiles(config.files_allow));
  }
  if (!is_loopback || !config.cache_dir.empty()) {
    std::vector<std::string> folders;
    if (!config.cache_dir.empty()) folders.push_back(config.cache_dir);
    const PathLookup lookup(std::move(folders), kSetItsFolder);
    access->cache_files_ = LocalFilesFor(lookup);
    access->cache_disk_ = LocalDiskFor(lookup);
  }
  return access;
}

}  // namespace penstock::worker
