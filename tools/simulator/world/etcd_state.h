// SPDX-License-Identifier: Apache-2.0
// The keys and leases of a simulated etcd: what the requests of control/etcd/etcd.proto do, with
// the rules and the errors of etcd 3.4. Includes Protobuf.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/etcd/etcd.pb.h"

namespace penstock::simulator {

// Has no clock: `now` is that of the process that serves it. Of etcd's ranges, it has those with an
// end and those of one key.
class EtcdState {
 public:
  etcdserverpb::RangeResponse Range(const etcdserverpb::RangeRequest& request) const;
  // NotFound for a lease that has ended, InvalidArgument for a transaction that is too large or
  // changes a key twice, ResourceExhausted if there is no room for what it puts.
  absl::StatusOr<etcdserverpb::TxnResponse> Txn(const etcdserverpb::TxnRequest& request);
  absl::StatusOr<etcdserverpb::CompactionResponse> Compact(
      const etcdserverpb::CompactionRequest& request);
  // Returns the answer if there is one already.
  std::optional<etcdserverpb::WatchResponse> Watch(
      const etcdserverpb::WatchCreateRequest& request) const;

  absl::StatusOr<etcdserverpb::LeaseGrantResponse> Grant(
      const etcdserverpb::LeaseGrantRequest& request, absl::Time now);
  etcdserverpb::LeaseKeepAliveResponse KeepAlive(const etcdserverpb::LeaseKeepAliveRequest& request,
                                                 absl::Time now);
  absl::StatusOr<etcdserverpb::LeaseRevokeResponse> Revoke(
      const etcdserverpb::LeaseRevokeRequest& request);
  // Ends the leases whose time is over.
  void EndLeases(absl::Time now);
  // Lets each lease begin again, as a new leader of etcd's processes does.
  void RenewLeases(absl::Time now);

  void SetFull(bool full) { full_ = full; }

 private:
  struct Lease {
    absl::Duration ttl;
    absl::Time ends;
  };
  using Keys = std::map<std::string, etcdserverpb::KeyValue>;  // by key

  const etcdserverpb::KeyValue* Find(const std::string& key) const;
  bool Holds(const etcdserverpb::Compare& compare) const;
  // Returns why the operations are refused.
  absl::Status Check(
      const google::protobuf::RepeatedPtrField<etcdserverpb::RequestOp>& operations) const;
  void Put(const etcdserverpb::PutRequest& request, int64_t revision);
  // Returns whether there was such a key.
  bool Delete(const etcdserverpb::DeleteRangeRequest& request, int64_t revision);

  int64_t revision_ = 1;
  int64_t compacted_ = 0;
  Keys keys_;
  std::map<std::string, int64_t> deleted_;  // by key: the revision of its last deletion
  int64_t last_lease_ = 0;
  std::map<int64_t, Lease> leases_;
  bool full_ = false;
};

}  // namespace penstock::simulator
