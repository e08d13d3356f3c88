// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/group_output.h"

#include <utility>

#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::worker {

GroupOutput::GroupOutput(NodeIterator& iterator, int64_t size, Index index, Finish finish)
    : iterator_(iterator), size_(size), finish_(std::move(finish)), index_(index) {
  PENSTOCK_CHECK(whole());
}

absl::StatusOr<std::optional<Element>> GroupOutput::Next() {
  Make();
  if (made_->ok() && !(*made_)->has_value()) return std::nullopt;
  absl::StatusOr<std::optional<Element>> next = std::nullopt;
  if (!made_->ok()) {
    next = made_->status();
  } else if (index_ % size_ == size_ - 1) {
    next = *std::move(*made_);
  } else {
    next = (**made_)->Share();
  }
  Pass();
  return next;
}

absl::StatusOr<int64_t> GroupOutput::Skip(int64_t count) {
  int64_t passed = 0;
  while (passed < count) {
    const int64_t elements = (count - passed) / size_;
    if (whole() && elements > 0) {
      ASSIGN_OR_RETURN(const int64_t gone, iterator_.Skip(elements));
      passed += gone * size_;
      index_ += gone * size_;
      if (gone < elements) break;
      continue;
    }
    Make();  // for the later members of the group
    if (made_->ok() && !(*made_)->has_value()) break;
    Pass();
    ++passed;
  }
  return passed;
}

void GroupOutput::Make() {
  if (made_.has_value()) return;
  made_ = iterator_.Next();
  if (!made_->ok() || !(*made_)->has_value()) return;
  absl::StatusOr<Element> finished = finish_(***std::move(made_), index_);
  if (finished.ok()) {
    made_.emplace(*std::move(finished));
  } else {
    made_.emplace(finished.status());
  }
}

void GroupOutput::Pass() {
  ++index_;
  if (whole()) made_.reset();
}

}  // namespace penstock::worker
