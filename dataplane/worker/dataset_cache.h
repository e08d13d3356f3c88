// SPDX-License-Identifier: Apache-2.0
// Definitions of datasets as the dispatcher keeps them, parsed once per worker.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "control/protocol/session_messages.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/profile.h"
#include "dataplane/dataset/split.h"
#include "penstock/dataset.h"

namespace penstock::worker {

// What a partition is run from.
struct Definition {
  Dataset dataset;
  SplitPlan plan;
  std::unique_ptr<Profile> profile;  // of all partitions that were run from it
};

// Thread-safe. Definitions in use stay; of the others the cache keeps a few.
class DatasetCache {
 public:
  // Asks the dispatcher for a dataset by id and edition; may wait.
  using Fetch = std::function<absl::StatusOr<control::GetDatasetAnswer>(std::string_view id,
                                                                        uint64_t edition)>;

  explicit DatasetCache(Fetch fetch) : fetch_(std::move(fetch)) {}

  // The dataset of that id and edition. The dispatcher's error; what ParseDataset
  // says of the definition; FailedPrecondition if this program computes another
  // fingerprint of it, as another release may.
  absl::StatusOr<std::shared_ptr<const Definition>> Get(std::string_view id, uint64_t edition);

  // What was done for each dataset that was run here and is still known.
  std::vector<control::DatasetWork> Work() const;

 private:
  using Key = std::pair<std::string, uint64_t>;  // id, edition
  void Evict() REQUIRES(mu_);

  const Fetch fetch_;
  mutable Mutex mu_;
  std::map<Key, std::shared_ptr<const Definition>> known_ GUARDED_BY(mu_);
};

}  // namespace penstock::worker
