// SPDX-License-Identifier: Apache-2.0
// A journal in etcd, for a dispatcher that leads by a lease in the same etcd. Each transaction
// holds only while the leader's key is the one with which the journal was opened, so a leader that
// was replaced cannot write. docs/journal.md, "In etcd", describes the keys.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/etcd/etcd_client.h"
#include "control/journal/journal.h"

namespace penstock::control {

struct EtcdJournalOptions {
  std::string prefix;      // of all keys, with a "/" at its end
  std::string leader_key;  // the leader's key, and its create revision
  int64_t term = 0;
  // If etcd does not confirm a transaction within this time, the journal fails for good.
  absl::Duration patience = absl::Seconds(10);
};

// Opens the journal, and reads it. REQUIRES: this process leads with `options.term`. Aborted if it
// leads no longer. FailedPrecondition if a newer release wrote the journal. DataLoss, which names
// the key, if something is missing or damaged.
//
// The journal fails with Aborted once another process leads, with ResourceExhausted if etcd has no
// space left, and with Unavailable if etcd does not answer, so that nobody can know whether the
// last records are in the journal. The next leader finds out.
absl::StatusOr<std::unique_ptr<Journal>> OpenEtcdJournal(std::shared_ptr<EtcdClient> client,
                                                         const EtcdJournalOptions& options);

}  // namespace penstock::control
