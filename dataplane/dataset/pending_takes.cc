// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/pending_takes.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

thread_local PendingTakes* current = nullptr;

}  // namespace

absl::Status PendingTakes::Take() {
  absl::Status first;
  absl::Span<const PendingTake> rest = takes_;
  while (!rest.empty()) {  // those of one source in a row go together
    const auto end = std::find_if(rest.begin(), rest.end(), [&](const PendingTake& take) {
      return take.from != rest.front().from;
    });
    const size_t count = static_cast<size_t>(end - rest.begin());
    first.Update(rest.front().from->OnTaken(rest.first(count)));
    rest.remove_prefix(count);
  }
  takes_.clear();
  return first;
}

void PendingTakes::GoOn() {
  if (takes_.empty()) return;
  if (current == nullptr) return Take().IgnoreError();  // whoever gave them says it again
  current->Append(*this);
  takes_.clear();
}

PendingTakes* PendingTakes::Current() {
  return current;
}

PendingTakes::Scope::Scope(PendingTakes* into) : before_(std::exchange(current, into)) {}

PendingTakes::Scope::~Scope() {
  current = before_;
}

}  // namespace penstock
