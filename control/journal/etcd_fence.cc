// SPDX-License-Identifier: Apache-2.0
#include "control/journal/etcd_fence.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// Between two tries of a transaction.
constexpr absl::Duration kPauseBetweenTries = absl::Milliseconds(50);
// The first page of the journal has at most this many values, of a mebibyte each. A page costs a
// round trip, and a value may be a single small record, so the next page is twice as large while
// pages have few bytes.
constexpr int64_t kValuesOfFirstPage = 16;
constexpr int64_t kMostValuesPerPage = 4096;
constexpr size_t kFewBytes = 2 << 20;
constexpr absl::Duration kCompactionBound = absl::Seconds(1);

const EtcdKey* Find(const std::vector<EtcdKey>& keys, const std::string& key) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const EtcdKey& one) { return one.key == key; });
  return found == keys.end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<int64_t> EtcdFence::Put(const EtcdPut& put, std::vector<EtcdCompare> compares,
                                       std::vector<EtcdOperation> further) {
  EtcdTxn txn{.compares = std::move(compares),
              .then = std::move(further),
              .otherwise = {EtcdGet{options_.leader_key}, EtcdGet{put.key}}};
  txn.compares.push_back(
      {options_.leader_key, EtcdCompare::Number::kCreateRevision, options_.term});
  txn.then.push_back(put);
  const absl::Time end = BootTime() + options_.patience;
  while (true) {
    const absl::StatusOr<EtcdTxnAnswer> answer = client_->Commit(txn);
    if (answer.ok() && answer->succeeded) return answer->revision;
    if (answer.ok()) {
      // An earlier try was carried out although its answer was lost.
      const EtcdKey* const written = Find(answer->keys, put.key);
      if (written != nullptr && written->value == put.value) return written->mod_revision;
      const EtcdKey* const leader = Find(answer->keys, options_.leader_key);
      if (leader == nullptr || leader->create_revision != options_.term) {
        return absl::AbortedError(absl::StrCat(
            "this dispatcher leads no longer: ",
            leader == nullptr ? "nobody leads" : absl::StrCat("'", leader->value, "' leads"),
            "; start it again, so that it becomes a standby"));
      }
      return absl::DataLossError(absl::StrCat(
          "another program changed the keys of the journal in etcd: ", put.key,
          " cannot be written after the keys before it; give each cluster a prefix of its own"));
    }
    if (!IsUncertain(answer.status())) return answer.status();
    if (BootTime() >= end || absl::IsCancelled(answer.status())) {
      return absl::UnavailableError(absl::StrCat(
          "etcd did not say within ", absl::FormatDuration(options_.patience), " whether ", put.key,
          " is written: ", answer.status().message(), "; the next leader finds out"));
    }
    Sleep(kPauseBetweenTries);
  }
}

absl::StatusOr<std::vector<EtcdKey>> EtcdFence::Read(EtcdGet get) const {
  get.limit = kValuesOfFirstPage;
  std::vector<EtcdKey> keys;
  while (true) {
    ASSIGN_OR_RETURN(EtcdFound found, client_->Get(get, options_.patience));
    size_t bytes = 0;
    for (const EtcdKey& key : found.keys) bytes += key.value.size();
    get.limit =
        bytes > kFewBytes ? kValuesOfFirstPage : std::min(2 * get.limit, kMostValuesPerPage);
    keys.insert(keys.end(), std::make_move_iterator(found.keys.begin()),
                std::make_move_iterator(found.keys.end()));
    if (!found.more) return keys;
    get.key = keys.back().key + '\0';
  }
}

void EtcdFence::Compact(int64_t revision) const {
  // Without compaction, etcd keeps what was deleted, as it does when its own compaction is off.
  client_->Compact(revision, kCompactionBound).IgnoreError();
}

}  // namespace penstock::control
