// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/collective/host_collective.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::replica {
namespace {

// The channel in the collective server's own process.
class LocalChannel final : public CollectiveChannel {
 public:
  LocalChannel(std::shared_ptr<CollectiveServer> server, int rank)
      : server_(std::move(server)), rank_(rank) {}
  void Call(uint64_t communicator, RankCall call) override {
    server_->Call(rank_, communicator, std::move(call));
  }
  void End(uint64_t communicator, const absl::Status& why) override {
    server_->End(rank_, communicator, why);
  }

 private:
  const std::shared_ptr<CollectiveServer> server_;
  const int rank_;
};

}  // namespace

void Inbox::Push(const RankEvent& event) {
  MutexLock lock(mu_);
  Of& of = communicators_[event.communicator];
  if (event.result.ok())
    of.results.push_back(*event.result);
  else
    of.end.Update(event.result.status());
  changed_.NotifyAll();
}

void Inbox::EndAll(const absl::Status& why) {
  MutexLock lock(mu_);
  all_.Update(why);
  changed_.NotifyAll();
}

absl::StatusOr<RankResult> Inbox::Take(uint64_t communicator) {
  MutexLock lock(mu_);
  Of& of = communicators_[communicator];
  changed_.Wait(lock,
                [&]() REQUIRES(mu_) { return !of.results.empty() || !of.end.ok() || !all_.ok(); });
  if (of.results.empty()) return of.end.ok() ? all_ : of.end;
  RankResult result = std::move(of.results.front());
  of.results.pop_front();
  return result;
}

absl::Status Inbox::EndOf(uint64_t communicator) const {
  MutexLock lock(mu_);
  const auto found = communicators_.find(communicator);
  return found == communicators_.end() || found->second.end.ok() ? all_ : found->second.end;
}

void Inbox::Forget(uint64_t communicator) {
  MutexLock lock(mu_);
  communicators_.erase(communicator);
}

HostCollective::HostCollective(std::shared_ptr<CollectiveChannel> channel,
                               std::shared_ptr<Inbox> inbox, uint64_t number, int rank, int size)
    : channel_(std::move(channel)),
      inbox_(std::move(inbox)),
      number_(number),
      rank_(rank),
      size_(size) {}

HostCollective::~HostCollective() {
  channel_->End(number_, absl::UnavailableError(absl::StrCat("rank ", rank_, " has left")));
  inbox_->Forget(number_);
}

absl::Status HostCollective::Start(CollectiveOp op, absl::Span<const int64_t> values) {
  RETURN_IF_ERROR(AsyncError());
  ++started_;
  channel_->Call(number_, {.kind = RankCall::Kind::kReduce,
                           .op = op,
                           .values = std::vector<int64_t>(values.begin(), values.end())});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> HostCollective::Finish() {
  if (started_ == 0) return absl::FailedPreconditionError("no reduction was started");
  --started_;
  ASSIGN_OR_RETURN(RankResult result, inbox_->Take(number_));
  return std::move(result.values);
}

void HostCollective::Abort(const absl::Status& why) {
  inbox_->Push({number_, why});  // takes effect even if the server never answers
  channel_->End(number_, why);
}

absl::StatusOr<RankResult> HostCollective::Ask(RankCall call) {
  if (started_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(started_, " reduction(s) were started but not finished"));
  }
  RETURN_IF_ERROR(AsyncError());
  channel_->Call(number_, std::move(call));
  return inbox_->Take(number_);
}

absl::StatusOr<std::vector<std::string>> HostCollective::AllGather(std::string_view bytes) {
  if (bytes.size() > kMostGatheredBytes / static_cast<size_t>(size_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("an all-gather of ", bytes.size(), " bytes from each of ", size_,
                     " ranks exceeds ", kMostGatheredBytes, " bytes in total"));
  }
  ASSIGN_OR_RETURN(RankResult result,
                   Ask({.kind = RankCall::Kind::kGather, .bytes = std::string(bytes)}));
  return std::move(result.gathered);
}

absl::StatusOr<std::unique_ptr<Collective>> HostCollective::Split(int color) {
  ASSIGN_OR_RETURN(const RankResult result, Ask({.kind = RankCall::Kind::kSplit, .color = color}));
  return std::make_unique<HostCollective>(channel_, inbox_, result.communicator,
                                          static_cast<int>(result.rank),
                                          static_cast<int>(result.size));
}

std::vector<std::unique_ptr<Collective>> CollectiveOfThreads(int ranks) {
  std::vector<std::shared_ptr<Inbox>> inboxes;
  std::vector<CollectiveServer::EventCallback> callbacks;
  for (int rank = 0; rank < ranks; ++rank) {
    inboxes.push_back(std::make_shared<Inbox>());
    callbacks.push_back([inbox = inboxes.back()](const RankEvent& event) { inbox->Push(event); });
  }
  const auto server = std::make_shared<CollectiveServer>(std::move(callbacks));
  std::vector<std::unique_ptr<Collective>> collectives;
  for (int rank = 0; rank < ranks; ++rank) {
    collectives.push_back(
        std::make_unique<HostCollective>(std::make_shared<LocalChannel>(server, rank),
                                         inboxes[static_cast<size_t>(rank)], 0, rank, ranks));
  }
  return collectives;
}

}  // namespace penstock::replica
