// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/plugins.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "include/status_macros.h"
#include "penstock/plugin.h"

namespace penstock::worker {
namespace {

using std::filesystem::path;

path Resolved(const std::string& name) {
  std::error_code error;
  path resolved = std::filesystem::canonical(name, error);
  return error ? path(name) : resolved;
}

// Returns true if `file` is `place`, or is inside the folder `place`, at any depth.
bool LiesIn(const path& file, const path& place) {
  return std::mismatch(place.begin(), place.end(), file.begin(), file.end()).first == place.end();
}

}  // namespace

absl::Status LoadPlugins(const std::vector<std::string>& paths,
                         const std::vector<std::string>& allowed) {
  for (const std::string& name : paths) {
    const path file = Resolved(name);
    const bool may = allowed.empty() ||
                     std::any_of(allowed.begin(), allowed.end(), [&](const std::string& place) {
                       return LiesIn(file, Resolved(place));
                     });
    if (!may) {
      return absl::PermissionDeniedError(absl::StrCat(
          "the plug-in ", file.string(), " is not one of those that the worker's setting ",
          "plugin-allow permits: ", absl::StrJoin(allowed, ", ")));
    }
    // Passes the whole path, because the loader would search other folders for a bare name.
    RETURN_IF_ERROR(LoadPlugin(file.string()));
  }
  return absl::OkStatus();
}

}  // namespace penstock::worker
