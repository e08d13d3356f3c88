// SPDX-License-Identifier: Apache-2.0
// Chooses the readers that partitions serve (docs/exactly_once.md, rule 32), with the arithmetic of
// control/policy/audience.h. The core's lock guards it. Its one reason to change: when readers are
// added to a partition, and when it loses them.
//
// A partition gets its readers when it is assigned. Later on readers are only added. A partition
// loses readers when it is placed again for another reason: no partition moves only to close links.
// So a reader that began alone keeps its links until its partitions move or end.
#pragma once

#include <cstdint>
#include <map>

#include "control/dispatcher/shared_state.h"
#include "control/policy/audience.h"

namespace penstock::control {

class AudienceChooser {
 public:
  explicit AudienceChooser(const SharedState& shared) : shared_(shared) {}

  // Assigns the partition to the worker, for those of the worker's readers that have answered for
  // the partition's placement. The others are asked, and served once they have answered. If none
  // has answered, the nearest readers that have are served too. Returns false if no reader at all
  // has answered; then the partition waits for those that are asked. REQUIRES: it is assignable.
  bool Assign(Transaction& txn, const IterationState& iteration, PartitionId partition,
              WorkerId worker, const LinkRule& rule);
  // Adds readers to partitions where they need more. Looks at the partitions only if there may be
  // such a reader. REQUIRES: the iteration is not closed.
  void Extend(Transaction& txn, const IterationState& iteration, const LinkRule& rule);
  void Forget(IterationId iteration) { looked_.erase(iteration); }

 private:
  // What Extend() saw when it last looked at the partitions. If a reader's process, the number of
  // readers or the number of workers has changed since then, it looks again.
  struct Looked {
    uint64_t sessions = 0;  // Sessions::version()
    int64_t readers = 0;
    int64_t workers = 0;
    friend bool operator==(const Looked&, const Looked&) = default;
  };
  struct Last {
    Looked looked;
    uint64_t until = 0;  // IterationContext::placing_changes until which no reader needs more
  };

  const SharedState& shared_;
  std::map<IterationId, Last> looked_;
};

}  // namespace penstock::control
