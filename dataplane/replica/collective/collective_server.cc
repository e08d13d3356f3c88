// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/collective/collective_server.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"

namespace penstock::replica {
namespace {

const char* CollectiveName(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kSum:
      return "sum";
    case CollectiveOp::kMin:
      return "min";
    case CollectiveOp::kMax:
      return "max";
  }
  return "?";
}

bool Fit(const RankCall& a, const RankCall& b) {
  if (a.kind != b.kind) return false;
  return a.kind != RankCall::Kind::kReduce || (a.op == b.op && a.values.size() == b.values.size());
}

int64_t Reduced(CollectiveOp op, int64_t a, int64_t b) {
  switch (op) {
    case CollectiveOp::kSum:  // wraps around, as in NCCL
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    case CollectiveOp::kMin:
      return std::min(a, b);
    case CollectiveOp::kMax:
      return std::max(a, b);
  }
  return a;
}

}  // namespace

std::string RankCall::ToString() const {
  switch (kind) {
    case Kind::kReduce:
      return absl::StrCat("all-reduce(", CollectiveName(op), ") of ", values.size(), " value(s)");
    case Kind::kGather:
      return "all-gather";
    case Kind::kSplit:
      return "split";
  }
  return "?";
}

absl::StatusOr<std::optional<std::vector<RankCall>>> CallMatcher::Add(int rank, RankCall call) {
  waiting_[static_cast<size_t>(rank)].push_back(std::move(call));
  for (const std::deque<RankCall>& of_rank : waiting_)
    if (of_rank.empty()) return std::nullopt;
  std::vector<RankCall> calls;
  for (std::deque<RankCall>& of_rank : waiting_) {
    calls.push_back(std::move(of_rank.front()));
    of_rank.pop_front();
    if (Fit(calls.front(), calls.back())) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the ranks' calls differ: call ", place_, " is ", calls.front().ToString(),
                     " on rank 0 and ", calls.back().ToString(), " on rank ", calls.size() - 1,
                     "; all ranks must make the same calls in the same order"));
  }
  ++place_;
  return calls;
}

CollectiveServer::CollectiveServer(std::vector<EventCallback> ranks)
    : callbacks_(std::move(ranks)) {
  std::vector<int> all(callbacks_.size());
  std::iota(all.begin(), all.end(), 0);
  Add(std::move(all));
}

int CollectiveServer::Communicator::PlaceOf(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

const CollectiveServer::Communicator& CollectiveServer::Add(std::vector<int> ranks) {
  const auto count = static_cast<int>(ranks.size());
  return communicators_.emplace(next_++, Communicator{std::move(ranks), CallMatcher(count)})
      .first->second;
}

CollectiveServer::Communicators::iterator CollectiveServer::Find(int rank, uint64_t communicator) {
  const auto found = communicators_.find(communicator);
  if (found == communicators_.end() || found->second.PlaceOf(rank) < 0) return communicators_.end();
  return found;
}

void CollectiveServer::Call(int rank, uint64_t communicator, RankCall call) {
  MutexLock lock(mu_);
  const auto found = Find(rank, communicator);
  if (found == communicators_.end()) return;
  auto calls = found->second.calls.Add(found->second.PlaceOf(rank), std::move(call));
  if (!calls.ok())
    EndAt(found, calls.status());
  else if (calls->has_value())
    Answer(communicator, **calls);
}

void CollectiveServer::Answer(uint64_t number, const std::vector<RankCall>& calls) {
  if (calls[0].kind == RankCall::Kind::kSplit) return AnswerSplit(number, calls);
  RankResult result;
  result.values = calls[0].values;
  for (size_t place = 0; place < calls.size(); ++place) {
    if (calls[0].kind == RankCall::Kind::kGather) result.gathered.push_back(calls[place].bytes);
    if (place == 0) continue;
    for (size_t i = 0; i < result.values.size(); ++i)
      result.values[i] = Reduced(calls[0].op, result.values[i], calls[place].values[i]);
  }
  for (const int rank : communicators_.at(number).ranks)
    callbacks_[static_cast<size_t>(rank)]({number, result});
}

void CollectiveServer::AnswerSplit(uint64_t number, const std::vector<RankCall>& calls) {
  const std::vector<int> ranks = communicators_.at(number).ranks;
  std::map<int64_t, std::vector<int>> of_color;
  for (size_t place = 0; place < calls.size(); ++place)
    of_color[calls[place].color].push_back(ranks[place]);
  for (auto& [color, members] : of_color) {
    const uint64_t made = next_;
    const Communicator& split = Add(std::move(members));
    RankResult result;
    result.communicator = made;
    result.size = static_cast<int64_t>(split.ranks.size());
    for (const int rank : split.ranks) {
      callbacks_[static_cast<size_t>(rank)]({number, result});
      ++result.rank;
    }
  }
}

void CollectiveServer::End(int rank, uint64_t communicator, const absl::Status& why) {
  MutexLock lock(mu_);
  const auto found = Find(rank, communicator);
  if (found != communicators_.end()) EndAt(found, why);
}

void CollectiveServer::Lose(int rank, const absl::Status& why) {
  MutexLock lock(mu_);
  callbacks_[static_cast<size_t>(rank)] = [](const RankEvent&) {};
  for (auto at = communicators_.begin(); at != communicators_.end();)
    at = at->second.PlaceOf(rank) < 0 ? std::next(at) : EndAt(at, why);
}

CollectiveServer::Communicators::iterator CollectiveServer::EndAt(Communicators::iterator at,
                                                                  const absl::Status& why) {
  for (const int rank : at->second.ranks) callbacks_[static_cast<size_t>(rank)]({at->first, why});
  return communicators_.erase(at);
}

}  // namespace penstock::replica
