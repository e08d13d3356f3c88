// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/coordinator/ack_states.h"

#include <algorithm>

namespace penstock::protocol {
namespace {

// Returns the position of the reader's entry, or the position at which it would be inserted.
auto FindEntry(auto& entries, size_t reader) {
  return std::lower_bound(
      entries.begin(), entries.end(), reader,
      [](const AckStates::Entry& entry, size_t position) { return entry.reader < position; });
}

}  // namespace

const AckState& AckStates::Of(size_t reader) const {
  static const AckState* const kNothing = new AckState;
  const auto found = FindEntry(entries_, reader);
  return found != entries_.end() && found->reader == reader ? found->ack : *kNothing;
}

AckState& AckStates::At(size_t reader) {
  auto found = FindEntry(entries_, reader);
  if (found == entries_.end() || found->reader != reader)
    found = entries_.insert(found, Entry{reader, {}});
  return found->ack;
}

bool AckStates::Has(size_t reader) const {
  const auto found = FindEntry(entries_, reader);
  return found != entries_.end() && found->reader == reader;
}

void AckStates::Erase(size_t reader) {
  const auto found = FindEntry(entries_, reader);
  if (found != entries_.end() && found->reader == reader) entries_.erase(found);
}

}  // namespace penstock::protocol
