// SPDX-License-Identifier: Apache-2.0
// A client of etcd whose network loses requests and answers, delays transactions, or is cut.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "control/etcd/etcd_client.h"

namespace penstock::control {

class FaultyClient final : public EtcdClient {
 public:
  // What becomes of one transaction. The caller gets an answer only if it kArrives.
  // kArrivesLate: it is carried out at the next DeliverLate().
  enum class Fate { kArrives, kRequestLost, kAnswerLost, kArrivesLate };

  explicit FaultyClient(std::shared_ptr<EtcdClient> client) : client_(std::move(client)) {}

  // Nothing arrives any more.
  void Cut() {
    std::lock_guard lock(mu_);
    cut_ = true;
  }
  // `fate` is called for each transaction. It must not call the client.
  void SetFate(std::function<Fate()> fate) {
    std::lock_guard lock(mu_);
    fate_ = std::move(fate);
  }
  // Carries out the late transactions, the latest first, also if the client is cut.
  void DeliverLate() {
    std::vector<EtcdTxn> late;
    {
      std::lock_guard lock(mu_);
      late = std::exchange(late_, {});
    }
    std::reverse(late.begin(), late.end());
    for (const EtcdTxn& txn : late) client_->Commit(txn).IgnoreError();
  }

  int gets() const { return gets_; }  // that have arrived

  void Stop() override { client_->Stop(); }
  absl::StatusOr<EtcdFound> Get(const EtcdGet& get, absl::Duration bound) override {
    if (IsCut()) return Unreached();
    ++gets_;
    return client_->Get(get, bound);
  }
  absl::StatusOr<EtcdTxnAnswer> Commit(const EtcdTxn& txn) override {
    Fate fate = Fate::kRequestLost;
    {
      std::lock_guard lock(mu_);
      if (!cut_) fate = fate_();
      if (fate == Fate::kArrivesLate) late_.push_back(txn);
    }
    if (fate == Fate::kRequestLost || fate == Fate::kArrivesLate) return Unreached();
    absl::StatusOr<EtcdTxnAnswer> answer = client_->Commit(txn);
    if (fate == Fate::kAnswerLost) return Unreached();
    return answer;
  }
  absl::Status Compact(int64_t revision, absl::Duration bound) override {
    return IsCut() ? Unreached() : client_->Compact(revision, bound);
  }
  absl::StatusOr<EtcdLease> GrantLease(absl::Duration ttl, absl::Duration bound) override {
    if (IsCut()) return Unreached();
    return client_->GrantLease(ttl, bound);
  }
  absl::Status KeepAlive(int64_t lease, absl::Duration bound) override {
    return IsCut() ? Unreached() : client_->KeepAlive(lease, bound);
  }
  absl::Status Revoke(int64_t lease, absl::Duration bound) override {
    return IsCut() ? Unreached() : client_->Revoke(lease, bound);
  }
  absl::Status AwaitDeletion(const std::string& key, int64_t revision,
                             absl::Duration bound) override {
    return IsCut() ? Unreached() : client_->AwaitDeletion(key, revision, bound);
  }

 private:
  static absl::Status Unreached() { return absl::UnavailableError("etcd was not reached"); }
  bool IsCut() {
    std::lock_guard lock(mu_);
    return cut_;
  }

  const std::shared_ptr<EtcdClient> client_;
  std::atomic<int> gets_ = 0;
  std::mutex mu_;
  bool cut_ = false;
  std::function<Fate()> fate_ = [] { return Fate::kArrives; };
  std::vector<EtcdTxn> late_;
};

}  // namespace penstock::control
