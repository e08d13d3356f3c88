// SPDX-License-Identifier: Apache-2.0
// The common part of iterators that return batches of their input: the number of rows of a batch,
// and the position, which is the number of elements in the batches returned so far.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/transforms/positioned_input.h"

namespace penstock {

class BatchingIterator : public NodeIterator {
 public:
  absl::StatusOr<int64_t> Skip(int64_t count) override { return SkipBatches(count); }
  absl::Status Save(StateWriter& writer) final { return input_.Save(writer, given_); }
  absl::Status Restore(StateReader& reader) final;

 protected:
  // The site has the attributes "batch_size" and "drop_remainder". At least `remember` elements are
  // between two remembered positions of the input.
  BatchingIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, int64_t remember,
                   PositionedInput::Holds holds = PositionedInput::Holds::kNothing);

  // Skips whole batches before any of their rows is read. Returns the number of batches skipped.
  absl::StatusOr<int64_t> SkipBatches(int64_t count);
  // Notes that the first `elements` elements of the input are in batches that were returned.
  void GaveUpTo(int64_t elements);
  int64_t given() const { return given_; }

  const BuildSite site_;
  const int64_t rows_;
  const bool drop_remainder_;
  PositionedInput input_;

 private:
  int64_t given_ = 0;
};

}  // namespace penstock
