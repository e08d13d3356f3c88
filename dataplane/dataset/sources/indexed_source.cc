// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/indexed_source.h"

#include <algorithm>
#include <utility>

#include "dataplane/dataset/engine/element_views.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "include/status_macros.h"

namespace penstock {

absl::StatusOr<std::optional<Span64>> IndexedSource::NextSplit() {
  ASSIGN_OR_RETURN(const std::optional<Span64> split, cursor_.Next());
  if (!split.has_value()) return std::nullopt;
  return Elements(*split);
}

absl::StatusOr<bool> IndexedSource::Advance() {
  while (span_.begin == span_.end) {
    ASSIGN_OR_RETURN(const std::optional<Span64> next, NextSplit());
    if (!next.has_value()) return false;
    span_ = *next;
  }
  return true;
}

absl::StatusOr<std::optional<Element>> IndexedSource::Next() {
  RETURN_IF_ERROR(site_.CheckCancelled());
  ASSIGN_OR_RETURN(const bool more, Advance());
  if (!more) return std::nullopt;
  absl::StatusOr<Element> element = Make(span_.begin);
  if (!absl::IsCancelled(element.status())) ++span_.begin;
  return element;
}

absl::StatusOr<bool> IndexedSource::MakeNext(absl::FunctionRef<absl::Status(int64_t n)> make) {
  RETURN_IF_ERROR(site_.CheckCancelled());
  ASSIGN_OR_RETURN(const bool more, Advance());
  if (!more) return false;
  const absl::Status made = make(span_.begin);
  if (!absl::IsCancelled(made)) ++span_.begin;
  RETURN_IF_ERROR(made);
  return true;
}

absl::StatusOr<bool> IndexedSource::NextInto(ResultSink& sink) {
  return MakeNext([&](int64_t n) { return MakeInto(n, sink); });
}

absl::StatusOr<bool> IndexedSource::NextViews(ElementViews& views) {
  return MakeNext([&](int64_t n) { return MakeViews(n, views); });
}

absl::Status IndexedSource::MakeInto(int64_t n, ResultSink& sink) {
  ASSIGN_OR_RETURN(const Element element, Make(n));
  for (size_t i = 0; i < element.size(); ++i) RETURN_IF_ERROR(sink.Copy(i, element.tensor(i)));
  return absl::OkStatus();
}

absl::Status IndexedSource::MakeViews(int64_t n, ElementViews& views) {
  ASSIGN_OR_RETURN(Element element, Make(n));
  views.Add(std::move(element));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> IndexedSource::Skip(int64_t count) {
  int64_t passed = 0;
  while (passed < count) {
    RETURN_IF_ERROR(site_.CheckCancelled());
    ASSIGN_OR_RETURN(const bool more, Advance());
    if (!more) break;
    const int64_t step = std::min(count - passed, span_.end - span_.begin);
    span_.begin += step;
    passed += step;
  }
  return passed;
}

absl::Status IndexedSource::Save(StateWriter& writer) {
  cursor_.Save(writer, span_);
  return absl::OkStatus();
}

absl::Status IndexedSource::Restore(StateReader& reader) {
  ASSIGN_OR_RETURN(span_, cursor_.Restore(reader, [this] { return NextSplit(); }));
  return absl::OkStatus();
}

}  // namespace penstock
