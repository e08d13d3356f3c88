// SPDX-License-Identifier: Apache-2.0
// A source whose elements are numbered, and which makes each element from its number alone. The
// position is a number, so skipping elements costs nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/sources/split_cursor.h"

namespace penstock {

class IndexedSource : public NodeIterator {
 public:
  absl::StatusOr<std::optional<Element>> Next() final;
  absl::StatusOr<bool> NextInto(ResultSink& sink) final;
  absl::StatusOr<bool> NextViews(ElementViews& views) final;
  absl::StatusOr<int64_t> Skip(int64_t count) final;
  absl::Status Save(StateWriter& writer) final;
  absl::Status Restore(StateReader& reader) final;

 protected:
  // A source of `count` units in `splits` splits. A unit is one element, unless Elements() is
  // overridden.
  IndexedSource(const BuildSite& site, int64_t count, int64_t splits)
      : site_(site), cursor_(site, count, splits) {}

  // The numbers of the elements in the units [split.begin, split.end).
  virtual Span64 Elements(Span64 split) const { return split; }
  // Makes element `n`. REQUIRES: 0 ≤ n < count.
  virtual absl::StatusOr<Element> Make(int64_t n) = 0;
  // Makes element `n` and writes it into `sink`.
  virtual absl::Status MakeInto(int64_t n, ResultSink& sink);
  // Makes element `n` and adds it to `views`.
  virtual absl::Status MakeViews(int64_t n, ElementViews& views);
  const BuildSite& site() const { return site_; }

 private:
  // Returns the elements of the next split; nullopt after the last split.
  absl::StatusOr<std::optional<Span64>> NextSplit();
  // Calls make(n) for the next element. Returns false after the last element.
  absl::StatusOr<bool> MakeNext(absl::FunctionRef<absl::Status(int64_t n)> make);
  // Returns whether there is a next element. Gets the next split when the current one is used up.
  absl::StatusOr<bool> Advance();

  BuildSite site_;
  SplitCursor cursor_;
  Span64 span_ = {0, 0};  // elements left in the current split
};

}  // namespace penstock
