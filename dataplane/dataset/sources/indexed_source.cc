// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/indexed_source.h"

#include <algorithm>
#include <limits>

#include "dataplane/dataset/function.h"
#include "dataplane/dataset/state_bytes.h"
#include "penstock/status.h"

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

absl::StatusOr<bool> IndexedSource::NextInto(ResultSink& sink) {
  RETURN_IF_ERROR(site_.CheckCancelled());
  ASSIGN_OR_RETURN(const bool more, Advance());
  if (!more) return false;
  const absl::Status made = MakeInto(span_.begin, sink);
  if (!absl::IsCancelled(made)) ++span_.begin;
  RETURN_IF_ERROR(made);
  return true;
}

absl::Status IndexedSource::MakeInto(int64_t n, ResultSink& sink) {
  ASSIGN_OR_RETURN(const Element element, Make(n));
  for (size_t i = 0; i < element.size(); ++i) RETURN_IF_ERROR(sink.Copy(i, element.tensor(i)));
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

// Splits begun, and how many elements of the last one are left. The split's own
// number is asked for again: the feed gives the same one.
absl::Status IndexedSource::Save(StateWriter& writer) {
  writer.WriteInt(cursor_.ordinal());
  writer.WriteInt(span_.end - span_.begin);
  return absl::OkStatus();
}

absl::Status IndexedSource::Restore(StateReader& reader) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(const int64_t ordinal, reader.ReadIntIn(0, kMax, "the number of splits"));
  ASSIGN_OR_RETURN(const int64_t left, reader.ReadIntIn(0, kMax, "what is left of a split"));
  cursor_.Seek(ordinal);
  if (left == 0) return absl::OkStatus();
  const absl::Status outside = absl::DataLossError("a saved position lies outside its split");
  if (ordinal == 0) return outside;
  cursor_.Seek(ordinal - 1);
  ASSIGN_OR_RETURN(const std::optional<Span64> span, NextSplit());
  if (!span.has_value() || left > span->end - span->begin) return outside;
  span_ = {span->end - left, span->end};
  return absl::OkStatus();
}

}  // namespace penstock
