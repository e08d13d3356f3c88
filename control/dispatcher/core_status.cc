// SPDX-License-Identifier: Apache-2.0
// Reports the status of a dispatcher, for people. The lock is held for the items of one page.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "control/dispatcher/core.h"
#include "control/dispatcher/status_lister.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/authorization.h"
#include "control/state/format.h"
#include "control/sync/condition.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// While partitions are counted, the lock is held for at most this many sets and intervals at a
// time, which takes about a millisecond, and then released for a pause. Partitions that are not
// counted after kMostSlices times are shown as they were last counted.
constexpr int64_t kRoomOfSlice = 25'000;
constexpr int kMostSlices = 2'000;
constexpr absl::Duration kPause = absl::Microseconds(100);

// Counts partitions that are stale. Returns whether all are counted.
bool CountSome(SharedState& shared) {
  int64_t room = kRoomOfSlice;
  for (const auto& [id, iteration] : shared.state.iterations) {
    const auto context = shared.contexts.find(id);
    if (!shared.counts.Count(id, iteration.record,
                             context == shared.contexts.end() ? nullptr : &context->second, room))
      return false;
  }
  return true;
}

// Counts the connected workers and clients of each release.
std::vector<PeerRelease> CountPeers(const SharedState& shared) {
  std::map<std::tuple<bool, std::string_view, uint32_t>, int64_t> counts;
  for (const auto& [id, peer] : shared.workers) ++counts[{true, peer->release, peer->version}];
  for (const auto& [key, peer] : shared.sessions) ++counts[{false, peer->release, peer->version}];
  std::vector<PeerRelease> peers;
  for (const auto& [its, count] : counts) {
    peers.push_back({.workers = std::get<0>(its),
                     .release = std::string(std::get<1>(its)),
                     .version = std::get<2>(its),
                     .count = count});
  }
  return peers;
}

bool Asks(const StatusRequest& request, StatusPart part) {
  return request.parts.empty() || std::ranges::find(request.parts, part) != request.parts.end();
}

// Returns whether the page may have iterations.
bool ListsJobs(const StatusRequest& request) {
  return Asks(request, StatusPart::kJobs) || Asks(request, StatusPart::kPartitions);
}

// Returns whether the request asks for the peers, and the caller may know of all clients.
bool AsksForPeers(const StatusRequest& request, const Caller& caller) {
  return request.page_token.empty() && Asks(request, StatusPart::kWorkers) &&
         (!caller.has_value() || caller->role == Role::kOperator);
}

}  // namespace

void Core::StatusMaker::CountElements() {
  MutexLock lock(core_.mu_);
  core_.summaries_.ForgetOld(core_.shared_.state);
  Condition others;  // nobody notifies it
  for (int slice = 1; !CountSome(core_.shared_) && slice < kMostSlices; ++slice)
    others.WaitFor(lock, kPause, [] { return false; });
}

absl::StatusOr<DispatcherStatus> Core::StatusMaker::Make(const StatusRequest& request,
                                                         const Caller& caller) {
  if (ListsJobs(request)) CountElements();
  DispatcherStatus status;
  std::vector<TextSource> texts;
  {
    MutexLock lock(core_.mu_);
    status.term = core_.shared_.state.term();
    status.release = PENSTOCK_VERSION;
    status.journal = core_.journal_->name();
    status.journal_sequence = core_.shared_.sequence;
    status.format = core_.shared_.state.format;
    status.newest_format = kNewestFormat;
    status.wanted_workers = core_.scaling_.latest().workers;
    const StatusSources from{core_.shared_,    core_.scaling_,      core_.liveness_, core_.links_,
                             core_.consumers_, core_.placer_,       core_.datasets_, core_.jobs_,
                             core_.summaries_, core_.options_.now()};
    StatusLister lister(from, request, caller, status);
    RETURN_IF_ERROR(lister.List());
    texts = lister.TakeTexts();
    if (AsksForPeers(request, caller)) status.peers = CountPeers(core_.shared_);
  }
  WriteTexts(texts, status);
  return status;
}

void Core::GetStatus(const StatusRequest& request, Done<DispatcherStatus> done,
                     const Caller& caller) {
  absl::Status allowed = request.name_space.empty()
                             ? AuthorizeByRole(Action::kGetStatus, caller)
                             : Authorize(Action::kGetStatus, caller, request.name_space);
  absl::StatusOr<DispatcherStatus> status =
      allowed.ok() ? StatusMaker(*this).Make(request, caller) : allowed;
  Transaction txn(*this, caller);
  txn.AuditRefusal(std::move(allowed)).IgnoreError();
  // A status must not name records that may still be lost.
  txn.WhenDurable(
      [done = std::move(done), status = std::move(status)](const absl::Status& durable) mutable {
        if (!durable.ok()) return done(durable);
        done(std::move(status));
      });
}

}  // namespace penstock::control
