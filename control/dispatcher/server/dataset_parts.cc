// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/dataset_parts.h"

#include <algorithm>
#include <utility>

#include "control/rpc/dataset_fetcher.h"

namespace penstock::control {
namespace {

std::shared_ptr<const DatasetParts> MakeParts(std::shared_ptr<const DatasetRecord> dataset) {
  auto parts = std::make_shared<DatasetParts>();
  wire::GetDatasetAnswer whole;
  ToWire(GetDatasetAnswer{.dataset_id = dataset->id, .summary = dataset->summary}, &whole);
  parts->summary = whole.summary().SerializeAsString();
  parts->dataset = std::move(dataset);
  parts->list.set_dataset_id(parts->dataset->id);
  for (uint32_t part : {1, 2}) {
    wire::DatasetPart* wire = parts->list.add_parts();
    wire->set_bytes(parts->Content(part).size());
    wire->set_sha256(ContentDigest(parts->Content(part)));
  }
  return parts;
}

}  // namespace

std::shared_ptr<const DatasetParts> KeptDatasetParts::Of(
    const std::shared_ptr<const DatasetRecord>& dataset, absl::Time now) {
  const auto found =
      std::ranges::find(kept_, dataset, [](const Kept& kept) { return kept.parts->dataset; });
  if (found == kept_.end()) {
    kept_.push_front({MakeParts(dataset), now});
  } else {
    found->asked_for = now;
    kept_.splice(kept_.begin(), kept_, found);
  }
  Evict(now);
  return kept_.front().parts;
}

void KeptDatasetParts::Evict(absl::Time now) {
  size_t bytes = 0;
  for (const Kept& kept : kept_) bytes += kept.parts->summary.size();
  while (bytes > most_bytes_ && kept_.back().asked_for + kInUse <= now) {
    bytes -= kept_.back().parts->summary.size();
    kept_.pop_back();
  }
}

}  // namespace penstock::control
