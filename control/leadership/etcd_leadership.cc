// SPDX-License-Identifier: Apache-2.0
#include "control/leadership/etcd_leadership.h"

#include <algorithm>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::control {
namespace {

// Between two tries while etcd does not answer.
constexpr absl::Duration kPause = absl::Milliseconds(100);

class EtcdLeadership final : public Leadership {
 public:
  EtcdLeadership(std::shared_ptr<EtcdClient> client, EtcdLeadershipOptions options,
                 std::shared_ptr<EventLog> events)
      : client_(std::move(client)),
        options_(std::move(options)),
        key_(LeaderKey(options_.prefix)),
        events_(std::move(events)) {}
  ~EtcdLeadership() override { Resign(); }

  absl::Status Campaign(Lost lost) override {
    while (!stop_.stop_requested()) {
      const absl::StatusOr<int64_t> elected = TryOnce();
      if (elected.ok() && *elected > 0) return Begin(*elected, std::move(lost));
      if (elected.ok()) continue;
      if (!IsUncertain(elected.status())) return elected.status();
      Note("etcd_unreachable", "why", std::string(elected.status().message()));
      Sleep(kPause, stop_.get_token());
    }
    return absl::CancelledError("the campaign was stopped");
  }

  uint64_t term() const override {
    MutexLock lock(mu_);
    PENSTOCK_CHECK(term_ > 0);
    return static_cast<uint64_t>(term_);
  }

  absl::Time HoldsUntil() const override {
    MutexLock lock(mu_);
    return over_ ? absl::InfinitePast() : said_at_ + lease_.ttl / 2;
  }

  void Resign() override {
    stop_.request_stop();
    {
      MutexLock lock(mu_);
      if (std::exchange(resigned_, true)) return;
      over_ = true;
      changed_.NotifyAll();
      if (term_ == 0) return client_->Stop();  // a lease of the campaign ends by itself
    }
    keeper_.join();
    // If etcd does not answer, the lease ends by itself.
    client_->Revoke(lease_.id, options_.lease / 2).IgnoreError();
    client_->Stop();
  }

 private:
  // Returns the term if this process leads now; 0 if not, after it has waited for some time.
  absl::StatusOr<int64_t> TryOnce() {
    ASSIGN_OR_RETURN(const EtcdFound found, client_->Get({.key = key_}, options_.lease));
    if (!found.keys.empty()) {
      const EtcdKey& leader = found.keys.front();
      // An earlier try was carried out although its answer was lost.
      if (leader.lease == lease_.id && lease_.id != 0) return leader.create_revision;
      Note("standby", "leader", leader.value);
      const absl::Status deleted = client_->AwaitDeletion(key_, found.revision, options_.lease);
      if (deleted.ok() || absl::IsDeadlineExceeded(deleted)) return 0;
      return deleted;
    }
    if (BootTime() > SaidAt() + lease_.ttl / 2) {
      const absl::Time now = BootTime();
      ASSIGN_OR_RETURN(lease_, client_->GrantLease(options_.lease, options_.lease));
      Said(now);
    }
    const absl::StatusOr<EtcdTxnAnswer> answer = client_->Commit(
        {.compares = {{key_, EtcdCompare::Number::kVersion, 0}},
         .then = {EtcdPut{.key = key_, .value = options_.name, .lease = lease_.id}}});
    if (absl::IsNotFound(answer.status())) {  // the lease has ended
      Said(absl::InfinitePast());
      return 0;
    }
    RETURN_IF_ERROR(answer.status());
    return answer->succeeded ? answer->revision : 0;
  }

  absl::Status Begin(int64_t term, Lost lost) {
    MutexLock lock(mu_);
    if (resigned_) return absl::CancelledError("the campaign was stopped");
    ASSIGN_OR_RETURN(keeper_, StartThread("keeping the leader's lease alive",
                                          [this, lost = std::move(lost)] { Keep(lost); }));
    term_ = term;
    over_ = false;
    lock.unlock();
    events_->Write({"leads", {{"term", absl::StrCat(term)}, {"as", options_.name}}});
    return absl::OkStatus();
  }

  // Runs on the keeper's thread until the place is lost or resigned.
  void Keep(const Lost& lost) {
    absl::Status kept;
    while (true) {
      const absl::Time now = BootTime();
      const absl::Time end = SaidAt() + lease_.ttl;
      if (now >= end) return GiveUp(lost, kept);
      kept = client_->KeepAlive(lease_.id, std::min(lease_.ttl / 2, end - now));
      if (kept.ok()) Said(now);
      if (absl::IsNotFound(kept)) return GiveUp(lost, kept);
      MutexLock lock(mu_);
      changed_.WaitFor(lock, kept.ok() ? lease_.ttl / 6 : kPause,
                       [this]() REQUIRES(mu_) { return resigned_; });
      if (resigned_) return;
    }
  }

  void GiveUp(const Lost& lost, const absl::Status& kept) {
    {
      MutexLock lock(mu_);
      if (resigned_) return;
      over_ = true;
    }
    const absl::Status why = absl::AbortedError(absl::StrCat(
        "this dispatcher leads no longer: it could not keep its lease at ", key_,
        " alive: ", kept.ok() ? "it stood still for longer than the lease" : kept.message(),
        "; start it again, so that it becomes a standby"));
    lost(why);
  }

  absl::Time SaidAt() const {
    MutexLock lock(mu_);
    return said_at_;
  }
  void Said(absl::Time at) {
    MutexLock lock(mu_);
    said_at_ = at;
  }

  // Writes the event, but not twice in a row.
  void Note(const std::string& event, const std::string& key, const std::string& value) {
    if (std::exchange(noted_, absl::StrCat(event, value)) == absl::StrCat(event, value)) return;
    events_->Write({event, {{key, value}}});
  }

  const std::shared_ptr<EtcdClient> client_;
  const EtcdLeadershipOptions options_;
  const std::string key_;
  const std::shared_ptr<EventLog> events_;
  std::stop_source stop_;
  Thread keeper_;
  EtcdLease lease_;    // set by the campaign; constant afterwards
  std::string noted_;  // used only by the campaign

  mutable Mutex mu_;
  Condition changed_;
  int64_t term_ GUARDED_BY(mu_) = 0;
  bool over_ GUARDED_BY(mu_) = true;  // does not lead
  bool resigned_ GUARDED_BY(mu_) = false;
  // When the last sign of life to etcd that succeeded was sent.
  absl::Time said_at_ GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace

std::string LeaderKey(const std::string& prefix) {
  return absl::StrCat(prefix, "leader");
}

std::unique_ptr<Leadership> MakeEtcdLeadership(std::shared_ptr<EtcdClient> client,
                                               EtcdLeadershipOptions options,
                                               std::shared_ptr<EventLog> events) {
  return std::make_unique<EtcdLeadership>(std::move(client), std::move(options), std::move(events));
}

}  // namespace penstock::control
