// SPDX-License-Identifier: Apache-2.0
// Definitions of datasets as the dispatcher keeps them, parsed once per worker.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "control/protocol/heartbeat_counts.h"
#include "control/protocol/requests.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/graph/split.h"
#include "penstock/dataset.h"

namespace penstock::worker {

// Everything that a partition needs to run.
struct Definition {
  size_t bytes;  // of the definition, as the dispatcher keeps it
  Dataset dataset;
  SplitPlan plan;
  std::unique_ptr<Profile> profile;  // of all partitions that were run from this definition
};

// Returns whether an error of DatasetCache::Get() says that the operations of this program differ
// from those of the program that made the definition, so that it would prepare other elements.
// Other workers, of another release, may still run the dataset.
bool RefusesDataset(const absl::Status& error);

// Thread-safe. Keeps the definitions in use, and a few small others. Partitions that need a
// definition at the same time wait for one of them to fetch and parse it, and get its error if that
// fails.
class DatasetCache {
 public:
  // Asks the dispatcher for a dataset by id and edition; may wait.
  using Fetch = std::function<absl::StatusOr<control::GetDatasetAnswer>(std::string_view id,
                                                                        uint64_t edition)>;

  using Result = absl::StatusOr<std::shared_ptr<const Definition>>;

  explicit DatasetCache(Fetch fetch) : fetch_(std::move(fetch)) {}

  // Returns the dataset with that id and edition. Returns the errors of the dispatcher and of
  // ParseDataset(), and FailedPrecondition if this program computes a different fingerprint for the
  // definition, for example because it is a different release (RefusesDataset()).
  Result Get(std::string_view id, uint64_t edition);

  // Returns the work that was done for each dataset whose definition is still kept.
  std::vector<control::DatasetWork> Work() const;

 private:
  using Key = std::pair<std::string, uint64_t>;  // id, edition
  using Making = std::optional<Result>;          // nullopt until it is made
  Result Make(const Key& key) const;
  void Evict() REQUIRES(mu_);

  const Fetch fetch_;
  mutable Mutex mu_;
  Condition made_;
  std::map<Key, std::shared_ptr<Making>> in_the_making_ GUARDED_BY(mu_);
  std::map<Key, std::shared_ptr<const Definition>> known_ GUARDED_BY(mu_);
};

}  // namespace penstock::worker
