// SPDX-License-Identifier: Apache-2.0
// What iterators that give batches of their input have in common: how many rows
// a batch has, and a position, which is the number of elements in batches given.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/node_iterator.h"
#include "dataplane/dataset/transforms/positioned_input.h"

namespace penstock {

class BatchingIterator : public NodeIterator {
 public:
  absl::StatusOr<int64_t> Skip(int64_t count) override { return SkipBatches(count); }
  absl::Status Save(StateWriter& writer) final { return input_.Save(writer, given_); }
  absl::Status Restore(StateReader& reader) final;

 protected:
  // The site has the attributes "batch_size" and "drop_remainder". At least so many
  // elements lie between two remembered positions of the input.
  BatchingIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, int64_t remember,
                   PositionedInput::Holds holds = PositionedInput::Holds::kNothing);

  // Passes over batches none of whose rows was read; returns how many there were.
  absl::StatusOr<int64_t> SkipBatches(int64_t count);
  // The first `elements` of the input are in batches given.
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
