// SPDX-License-Identifier: Apache-2.0
// Datasets: registers, looks up and forgets them. The core's lock guards it. Changes when the rules
// do by which a definition gets an id, or loses it.
#pragma once

#include "control/dispatcher/shared_state.h"

namespace penstock::control {

class DatasetRegistry {
 public:
  explicit DatasetRegistry(const SharedState& shared) : shared_(shared) {}

  absl::StatusOr<RegisterDatasetAnswer> Register(Transaction& txn,
                                                 const RegisterDatasetRequest& request);
  // Null if there is none. The caller is about to read it.
  std::shared_ptr<const DatasetRecord> Find(const std::string& id, uint64_t edition);
  absl::Status Unregister(Transaction& txn, const std::string& id);
  // Forgets datasets that no job has read for dataset_ttl.
  void CollectUnused(Transaction& txn, absl::Time now);
  // How long until the dataset is forgotten if nobody uses it.
  absl::Duration GoesIn(const std::string& id, absl::Time now) const;

 private:
  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  std::map<std::string, absl::Time> unused_since_;
};

}  // namespace penstock::control
