// SPDX-License-Identifier: Apache-2.0
// Returns rows from the start of the data, which fill a pipeline's last batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/batch/join_rows.h"
#include "penstock/dataset.h"
#include "penstock/iterator.h"

namespace penstock::replica {

// Reads the dataset a second time, and starts over at the dataset's end. One thread only.
class LeadingRows {
 public:
  LeadingRows(Dataset dataset, uint64_t seed, int64_t epoch)
      : dataset_(std::move(dataset)), seed_(seed), epoch_(epoch) {}

  // Returns the next `count` rows. OutOfRange if the data has none.
  absl::StatusOr<std::vector<RowRange>> Take(int64_t count);

  absl::Status Save(StateWriter& writer);
  absl::Status Restore(StateReader& reader);
  static absl::Status Pass(StateReader& reader);  // skips bytes of Save()

 private:
  struct Position {
    uint64_t seed = 0;
    int64_t epoch = 0;
    std::optional<State> before;
    int64_t row = 0;
  };
  static absl::StatusOr<Position> ReadPosition(StateReader& reader);

  absl::Status Hold();  // gets the next batch that has rows

  const Dataset dataset_;
  uint64_t seed_;
  int64_t epoch_;
  std::optional<Iterator> iterator_;
  State before_;  // the state before the current batch
  std::shared_ptr<BatchRows> batch_;
  int64_t row_ = 0;  // in the current batch
};

}  // namespace penstock::replica
