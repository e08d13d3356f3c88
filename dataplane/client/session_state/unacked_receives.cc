// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/unacked_receives.h"

#include <map>
#include <utility>

namespace penstock::client {

std::vector<transfer::Holding> UnackedReceives::Unreported() const {
  std::map<std::pair<PartitionId, Placement>, IndexSet> untold;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    untold[{run.partition, run.placement}].Add(run.begin, run.end);
  }
  std::vector<transfer::Holding> holdings;
  holdings.reserve(untold.size());
  for (auto& [of, indices] : untold) holdings.push_back({of.first, of.second, std::move(indices)});
  return holdings;
}

void UnackedReceives::OnDialled() {
  granted_ = used_ = received_ = reported_ = 0;
  grants_ = {};
}

void UnackedReceives::OnGranted(int64_t count) {
  grants_.Push({.before = granted_, .reported = reported_});
  granted_ += count;
}

void UnackedReceives::OnRecalled(int64_t count) {
  used_ += count;
  ForgetReported();
}

void UnackedReceives::OnReceived(const Identity& identity, bool here) {
  if (received_ == 0) runs_ = {};  // the runs belong to an earlier link
  const int64_t number = received_++;
  ++used_;
  ForgetReported();
  if (!here) return;
  if (!runs_.empty()) {
    Run& last = runs_[runs_.size() - 1];
    if (last.partition == identity.partition && last.placement == identity.placement &&
        last.end == identity.index && last.first + (last.end - last.begin) == number) {
      ++last.end;
      return;
    }
  }
  runs_.Push({.partition = identity.partition,
              .placement = identity.placement,
              .begin = identity.index,
              .end = identity.index + 1,
              .first = number});
}

void UnackedReceives::ForgetReported() {
  int64_t reported = 0;
  while (!grants_.empty() && grants_.front().before < used_) reported = grants_.Pop().reported;
  while (!runs_.empty() && runs_.front().first < reported) {
    Run& run = runs_.front();
    const int64_t count = reported - run.first;
    if (count < run.end - run.begin) {
      run.begin += count;
      run.first += count;
      return;
    }
    runs_.Pop();
  }
}

}  // namespace penstock::client
