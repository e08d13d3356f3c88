// SPDX-License-Identifier: Apache-2.0
// Reads and writes of a leader in etcd: each transaction is carried out only while the process
// still leads, and its outcome is found out if the answer is lost.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/etcd/etcd_client.h"
#include "control/journal/etcd_journal.h"

namespace penstock::control {

class EtcdFence {
 public:
  EtcdFence(std::shared_ptr<EtcdClient> client, EtcdJournalOptions options)
      : client_(std::move(client)), options_(std::move(options)) {}

  const EtcdJournalOptions& options() const { return options_; }

  // Writes `put`, and carries out `further`, in one transaction, if this process leads and
  // `compares` hold. Returns the revision. The comparisons must fail once the transaction has been
  // carried out, unless it may be carried out twice. Aborted if another process leads, DataLoss if
  // only `compares` do not hold, Unavailable if the outcome could not be found out.
  absl::StatusOr<int64_t> Put(const EtcdPut& put, std::vector<EtcdCompare> compares = {},
                              std::vector<EtcdOperation> further = {});
  // Reads a range completely.
  absl::StatusOr<std::vector<EtcdKey>> Read(EtcdGet get) const;
  void Compact(int64_t revision) const;

 private:
  const std::shared_ptr<EtcdClient> client_;
  const EtcdJournalOptions options_;
};

}  // namespace penstock::control
