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
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "control/policy/audience.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/message_parts.h"
#include "control/state/state.h"

namespace penstock::control {

class AudienceChooser {
 public:
  // Applies a decision to the record, and sends its messages.
  using Apply = absl::FunctionRef<void(protocol::Decision)>;

  // `check_kept`: as in CoreOptions.
  explicit AudienceChooser(std::function<bool()> check_kept) : check_kept_(std::move(check_kept)) {}

  // Assigns the partition to the worker, for those of the worker's readers that have answered for
  // the partition's placement. The others are asked, and served once they have answered. If none
  // has answered, the nearest readers that have are served too. Returns false if no reader at all
  // has answered; then the partition waits for those that are asked. REQUIRES: it is assignable.
  static bool Assign(const protocol::IterationRecord& record, protocol::IterationContext& context,
                     PartitionId partition, WorkerId worker, const LinkRule& rule, Apply apply);
  // Adds readers to partitions where they need more. Looks at the partitions only if there may be
  // such a reader: a reader of the iteration has joined, restarted or gone, its share is larger, or
  // enough partitions have been assigned, ended or placed again. REQUIRES: the iteration is not
  // closed.
  void Extend(const IterationState& iteration, protocol::IterationContext& context,
              const LinkRule& rule, Apply apply);
  // REQUIRES: they are called after each change of the record, and after a partition has ended.
  void NoteChange(IterationId iteration, const protocol::IterationChange& change);
  void NoteEnded(const PartitionKey& partition);
  void Forget(IterationId iteration) { looked_.erase(iteration); }
  // How often Extend() has looked at the partitions.
  int64_t looks() const { return looks_; }

 private:
  // What Extend() saw when it last looked at the partitions.
  struct Looked {
    uint64_t reader_changes = 0;  // IterationContext::reader_changes
    int64_t readers = 0;          // that read
    LinkRule rule;
    int64_t counted = 0;  // as in MoreReaders
    uint64_t until = 0;   // IterationContext::placing_changes until which no reader needs more
    AudienceCounts counts;
    absl::flat_hash_set<PartitionId> changed;  // since they were counted
  };
  // Returns whether no reader needs more, by what Extend() saw.
  static bool AllHaveEnough(const Looked& last, const protocol::IterationContext& context,
                            const LinkRule& rule);

  const std::function<bool()> check_kept_;
  std::map<IterationId, Looked> looked_;
  int64_t looks_ = 0;
};

}  // namespace penstock::control
