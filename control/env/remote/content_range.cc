// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/content_range.h"

#include <charconv>

namespace penstock::remote {
namespace {

// Takes a number and the `mark` after it from the front of `text`.
bool Take(std::string_view& text, std::string_view mark, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(end - text.data());
  if (!text.starts_with(mark)) return false;
  text.remove_prefix(mark.size());
  return true;
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (!value.starts_with(kUnit)) return std::nullopt;
  value.remove_prefix(kUnit.size());
  ContentRange range;
  int64_t last;
  if (!Take(value, "-", range.begin) || !Take(value, "/", last) || !Take(value, "", range.size) ||
      !value.empty() || last < range.begin || last >= range.size) {
    return std::nullopt;
  }
  range.end = last + 1;
  return range;
}

}  // namespace penstock::remote
