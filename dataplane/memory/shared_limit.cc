// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/shared_limit.h"

#include <atomic>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/env/launchers.h"
#include "dataplane/memory/usable_memory.h"

namespace penstock {
namespace {

// Returns the number of processes that a launcher has started on this machine; 1 if there is no
// launcher or if it does not report this number.
int64_t LocalProcesses() {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.local_world == nullptr) continue;
    const char* text = std::getenv(launcher.local_world);
    int64_t processes = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &processes) && processes > 0) return processes;
  }
  return 1;
}

struct Limit {
  std::atomic<int64_t> max{UsableMemory() / 2 / LocalProcesses()};
  std::atomic<int64_t> reserved{0};
};

Limit& TheLimit() {
  static Limit& limit = *new Limit;  // segments may live in other statics
  return limit;
}

}  // namespace

void SetMaxSharedBytes(int64_t bytes) {
  TheLimit().max = bytes;
}

absl::Status ReserveShared(int64_t bytes) {
  Limit& limit = TheLimit();
  int64_t reserved = limit.reserved.load();
  do {
    if (bytes > limit.max - reserved) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a shared segment of ", bytes, " bytes does not fit: ", reserved, " of ",
                       limit.max.load(), " bytes are in use; release elements"));
    }
  } while (!limit.reserved.compare_exchange_weak(reserved, reserved + bytes));
  return absl::OkStatus();
}

void ReleaseShared(int64_t bytes) {
  TheLimit().reserved -= bytes;
}

int64_t ReservedSharedBytes() {
  return TheLimit().reserved.load();
}

}  // namespace penstock
