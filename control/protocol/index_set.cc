// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/index_set.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

using Intervals = absl::InlinedVector<IndexSet::Interval, 2>;
using Position = Intervals::const_iterator;

// Returns the interval that contains `index` or, if there is none, the next interval.
Position FirstEndingAbove(const Intervals& intervals, Index index) {
  return std::upper_bound(
      intervals.begin(), intervals.end(), index,
      [](Index x, const IndexSet::Interval& interval) { return x < interval.end; });
}

void Replace(Intervals& intervals, Position first, Position last, const Intervals& by) {
  const auto kept = std::min(last - first, static_cast<std::ptrdiff_t>(by.size()));
  const auto at =
      std::copy(by.begin(), by.begin() + kept, intervals.begin() + (first - intervals.cbegin()));
  if (first + kept != last) {
    intervals.erase(at, last);
  } else {
    intervals.insert(at, by.begin() + kept, by.end());
  }
}

}  // namespace

IndexSet IndexSet::Of(Index begin, Index end) {
  IndexSet set;
  set.Add(begin, end);
  return set;
}

void IndexSet::Add(Index begin, Index end) {
  if (begin >= end) return;
  if (empty() || intervals_.back().end < begin) return intervals_.push_back({begin, end});
  if (intervals_.back().end == begin) {  // the usual case: the next index
    intervals_.back().end = end;
    return;
  }
  // All intervals that touch [begin, end) become one interval.
  auto first = std::lower_bound(intervals_.begin(), intervals_.end(), begin,
                                [](const Interval& i, Index b) { return i.end < b; });
  auto last = first;
  for (; last != intervals_.end() && last->begin <= end; ++last) {
    begin = std::min(begin, last->begin);
    end = std::max(end, last->end);
  }
  first = intervals_.erase(first, last);
  intervals_.insert(first, {begin, end});
}

// Takes time linear in the sizes of `other` and of the part of this set at or after the beginning
// of `other`. This matters because the sets of two readers that alternate have very many intervals.
void IndexSet::Add(const IndexSet& other) {
  if (other.intervals_.size() <= 1) {
    if (!other.empty()) Add(other.intervals_.front().begin, other.intervals_.front().end);
    return;
  }
  const Position from =
      FirstEndingAbove(intervals_, other.intervals_.front().begin - 1);  // also an interval that
                                                                         // touches it
  Intervals both;
  both.reserve(static_cast<size_t>(intervals_.end() - from) + other.intervals_.size());
  std::merge(from, intervals_.cend(), other.intervals_.begin(), other.intervals_.end(),
             std::back_inserter(both));
  auto last = both.begin();
  for (const Interval& next : both) {
    if (next.begin <= last->end) {
      last->end = std::max(last->end, next.end);
    } else {
      *++last = next;
    }
  }
  both.erase(last + 1, both.end());
  Replace(intervals_, from, intervals_.cend(), both);
}

void IndexSet::Remove(const IndexSet& other) {
  if (empty() || other.empty()) return;
  const Interval& only = other.intervals_.front();
  Interval& lowest = intervals_.front();
  if (other.intervals_.size() == 1 && only.begin <= lowest.begin && only.end <= lowest.end) {
    lowest.begin = std::max(lowest.begin, only.end);  // the usual case: the lowest index
    if (lowest.begin == lowest.end) intervals_.erase(intervals_.begin());
    return;
  }
  const Position first = FirstEndingAbove(intervals_, other.intervals_.front().begin);
  const Position last =
      std::lower_bound(first, intervals_.cend(), other.end(),
                       [](const Interval& interval, Index x) { return interval.begin < x; });
  if (first == last) return;
  Intervals left;
  auto hole = FirstEndingAbove(other.intervals_, first->begin);
  for (Position i = first; i != last; ++i) {
    Index begin = i->begin;
    for (; hole != other.intervals_.end() && hole->begin < i->end; ++hole) {
      if (begin < hole->begin) left.push_back({begin, hole->begin});
      begin = std::max(begin, hole->end);
      if (hole->end > i->end) break;  // the hole reaches into the next interval
    }
    if (begin < i->end) left.push_back({begin, i->end});
  }
  Replace(intervals_, first, last, left);
}

bool IndexSet::Contains(Index index) const {
  const Position i = FirstEndingAbove(intervals_, index);
  return i != intervals_.end() && i->begin <= index;
}

bool IndexSet::Contains(const IndexSet& other) const {
  for (const Interval& i : other.intervals_)
    if (FirstMissing(i.begin) < i.end) return false;
  return true;
}

bool IndexSet::Intersects(const IndexSet& other) const {
  if (empty() || other.empty()) return false;
  Position a = FirstEndingAbove(intervals_, other.intervals_.front().begin);
  Position b = FirstEndingAbove(other.intervals_, intervals_.front().begin);
  while (a != intervals_.end() && b != other.intervals_.end()) {
    if (a->end <= b->begin)
      ++a;
    else if (b->end <= a->begin)
      ++b;
    else
      return true;
  }
  return false;
}

int64_t IndexSet::size() const {
  int64_t count = 0;
  for (const Interval& i : intervals_) count += i.end - i.begin;
  return count;
}

Index IndexSet::FirstMissing(Index from) const {
  const Position i = FirstEndingAbove(intervals_, from);
  return i != intervals_.end() && i->begin <= from ? i->end : from;
}

std::string IndexSet::ToString() const {
  std::string text;
  for (const Interval& i : intervals_)
    absl::StrAppend(&text, text.empty() ? "" : " ", "[", i.begin, ",", i.end, ")");
  return text.empty() ? "{}" : text;
}

}  // namespace penstock
