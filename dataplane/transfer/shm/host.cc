// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/host.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "control/env/disk.h"
#include "dataplane/transfer/shm/send_end.h"

namespace penstock::transfer::shm {
namespace {

std::string FirstLine(const char* path) {
  const std::string text = LocalDisk().Read(path).value_or("");
  const std::string line = text.substr(0, text.find('\n'));
  return line.empty() ? "unknown" : line;
}

std::string Target(const char* path) {
  char target[128];
  const ssize_t bytes = ::readlink(path, target, sizeof(target));
  return bytes > 0 ? std::string(target, bytes) : "unknown";
}

// The meaning of a difference in each field of a description, in order.
constexpr const char* kDifferences[] = {
    "speaks other versions of the protocol",
    "is on a different machine",
    "is in a different network namespace, so its Unix socket cannot be reached",
    "is in a different user namespace",
    "is in a different PID namespace, so its exit could not be detected",
    "is in a different IPC namespace, so it is not meant to share memory",
    "runs as a different user",
};

bool ShareAVersion(std::string_view theirs, std::string_view ours) {
  const absl::StatusOr<LinkVersions> our = ParseLinkVersions(ours);
  return our.ok() && CheckOffer(theirs, *our).ok();
}

}  // namespace

std::string DescribeHost() {
  return absl::StrCat(ToString(kShmVersions), " ", FirstLine("/proc/sys/kernel/random/boot_id"),
                      " ", Target("/proc/self/ns/net"), " ", Target("/proc/self/ns/user"), " ",
                      Target("/proc/self/ns/pid"), " ", Target("/proc/self/ns/ipc"),
                      " uid:", ::geteuid());
}

absl::Status CheckSameHost(std::string_view theirs, std::string_view ours) {
  const std::vector<std::string> their = absl::StrSplit(std::string(theirs), ' ');
  const std::vector<std::string> our = absl::StrSplit(std::string(ours), ' ');
  for (size_t i = 0; i < std::size(kDifferences); ++i) {
    if (i < their.size() && i < our.size() &&
        (i == 0 ? ShareAVersion(their[i], our[i]) : their[i] == our[i])) {
      continue;
    }
    return absl::NotFoundError(absl::StrCat("the worker ", kDifferences[i]));
  }
  return absl::OkStatus();
}

}  // namespace penstock::transfer::shm
