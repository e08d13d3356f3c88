// SPDX-License-Identifier: Apache-2.0
// The elements that are read while processes die. Each has its number, and values computed from the
// number, which show whether they belong to it.
#pragma once

#include <cstdint>

#include "penstock/penstock.h"

namespace penstock::soak {

// 0 … count - 1, each with `words` int64 values that the worker computes from it.
inline Dataset Numbers(int64_t count, int64_t words) {
  return Dataset::Range(count).Map([words](auto number) {
    return Tuple({number, OneHot(number, words, kInt64) * int64_t{7} + number});
  });
}

// The elements that a job with a filter reads: all but the multiples of 3.
inline Dataset Kept(const Dataset& numbers) {
  return numbers.Filter([](auto element) { return element[0] % int64_t{3} != int64_t{0}; });
}

inline int64_t NumberOf(const Element& element) {
  return element.tensor(0).scalar<int64_t>();
}

// Returns whether all values of the element belong to its number.
inline bool IsWhole(const Element& element, int64_t words) {
  const int64_t number = NumberOf(element);
  const absl::Span<const int64_t> values = element.tensor(1).data<int64_t>();
  if (static_cast<int64_t>(values.size()) != words) return false;
  int64_t wrong = 0;
  for (int64_t i = 0; i < words; ++i) wrong += values[i] != number + (i == number ? 7 : 0);
  return wrong == 0;
}

}  // namespace penstock::soak
