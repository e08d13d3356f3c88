// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/index_set.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock {

IndexSet IndexSet::Of(Index begin, Index end) {
  IndexSet set;
  set.Add(begin, end);
  return set;
}

void IndexSet::Add(Index begin, Index end) {
  if (begin >= end) return;
  if (!intervals_.empty() && intervals_.back().end == begin) {  // the usual case: the next index
    intervals_.back().end = end;
    return;
  }
  // All intervals that touch [begin, end) become one.
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

void IndexSet::Add(const IndexSet& other) {
  for (const Interval& i : other.intervals_) Add(i.begin, i.end);
}

void IndexSet::Remove(const IndexSet& other) {
  if (!Intersects(other)) return;
  IndexSet left;
  auto hole = other.intervals_.begin();
  for (Interval i : intervals_) {
    while (hole != other.intervals_.end() && hole->end <= i.begin) ++hole;
    for (auto h = hole; h != other.intervals_.end() && h->begin < i.end; ++h) {
      left.Add(i.begin, h->begin);
      i.begin = std::max(i.begin, h->end);
    }
    left.Add(i.begin, i.end);
  }
  *this = std::move(left);
}

bool IndexSet::Contains(Index index) const {
  auto i = std::upper_bound(intervals_.begin(), intervals_.end(), index,
                            [](Index x, const Interval& interval) { return x < interval.end; });
  return i != intervals_.end() && i->begin <= index;
}

bool IndexSet::Contains(const IndexSet& other) const {
  for (const Interval& i : other.intervals_)
    if (FirstMissing(i.begin) < i.end) return false;
  return true;
}

bool IndexSet::Intersects(const IndexSet& other) const {
  auto a = intervals_.begin();
  auto b = other.intervals_.begin();
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
  auto i = std::upper_bound(intervals_.begin(), intervals_.end(), from,
                            [](Index x, const Interval& interval) { return x < interval.end; });
  return i != intervals_.end() && i->begin <= from ? i->end : from;
}

std::string IndexSet::ToString() const {
  std::string text;
  for (const Interval& i : intervals_)
    absl::StrAppend(&text, text.empty() ? "" : " ", "[", i.begin, ",", i.end, ")");
  return text.empty() ? "{}" : text;
}

}  // namespace penstock
