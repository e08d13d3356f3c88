// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/etcd_state.h"

#include <algorithm>
#include <vector>

#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

using etcdserverpb::RequestOp;
using Operations = google::protobuf::RepeatedPtrField<RequestOp>;

// etcd's defaults.
constexpr size_t kMostRequestBytes = 3 << 19;
constexpr int kMostOperations = 128;
constexpr int64_t kShortestLease = 2;  // seconds

// Returns whether the key is in the range; without an end, the range is one key.
bool IsIn(const std::string& key, const std::string& begin, const std::string& end) {
  return end.empty() ? key == begin : begin <= key && key < end;
}

bool HasPut(const Operations& operations) {
  return std::any_of(operations.begin(), operations.end(),
                     [](const RequestOp& operation) { return operation.has_request_put(); });
}

// Returns whether one operation changes a key that another one puts.
bool ChangesKeyTwice(const Operations& operations) {
  for (const RequestOp& put : operations) {
    if (!put.has_request_put()) continue;
    const std::string& key = put.request_put().key();
    for (const RequestOp& other : operations) {
      const auto& range = other.request_delete_range();
      if (&other == &put) continue;
      if (other.has_request_put() && other.request_put().key() == key) return true;
      if (other.has_request_delete_range() && IsIn(key, range.key(), range.range_end())) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

// --- Keys -------------------------------------------------------------------------

const etcdserverpb::KeyValue* EtcdState::Find(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &found->second;
}

etcdserverpb::RangeResponse EtcdState::Range(const etcdserverpb::RangeRequest& request) const {
  etcdserverpb::RangeResponse answer;
  answer.mutable_header()->set_revision(revision_);
  for (auto key = keys_.lower_bound(request.key());
       key != keys_.end() && IsIn(key->first, request.key(), request.range_end()); ++key) {
    answer.set_more(request.limit() > 0 && answer.kvs_size() == request.limit());
    if (answer.more()) break;
    *answer.add_kvs() = key->second;
    if (request.keys_only()) answer.mutable_kvs()->rbegin()->clear_value();
  }
  return answer;
}

bool EtcdState::Holds(const etcdserverpb::Compare& compare) const {
  const etcdserverpb::KeyValue* key = Find(compare.key());
  switch (compare.target()) {
    case etcdserverpb::Compare::VERSION:
      return compare.version() == (key == nullptr ? 0 : key->version());
    case etcdserverpb::Compare::CREATE:
      return compare.create_revision() == (key == nullptr ? 0 : key->create_revision());
    case etcdserverpb::Compare::MOD:
      return compare.mod_revision() == (key == nullptr ? 0 : key->mod_revision());
    default:
      return false;
  }
}

absl::Status EtcdState::Check(const Operations& operations) const {
  for (const RequestOp& operation : operations) {
    const int64_t lease = operation.request_put().lease();
    if (lease != 0 && !leases_.contains(lease)) {
      return absl::NotFoundError("etcdserver: requested lease not found");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<etcdserverpb::TxnResponse> EtcdState::Txn(const etcdserverpb::TxnRequest& request) {
  if (request.ByteSizeLong() > kMostRequestBytes) {
    return absl::InvalidArgumentError("etcdserver: request is too large");
  }
  if (std::max(request.success_size(), request.failure_size()) > kMostOperations) {
    return absl::InvalidArgumentError("etcdserver: too many operations in txn request");
  }
  if (ChangesKeyTwice(request.success()) || ChangesKeyTwice(request.failure())) {
    return absl::InvalidArgumentError("etcdserver: duplicate key given in txn request");
  }
  if (full_ && (HasPut(request.success()) || HasPut(request.failure()))) {
    return absl::ResourceExhaustedError("etcdserver: mvcc: database space exceeded");
  }
  etcdserverpb::TxnResponse answer;
  answer.set_succeeded(std::all_of(request.compare().begin(), request.compare().end(),
                                   [this](const auto& compare) { return Holds(compare); }));
  const Operations& operations = answer.succeeded() ? request.success() : request.failure();
  RETURN_IF_ERROR(Check(operations));
  bool changed = false;
  for (const RequestOp& operation : operations) {
    etcdserverpb::ResponseOp& done = *answer.add_responses();
    if (operation.has_request_range()) {
      *done.mutable_response_range() = Range(operation.request_range());
    } else if (operation.has_request_put()) {
      done.mutable_response_put();
      Put(operation.request_put(), revision_ + 1);
      changed = true;
    } else {
      done.mutable_response_delete_range();
      changed |= Delete(operation.request_delete_range(), revision_ + 1);
    }
  }
  if (changed) ++revision_;
  answer.mutable_header()->set_revision(revision_);
  return answer;
}

void EtcdState::Put(const etcdserverpb::PutRequest& request, int64_t revision) {
  etcdserverpb::KeyValue& key = keys_[request.key()];
  if (key.version() == 0) key.set_create_revision(revision);
  key.set_key(request.key());
  key.set_value(request.value());
  key.set_mod_revision(revision);
  key.set_version(key.version() + 1);
  key.set_lease(request.lease());
}

bool EtcdState::Delete(const etcdserverpb::DeleteRangeRequest& request, int64_t revision) {
  bool any = false;
  for (auto key = keys_.lower_bound(request.key());
       key != keys_.end() && IsIn(key->first, request.key(), request.range_end());) {
    deleted_[key->first] = revision;
    key = keys_.erase(key);
    any = true;
  }
  return any;
}

absl::StatusOr<etcdserverpb::CompactionResponse> EtcdState::Compact(
    const etcdserverpb::CompactionRequest& request) {
  if (request.revision() <= compacted_) {
    return absl::OutOfRangeError("etcdserver: mvcc: required revision has been compacted");
  }
  if (request.revision() > revision_) {
    return absl::OutOfRangeError("etcdserver: mvcc: required revision is a future revision");
  }
  compacted_ = request.revision();
  std::erase_if(deleted_, [this](const auto& deletion) { return deletion.second < compacted_; });
  return etcdserverpb::CompactionResponse();
}

std::optional<etcdserverpb::WatchResponse> EtcdState::Watch(
    const etcdserverpb::WatchCreateRequest& request) const {
  etcdserverpb::WatchResponse answer;
  const auto deletion = deleted_.find(request.key());
  if (request.start_revision() < compacted_) {
    answer.set_canceled(true);
  } else if (deletion != deleted_.end() && deletion->second >= request.start_revision()) {
    answer.add_events();
  } else {
    return std::nullopt;
  }
  return answer;
}

// --- Leases -----------------------------------------------------------------------

absl::StatusOr<etcdserverpb::LeaseGrantResponse> EtcdState::Grant(
    const etcdserverpb::LeaseGrantRequest& request, absl::Time now) {
  if (full_) return absl::ResourceExhaustedError("etcdserver: mvcc: database space exceeded");
  etcdserverpb::LeaseGrantResponse answer;
  answer.set_id(++last_lease_);
  answer.set_ttl(std::max(request.ttl(), kShortestLease));
  const absl::Duration ttl = absl::Seconds(answer.ttl());
  leases_[answer.id()] = {ttl, now + ttl};
  return answer;
}

etcdserverpb::LeaseKeepAliveResponse EtcdState::KeepAlive(
    const etcdserverpb::LeaseKeepAliveRequest& request, absl::Time now) {
  etcdserverpb::LeaseKeepAliveResponse answer;
  answer.set_id(request.id());
  const auto lease = leases_.find(request.id());
  if (lease == leases_.end() || lease->second.ends <= now) return answer;
  lease->second.ends = now + lease->second.ttl;
  answer.set_ttl(absl::ToInt64Seconds(lease->second.ttl));
  return answer;
}

absl::StatusOr<etcdserverpb::LeaseRevokeResponse> EtcdState::Revoke(
    const etcdserverpb::LeaseRevokeRequest& request) {
  if (leases_.erase(request.id()) == 0) {
    return absl::NotFoundError("etcdserver: requested lease not found");
  }
  std::vector<std::string> leased;
  for (const auto& [name, key] : keys_) {
    if (key.lease() == request.id()) leased.push_back(name);
  }
  for (const std::string& name : leased) {
    keys_.erase(name);
    deleted_[name] = revision_ + 1;
  }
  if (!leased.empty()) ++revision_;
  return etcdserverpb::LeaseRevokeResponse();
}

void EtcdState::EndLeases(absl::Time now) {
  std::vector<int64_t> over;
  for (const auto& [id, lease] : leases_) {
    if (lease.ends <= now) over.push_back(id);
  }
  for (const int64_t id : over) {
    etcdserverpb::LeaseRevokeRequest revoke;
    revoke.set_id(id);
    Revoke(revoke).IgnoreError();  // it is there
  }
}

void EtcdState::RenewLeases(absl::Time now) {
  for (auto& [id, lease] : leases_) lease.ends = now + lease.ttl;
}

}  // namespace penstock::simulator
