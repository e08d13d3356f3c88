// SPDX-License-Identifier: Apache-2.0
// The parts of large datasets, as the bytes from which pieces are cut
// (control/rpc/dataset_fetcher.h). Making them takes time in proportion to their size, so they are
// kept while pieces of them are asked for. Includes no gRPC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "control/proto/messages_proto.h"
#include "control/state/state.h"

namespace penstock::control {

struct DatasetParts {
  std::shared_ptr<const DatasetRecord> dataset;
  std::string summary;          // a serialized wire::DatasetSummary
  wire::GetDatasetAnswer list;  // with the digests

  // REQUIRES: 1 <= part <= 2.
  std::string_view Content(uint32_t part) const {
    return part == 1 ? std::string_view(dataset->definition) : std::string_view(summary);
  }
  size_t bytes() const { return dataset->definition.size() + summary.size(); }
};

// Used by one thread.
class KeptDatasetParts {
 public:
  // `bytes`: the summaries that are kept. A dataset that was asked for within the last kInUse is
  // kept in any case. Otherwise two datasets that are fetched at once, and do not fit together,
  // would be made again for each piece.
  explicit KeptDatasetParts(size_t bytes = size_t{128} << 20) : most_bytes_(bytes) {}

  // A caller may wait this long for its next piece, if a thousand others wait before it.
  static constexpr absl::Duration kInUse = absl::Seconds(30);

  // Returns the parts of the dataset. Makes them if they are not kept.
  std::shared_ptr<const DatasetParts> Of(const std::shared_ptr<const DatasetRecord>& dataset,
                                         absl::Time now);
  void Clear() { kept_.clear(); }

 private:
  struct Kept {
    std::shared_ptr<const DatasetParts> parts;
    absl::Time asked_for;
  };

  void Evict(absl::Time now);

  const size_t most_bytes_;
  std::list<Kept> kept_;  // the last one that was asked for first
};

}  // namespace penstock::control
