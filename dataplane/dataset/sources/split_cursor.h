// SPDX-License-Identifier: Apache-2.0
// The splits of one source, one after the other: what the feed gives, or, where
// nobody divides the source, everything as one.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/split.h"
#include "dataplane/dataset/state_bytes.h"

namespace penstock {

class SplitCursor {
 public:
  // Of a source of `count` elements that is cut into `splits`.
  SplitCursor(const BuildSite& site, int64_t count, int64_t splits);

  // The numbers of the elements in the next split; nullopt behind the last.
  // Waits for the feed. DataLoss for a split the source does not have.
  absl::StatusOr<std::optional<Span64>> Next();

  // The position in the span that Next() gave last, of which `left` is left: how many
  // splits were begun, and how much of the last is left. The split's own number is
  // asked for again: the feed gives the same one.
  void Save(StateWriter& writer, Span64 left) const;
  // Says what of the splits a position needs: `some_left` of the last one, which Save() does
  // itself.
  void NoteNeeded(StateWriter& writer, bool some_left) const;
  // What was left of the span that `next` gives for that split (Next(), or what is made of
  // it); empty where it had ended. DataLoss for what Save() never wrote.
  absl::StatusOr<Span64> Restore(StateReader& reader,
                                 absl::FunctionRef<absl::StatusOr<std::optional<Span64>>()> next);

  // How many splits Next() has given. Seek makes Next() give that one next.
  int64_t ordinal() const { return ordinal_; }
  void Seek(int64_t ordinal) { ordinal_ = ordinal; }

 private:
  BuildSite site_;
  int64_t count_;
  int64_t splits_;
  int64_t ordinal_ = 0;
};

}  // namespace penstock
