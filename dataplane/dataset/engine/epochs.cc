// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/epochs.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/functional/function_ref.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/graph/graph.h"

namespace penstock {
namespace {

Mutex& TheMutex() {
  static Mutex& mutex = *new Mutex;
  return mutex;
}

bool DrawsInEachEpoch(const Dataset::Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(), [](const auto& attr) {
    const auto& [name, value] = attr;
    const bool says = name == "reshuffle_each_iteration" || name == "rerandomize_each_iteration" ||
                      name == "shuffle";
    const bool* yes = says ? std::get_if<bool>(&value) : nullptr;
    return yes != nullptr && *yes;
  });
}

void ForCounted(const Dataset& dataset, absl::FunctionRef<void(int64_t& epochs)> visit)
    REQUIRES(TheMutex()) {
  VisitNodes(*NodeOf(dataset), [&](const Dataset::Node& node, int) {
    if (&node == NodeOf(dataset).get() || DrawsInEachEpoch(node)) visit(node.kept.epochs);
  });
}

}  // namespace

int64_t BeginEpoch(const Dataset& dataset) {
  MutexLock lock(TheMutex());
  int64_t epoch = 0;
  ForCounted(dataset, [&](int64_t& epochs) { epoch = std::max(epoch, epochs); });
  ForCounted(dataset, [&](int64_t& epochs) { epochs = epoch + 1; });
  return epoch;
}

void GoOnInEpoch(const Dataset& dataset, int64_t from, int64_t to) {
  MutexLock lock(TheMutex());
  ForCounted(dataset, [&](int64_t& epochs) { epochs = NextEpoch(epochs, from, to); });
}

}  // namespace penstock
