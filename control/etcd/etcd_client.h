// SPDX-License-Identifier: Apache-2.0
// A client of an etcd cluster (API version 3): reads, transactions, leases and the wait for a key's
// end. Each call has a bound. Keys and values are bytes.
//
// Calls that are safe to repeat go to the next endpoint if one does not answer. A transaction is
// sent once: if its outcome is unknown, the error is Unavailable or DeadlineExceeded, and only a
// later read can tell.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/etcd/etcd_address.h"
#include "penstock/tls.h"

namespace penstock::control {

struct EtcdOptions {
  EtcdAddress address;
  TlsConfig tls;     // if address.tls: `ca`, and this process's certificate and key if etcd asks
  std::string user;  // empty: etcd does not ask who its clients are
  std::string password;
  // The bound of one try at one endpoint.
  absl::Duration patience = absl::Seconds(1);
};

struct EtcdKey {
  std::string key;
  std::string value;
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
  int64_t lease = 0;  // 0: none
};

// A condition on one key. A key that does not exist has version 0.
struct EtcdCompare {
  enum class Number { kVersion, kCreateRevision, kModRevision };
  std::string key;
  Number number;
  int64_t equals;
};

// `end`: the range is all keys ≥ `key` and < `end`; empty: only `key`.
struct EtcdGet {
  std::string key;
  std::string end = {};
  int64_t limit = 0;  // 0: no limit
  bool keys_only = false;
};
struct EtcdPut {
  std::string key;
  std::string value;
  int64_t lease = 0;  // 0: none
};
struct EtcdDelete {
  std::string key;
  std::string end = {};
};
using EtcdOperation = std::variant<EtcdGet, EtcdPut, EtcdDelete>;

// If all comparisons hold, the operations `then` are carried out, otherwise the operations
// `otherwise`, in one step. Its size is bounded by etcd: 1.5 MiB and 128 operations.
struct EtcdTxn {
  std::vector<EtcdCompare> compares;
  std::vector<EtcdOperation> then;
  std::vector<EtcdOperation> otherwise;
};

struct EtcdTxnAnswer {
  bool succeeded = false;     // whether all comparisons held
  int64_t revision = 0;       // of the cluster, after the transaction
  std::vector<EtcdKey> keys;  // that the transaction's reads found
};

struct EtcdFound {
  std::vector<EtcdKey> keys;  // ascending
  bool more = false;          // the limit left keys out
  int64_t revision = 0;       // of the cluster, when it was read
};

struct EtcdLease {
  int64_t id = 0;
  absl::Duration ttl;
};

// Any thread may call any method.
class EtcdClient {
 public:
  // Makes a client, and connects to nobody yet. The errors of TlsFiles::Open().
  static absl::StatusOr<std::shared_ptr<EtcdClient>> Make(EtcdOptions options);
  virtual ~EtcdClient() = default;

  // Ends all calls, and those that follow, with Cancelled.
  virtual void Stop() = 0;

  // Linearizable: sees every transaction that was answered before.
  virtual absl::StatusOr<EtcdFound> Get(const EtcdGet& get, absl::Duration bound) = 0;
  virtual absl::StatusOr<EtcdTxnAnswer> Commit(const EtcdTxn& txn) = 0;
  // Lets etcd forget what keys were before `revision`. Holds for the whole cluster.
  virtual absl::Status Compact(int64_t revision, absl::Duration bound) = 0;
  // Makes a lease. It ends with its keys `ttl` after it was made or kept alive, if nobody keeps it
  // alive. etcd rounds to seconds and has a minimum; the answer is what holds. If the answer is
  // lost, a lease may exist without a key, until it ends.
  virtual absl::StatusOr<EtcdLease> GrantLease(absl::Duration ttl, absl::Duration bound) = 0;
  // NotFound if the lease has ended.
  virtual absl::Status KeepAlive(int64_t lease, absl::Duration bound) = 0;
  // Ends the lease and deletes its keys. OK if it has ended already.
  virtual absl::Status Revoke(int64_t lease, absl::Duration bound) = 0;
  // Waits until `key` is deleted in a revision after `revision`. May return earlier, for example if
  // the endpoint stops, so read the key again. DeadlineExceeded after `bound`.
  virtual absl::Status AwaitDeletion(const std::string& key, int64_t revision,
                                     absl::Duration bound) = 0;
};

// Returns the end of the range of all keys that begin with `prefix`, which must not be empty or end
// with byte 255.
std::string EtcdPrefixEnd(std::string prefix);

// Returns whether a transaction that failed with this error may still have been carried out.
bool IsUncertain(const absl::Status& status);

}  // namespace penstock::control
