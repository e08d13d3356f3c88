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
  // NotFound if there is no such dataset. Otherwise the dataset counts as used, because a client is
  // about to read it.
  absl::StatusOr<std::shared_ptr<const DatasetRecord>> Find(const Transaction& txn,
                                                            const std::string& id,
                                                            uint64_t edition);
  absl::Status Unregister(Transaction& txn, const std::string& id);
  // Forgets datasets that no job has read for dataset_ttl.
  void CollectUnused(Transaction& txn, absl::Time now);
  // Returns the time after which the dataset is forgotten if no job reads it; infinite if it is in
  // use.
  absl::Duration GoesIn(const std::string& id, absl::Time now) const;

 private:
  absl::Status CheckAnswer(const Caller& caller, const std::string& id) const;
  // Checks the limit of the namespace to which `request` adds a definition under `id`.
  absl::Status CheckLimit(const RegisterDatasetRequest& request, const std::string& id) const;

  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  std::map<std::string, absl::Time> unused_since_;
};

}  // namespace penstock::control
