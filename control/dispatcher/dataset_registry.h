// SPDX-License-Identifier: Apache-2.0
// Registers, looks up and forgets datasets. The core's lock guards it. Its one reason to change:
// the rules by which a definition gets or loses an id.
#pragma once

#include "control/dispatcher/shared_state.h"

namespace penstock::control {

class DatasetRegistry {
 public:
  explicit DatasetRegistry(const SharedState& shared) : shared_(shared) {}

  absl::StatusOr<RegisterDatasetAnswer> Register(Transaction& txn,
                                                 const RegisterDatasetRequest& request);
  // Returns null if there is no such dataset. Otherwise the dataset counts as used, because a
  // client is about to read it.
  std::shared_ptr<const DatasetRecord> Find(const std::string& id, uint64_t edition);
  absl::Status Unregister(Transaction& txn, const std::string& id);
  // Forgets datasets that no job has read for dataset_ttl.
  void CollectUnused(Transaction& txn, absl::Time now);
  // Returns the time after which the dataset is forgotten if no job reads it; infinite if it is in
  // use.
  absl::Duration GoesIn(const std::string& id, absl::Time now) const;

 private:
  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  std::map<std::string, absl::Time> unused_since_;
};

}  // namespace penstock::control
