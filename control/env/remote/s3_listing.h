// SPDX-License-Identifier: Apache-2.0
// What S3's ListObjectsV2 is asked for, and what it answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::remote {

// What has to be listed to find all keys that match a shell pattern.
struct Listing {
  std::string prefix;  // in front of the first * ? [
  bool one_level;      // no / behind it: what lies deeper is of no interest
};
Listing ListingOf(std::string_view pattern);

// Its query, the names in order, as a signature wants it. `token` is of the page
// before, empty for the first.
std::string QueryOf(const Listing& listing, const std::string& token);

struct ListedPage {
  std::vector<std::string> keys;
  std::string next_token;  // empty: the last page
};
// DataLoss for what is no such answer.
absl::StatusOr<ListedPage> ParsePage(std::string_view xml);

// As glob(3) does: * and ? match no /, and no . at the beginning of a part.
bool Matches(const std::string& pattern, const std::string& key);

}  // namespace penstock::remote
