// SPDX-License-Identifier: Apache-2.0
// The splits of one source, one after another: the splits that the feed returns or, without a feed,
// the whole source as one split.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/split.h"
#include "dataplane/dataset/graph/state_bytes.h"

namespace penstock {

class SplitCursor {
 public:
  // `count` is the number of elements of the source, `splits` the number of its splits.
  SplitCursor(const BuildSite& site, int64_t count, int64_t splits);

  // The numbers of the elements in the next split; nullopt after the last split. Waits for the
  // feed. DataLoss for a split number that the source does not have.
  absl::StatusOr<std::optional<Span64>> Next();

  // Saves the position in the span that Next() returned last, of which `left` has not been read
  // yet: the number of splits begun, and the number of elements left in the last split. The split's
  // own number is not saved, because the feed returns the same split again.
  void Save(StateWriter& writer, Span64 left) const;
  // Notes in `writer` which splits the position needs. `some_left` means that the last split is
  // among them. Save() calls this itself.
  void NoteNeeded(StateWriter& writer, bool some_left) const;
  // Restores a position. `next` returns the span of the saved split: what Next() returns, or a span
  // derived from it. Returns the part of that span that was left, empty if the split had ended.
  // DataLoss for a position that Save() cannot have written.
  absl::StatusOr<Span64> Restore(StateReader& reader,
                                 absl::FunctionRef<absl::StatusOr<std::optional<Span64>>()> next);

  // The number of splits that Next() has returned. After Seek(n), Next() returns the split with
  // ordinal n.
  int64_t ordinal() const { return ordinal_; }
  void Seek(int64_t ordinal) { ordinal_ = ordinal; }

 private:
  BuildSite site_;
  int64_t count_;
  int64_t splits_;
  int64_t ordinal_ = 0;
};

}  // namespace penstock
