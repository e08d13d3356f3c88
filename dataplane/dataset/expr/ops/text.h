// SPDX-License-Identifier: Apache-2.0
// Helpers for operations on strings.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/op_run.h"

namespace penstock {

inline absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

inline absl::Status CheckString(const TensorSpec& spec, int argument) {
  if (spec.dtype == kString) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("argument ", argument, " is ", Name(spec.dtype), ", not string"));
}

// Returns the start of a string, for messages.
inline std::string Quoted(std::string_view value) {
  constexpr size_t kShown = 32;
  return absl::StrCat("'", absl::CHexEscape({value.data(), std::min(value.size(), kShown)}),
                      value.size() > kShown ? "…'" : "'");
}

// Makes a string tensor of these dims. make(n) returns string n, a StatusOr.
template <class Make>
absl::Status MakeStrings(OpRun& run, absl::Span<const int64_t> dims, Make&& make) {
  auto count = CountOf(dims, kUInt64);
  if (!count.ok()) return count.status();
  std::vector<std::string> values;
  values.reserve(*count);
  uint64_t bytes = 0;
  for (int64_t n = 0; n < *count; ++n) {
    absl::StatusOr<std::string> value = make(n);
    if (!value.ok()) return value.status();
    bytes += value->size();
    if (bytes > MostValueBytes()) return StringsTooLarge(bytes);
    values.push_back(*std::move(value));
  }
  return run.Strings(0, dims, [&](int64_t n) -> std::string_view { return values[n]; });
}

}  // namespace penstock
