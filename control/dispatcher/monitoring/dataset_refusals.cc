// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/dataset_refusals.h"

#include "absl/strings/str_cat.h"

namespace penstock::control {

void DatasetRefusals::Note(WorkerId worker, const DatasetRecord& dataset, std::string reason) {
  by_worker_[worker][{dataset.id, dataset.edition}] = std::move(reason);
  ++changes_;
}

void DatasetRefusals::Forget(WorkerId worker) {
  changes_ += by_worker_.erase(worker);
}

const std::string* DatasetRefusals::Find(WorkerId worker, const DatasetRecord& dataset) const {
  const auto its = by_worker_.find(worker);
  if (its == by_worker_.end()) return nullptr;
  const auto found = its->second.find({dataset.id, dataset.edition});
  return found == its->second.end() ? nullptr : &found->second;
}

std::vector<std::string> DatasetRefusals::Of(WorkerId worker) const {
  std::vector<std::string> reasons;
  const auto its = by_worker_.find(worker);
  if (its == by_worker_.end()) return reasons;
  for (const auto& [edition, reason] : its->second)
    reasons.push_back(absl::StrCat("dataset ", edition.first, ": ", reason));
  return reasons;
}

}  // namespace penstock::control
