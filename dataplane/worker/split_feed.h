// SPDX-License-Identifier: Apache-2.0
// The splits of one partition under one placement: the splits in its assignment, which were
// journaled earlier, and the splits that the dispatcher hands out later.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/worker_messages.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/graph/split.h"

namespace penstock::worker {

// Asks the dispatcher for splits when fewer than half of the last run are left, so that the
// partition rarely waits for splits. Asks for the number of splits that the partition uses in a
// tenth of a second, so that a slow worker holds no splits that other workers could have begun. If
// splits come one at a time, asks for each split when it is needed. Thread-safe.
class PartitionSplits final : public SplitFeed {
 public:
  // Asks for `wanted` more splits, from `first_ordinal` on. The answer comes later, through
  // Append(). Called without locks, on the thread that is in Get(), Append() or AskAgain(). Must
  // not wait.
  using Ask =
      std::function<void(int provider, int64_t repetition, int64_t first_ordinal, int32_t wanted)>;
  // Called when Get() begins to wait (true) and when it stops waiting (false).
  using Waiting = std::function<void(bool begins)>;

  PartitionSplits(std::vector<control::SplitRun> given, Ask ask, Waiting waiting,
                  std::function<absl::Time()> now);

  // NotFound for an ordinal below the first that the assignment kept; Cancelled after Cancel().
  absl::StatusOr<std::optional<int64_t>> Get(int provider, int64_t repetition,
                                             int64_t ordinal) override;

  // Adds the dispatcher's answer. Splits that are already known are not added again. A run that
  // leaves a gap is dropped and asked for again.
  void Append(const control::SplitRun& run);
  // Forgets the splits before the marks in `needed`. Get() will not be called for these splits
  // again.
  void Forget(absl::Span<const control::SplitMark> needed);
  // Repeats the unanswered questions, because the session was renewed.
  void AskAgain();
  // Makes every waiting or later Get() return Cancelled. Takes no stop token, because this is also
  // called at the end of a partition that nobody stopped.
  void Cancel();

 private:
  using Source = std::pair<int, int64_t>;  // provider, repetition
  struct List {
    int64_t first = 0;  // ordinal of numbers.front()
    std::vector<int64_t> numbers;
    int64_t last_run = 0;  // size of the last run
    bool no_more = false;
    bool asked = false;
    int32_t wanted = 1;  // number of splits in the last request
    // The time at which the partition began to use the splits from `paced_from` on. It has not
    // waited for splits since.
    int64_t paced_from = 0;
    absl::Time paced_since;
    int64_t end() const { return first + static_cast<int64_t>(numbers.size()); }
  };

  // Returns false if the answer is not known yet.
  bool TryGetLocked(int provider, int64_t repetition, int64_t ordinal,
                    absl::StatusOr<std::optional<int64_t>>& answer) REQUIRES(mu_);
  // Returns the first ordinal to ask for, now that `ordinal` is needed (`needed`) or was read, and
  // marks the list as asked; nullopt if there is no need to ask.
  std::optional<int64_t> QuestionAfter(List& list, int64_t ordinal, bool needed) REQUIRES(mu_);
  void PaceFrom(List& list, int64_t ordinal) REQUIRES(mu_);
  bool AppendLocked(const control::SplitRun& run) REQUIRES(mu_);  // false: it leaves a gap

  const Ask ask_;
  const Waiting waiting_;
  const std::function<absl::Time()> now_;
  Mutex mu_;
  Condition changed_;
  std::map<Source, List> lists_ GUARDED_BY(mu_);
  bool cancelled_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::worker
