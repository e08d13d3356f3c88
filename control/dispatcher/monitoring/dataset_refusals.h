// SPDX-License-Identifier: Apache-2.0
// The datasets that workers refuse. A worker of another release may have other operations, so that
// it would prepare other elements from the same definition. It says so when it gets a partition,
// and gets no more partitions of the dataset. This is not journaled: after a restart, the worker is
// tried again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/state/state.h"
#include "penstock/ids.h"

namespace penstock::control {

// Guarded by the lock of its owner.
class DatasetRefusals {
 public:
  // Notes that the worker refuses this edition of the dataset.
  void Note(WorkerId worker, const DatasetRecord& dataset, std::string reason);
  void Forget(WorkerId worker);  // it is gone

  bool empty() const { return by_worker_.empty(); }
  // Returns the reason for which the worker refuses the dataset; null if it does not refuse it.
  const std::string* Find(WorkerId worker, const DatasetRecord& dataset) const;
  // Returns the reasons for all datasets that the worker refuses, each with the dataset's id.
  std::vector<std::string> Of(WorkerId worker) const;
  // Rises with each change.
  uint64_t changes() const { return changes_; }

 private:
  using Edition = std::pair<std::string, uint64_t>;  // id and edition of a dataset

  std::map<WorkerId, std::map<Edition, std::string>> by_worker_;
  uint64_t changes_ = 0;
};

}  // namespace penstock::control
