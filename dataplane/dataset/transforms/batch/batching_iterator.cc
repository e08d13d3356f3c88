// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/batching_iterator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "include/status_macros.h"

namespace penstock {

BatchingIterator::BatchingIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
                                   int64_t remember, PositionedInput::Holds holds)
    : site_(site),
      rows_(site.attr<int64_t>("batch_size")),
      drop_remainder_(site.attr<bool>("drop_remainder")),
      input_(std::move(input), std::max(rows_, remember), holds) {}

absl::StatusOr<int64_t> BatchingIterator::SkipBatches(int64_t count) {
  int64_t wanted;
  if (__builtin_mul_overflow(count, rows_, &wanted)) wanted = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(const int64_t rows, input_.Skip(wanted));
  GaveUpTo(input_.pulled());
  return rows / rows_ + (rows % rows_ != 0 && !drop_remainder_ ? 1 : 0);
}

void BatchingIterator::GaveUpTo(int64_t elements) {
  given_ = elements;
  input_.Release(given_);
  input_.GaveBelow(given_);
}

absl::Status BatchingIterator::Restore(StateReader& reader) {
  RETURN_IF_ERROR(input_.Restore(reader));
  given_ = input_.pulled();
  return absl::OkStatus();
}

}  // namespace penstock
