// SPDX-License-Identifier: Apache-2.0
#include "control/sync/start_thread.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock {

absl::Status NoThread(std::string_view name, std::string_view why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      std::string(name), ": the process cannot start another thread (", std::string(why),
      "); use fewer parallel calls, or give it more (ulimit -u, ulimit -v, the "
      "container's limit)"));
}

}  // namespace penstock
