// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/split_feed.h"

#include "absl/strings/str_cat.h"

namespace penstock::worker {

PartitionSplits::PartitionSplits(std::vector<control::SplitRun> given, Ask ask, Waiting waiting)
    : ask_(std::move(ask)), waiting_(std::move(waiting)) {
  for (const control::SplitRun& run : given) {
    List& list = lists_[{run.provider, run.repetition}];
    if (list.numbers.empty()) list.first = run.first_ordinal;
    AppendLocked(run);
  }
}

std::optional<int64_t> PartitionSplits::QuestionAfter(List& list, int64_t ordinal) {
  const int64_t left = list.end() - ordinal - 1;
  if (list.no_more || list.asked || left > list.last_run / 2) return std::nullopt;
  list.asked = true;
  return list.end();
}

absl::StatusOr<std::optional<int64_t>> PartitionSplits::Get(int provider, int64_t repetition,
                                                            int64_t ordinal) {
  std::unique_lock lock(mu_);
  bool waits = false;
  absl::StatusOr<std::optional<int64_t>> answer = std::nullopt;
  while (!TryGetLocked(provider, repetition, ordinal, answer)) {
    // Look once more after each call out of the lock: the answer may be there.
    if (std::optional<int64_t> question = QuestionAfter(lists_[{provider, repetition}], ordinal)) {
      lock.unlock();
      ask_(provider, repetition, *question);
      lock.lock();
    } else if (!waits) {
      waits = true;
      lock.unlock();
      waiting_(true);
      lock.lock();
    } else {
      changed_.wait(lock);
    }
  }
  std::optional<int64_t> ahead;
  if (answer.ok() && answer->has_value())
    ahead = QuestionAfter(lists_[{provider, repetition}], ordinal);
  lock.unlock();
  if (ahead) ask_(provider, repetition, *ahead);
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
        ", was retired; the partition keeps them from ", list.first, " on"));
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
  {
    std::lock_guard lock(mu_);
    List& list = lists_[{run.provider, run.repetition}];
    if (!AppendLocked(run) && list.asked) again = list.end();
  }
  changed_.notify_all();
  if (again) ask_(run.provider, run.repetition, *again);
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

void PartitionSplits::AskAgain() {
  std::vector<std::pair<Source, int64_t>> questions;
  {
    std::lock_guard lock(mu_);
    for (const auto& [source, list] : lists_)
      if (list.asked) questions.emplace_back(source, list.end());
  }
  for (const auto& [source, first] : questions) ask_(source.first, source.second, first);
}

void PartitionSplits::Cancel() {
  {
    std::lock_guard lock(mu_);
    cancelled_ = true;
  }
  changed_.notify_all();
}

}  // namespace penstock::worker
