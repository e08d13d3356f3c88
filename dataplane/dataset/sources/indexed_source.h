// SPDX-License-Identifier: Apache-2.0
// Sources whose elements are numbered, each made from its number alone: the
// position is a number, and so passing over elements costs nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/node_iterator.h"
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
  // A source of `count` elements in `splits` splits, or of `count` larger units
  // of which Elements() says what they hold.
  IndexedSource(const BuildSite& site, int64_t count, int64_t splits)
      : site_(site), cursor_(site, count, splits) {}

  // The elements of the units [split.begin, split.end).
  virtual Span64 Elements(Span64 split) const { return split; }
  // Element number `n`, 0 ≤ n < count.
  virtual absl::StatusOr<Element> Make(int64_t n) = 0;
  // The same, written into `sink`.
  virtual absl::Status MakeInto(int64_t n, ResultSink& sink);
  // The same, as views.
  virtual absl::Status MakeViews(int64_t n, ElementViews& views);
  const BuildSite& site() const { return site_; }

 private:
  // The elements of the next split; nullopt behind the last.
  absl::StatusOr<std::optional<Span64>> NextSplit();
  // make(n) for the next element; false behind the last.
  absl::StatusOr<bool> MakeNext(absl::FunctionRef<absl::Status(int64_t n)> make);
  // Whether there is a next element; fetches the next split when one is used up.
  absl::StatusOr<bool> Advance();

  BuildSite site_;
  SplitCursor cursor_;
  Span64 span_ = {0, 0};  // what is left of the current split
};

}  // namespace penstock
