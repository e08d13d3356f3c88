// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/lanes_used.h"

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"

namespace penstock::transfer::ucx {
namespace {

struct Used {
  Mutex mu;
  std::set<std::string> lanes GUARDED_BY(mu);
};

Used& OfProcess() {
  static Used& used = *new Used;
  return used;
}

}  // namespace

void NoteLanes(const std::vector<Worker::Lane>& lanes) {
  Used& used = OfProcess();
  MutexLock lock(used.mu);
  for (const Worker::Lane& lane : lanes) {
    used.lanes.insert(absl::StrCat(lane.transport, "/", lane.device));
  }
}

std::set<std::string> LanesOfProcess() {
  Used& used = OfProcess();
  MutexLock lock(used.mu);
  return used.lanes;
}

}  // namespace penstock::transfer::ucx
