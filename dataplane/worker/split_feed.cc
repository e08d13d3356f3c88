// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/split_feed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"

namespace penstock::worker {
namespace {

// The time for which the splits asked for should last. It is many times the dispatcher's response
// time, yet short enough that other workers can wait that long for a slow worker at the end of an
// epoch.
constexpr absl::Duration kAhead = absl::Milliseconds(100);
// The maximum number of splits per request; the dispatcher gives fewer if few are left.
constexpr int32_t kMostWanted = 16;

int32_t GoneThroughAhead(int64_t splits, absl::Duration in) {
  if (in * kMostWanted <= kAhead * splits) return kMostWanted;
  return std::max(1, static_cast<int32_t>(absl::FDivDuration(kAhead * splits, in)));
}

}  // namespace

PartitionSplits::PartitionSplits(std::vector<control::SplitRun> given, Ask ask, Waiting waiting,
                                 std::function<absl::Time()> now)
    : ask_(std::move(ask)), waiting_(std::move(waiting)), now_(std::move(now)) {
  for (const control::SplitRun& run : given) {
    List& list = lists_[{run.provider, run.repetition}];
    if (list.numbers.empty()) list.first = run.first_ordinal;
    AppendLocked(run);
  }
}

std::optional<int64_t> PartitionSplits::QuestionAfter(List& list, int64_t ordinal, bool needed) {
  const int64_t left = list.end() - ordinal - 1;
  if (list.no_more || list.asked || left > list.last_run / 2) return std::nullopt;
  if (!needed && list.last_run <= 1) return std::nullopt;
  list.asked = true;
  if (const int64_t through = ordinal - list.paced_from; through > 0) {
    list.wanted = GoneThroughAhead(through, now_() - list.paced_since);
  }
  PaceFrom(list, ordinal);
  return list.end();
}

void PartitionSplits::PaceFrom(List& list, int64_t ordinal) {
  list.paced_from = ordinal;
  list.paced_since = now_();
}

absl::StatusOr<std::optional<int64_t>> PartitionSplits::Get(int provider, int64_t repetition,
                                                            int64_t ordinal) {
  MutexLock lock(mu_);
  bool waits = false;
  absl::StatusOr<std::optional<int64_t>> answer = std::nullopt;
  while (!TryGetLocked(provider, repetition, ordinal, answer)) {
    // Checks again after each call made without the lock, because the answer may have arrived in
    // the meantime.
    List& list = lists_[{provider, repetition}];
    if (std::optional<int64_t> question = QuestionAfter(list, ordinal, /*needed=*/true)) {
      const int32_t wanted = list.wanted;
      lock.unlock();
      ask_(provider, repetition, *question, wanted);
      lock.lock();
    } else if (!waits) {
      waits = true;
      lock.unlock();
      waiting_(true);
      lock.lock();
    } else {
      changed_.Wait(lock);
    }
  }
  std::optional<int64_t> ahead;
  List& list = lists_[{provider, repetition}];
  if (waits) PaceFrom(list, ordinal);
  if (answer.ok() && answer->has_value()) ahead = QuestionAfter(list, ordinal, /*needed=*/false);
  const int32_t wanted = list.wanted;
  lock.unlock();
  if (ahead) ask_(provider, repetition, *ahead, wanted);
  if (waits) waiting_(false);
  return answer;
}

bool PartitionSplits::TryGetLocked(int provider, int64_t repetition, int64_t ordinal,
                                   absl::StatusOr<std::optional<int64_t>>& answer) {
  const List& list = lists_[{provider, repetition}];
  if (cancelled_) {
    answer = absl::CancelledError("the partition was stopped while it waited for splits");
  } else if (ordinal < list.first) {
    answer = absl::NotFoundError(absl::StrCat(
        "split ordinal ", ordinal, " of provider ", provider, ", repetition ", repetition,
        ", was retired; the partition keeps splits from ordinal ", list.first, " on"));
  } else if (ordinal < list.end()) {
    answer = std::optional<int64_t>(list.numbers[ordinal - list.first]);
  } else if (list.no_more) {
    answer = std::optional<int64_t>();
  } else {
    return false;
  }
  return true;
}

void PartitionSplits::Append(const control::SplitRun& run) {
  std::optional<int64_t> again;
  int32_t wanted = 0;
  {
    MutexLock lock(mu_);
    List& list = lists_[{run.provider, run.repetition}];
    wanted = list.wanted;
    if (!AppendLocked(run) && list.asked) again = list.end();
  }
  changed_.NotifyAll();
  if (again) ask_(run.provider, run.repetition, *again, wanted);
}

bool PartitionSplits::AppendLocked(const control::SplitRun& run) {
  List& list = lists_[{run.provider, run.repetition}];
  const int64_t end = list.end();
  if (run.first_ordinal > end) return false;
  const int64_t run_end = run.first_ordinal + static_cast<int64_t>(run.numbers.size());
  if (run_end > end) {
    list.numbers.insert(list.numbers.end(), run.numbers.end() - (run_end - end), run.numbers.end());
    list.last_run = run_end - end;
    list.asked = false;
  }
  if (run.no_more && run_end == list.end()) {
    list.no_more = true;
    list.asked = false;
  }
  return true;
}

void PartitionSplits::Forget(absl::Span<const control::SplitMark> needed) {
  MutexLock lock(mu_);
  for (const control::SplitMark& mark : needed) {
    const auto kept = lists_.lower_bound({mark.provider, mark.repetition});
    lists_.erase(lists_.lower_bound({mark.provider, 0}), kept);
    if (kept == lists_.end() || kept->first != Source{mark.provider, mark.repetition}) continue;
    List& list = kept->second;
    const int64_t passed = std::clamp<int64_t>(mark.ordinal, list.first, list.end()) - list.first;
    list.numbers.erase(list.numbers.begin(), list.numbers.begin() + passed);
    list.first += passed;
  }
}

void PartitionSplits::AskAgain() {
  std::map<Source, List> asked;
  {
    MutexLock lock(mu_);
    asked = lists_;
  }
  for (const auto& [source, list] : asked) {
    if (list.asked) ask_(source.first, source.second, list.end(), list.wanted);
  }
}

void PartitionSplits::Cancel() {
  {
    MutexLock lock(mu_);
    cancelled_ = true;
  }
  changed_.NotifyAll();
}

}  // namespace penstock::worker
