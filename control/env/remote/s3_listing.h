// SPDX-License-Identifier: Apache-2.0
// Requests to S3's ListObjectsV2, and their responses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::remote {

// A listing that contains all keys that match a shell pattern.
struct Listing {
  std::string prefix;  // the pattern before its first * ? or [
  bool one_level;      // the pattern has no / after the prefix: deeper keys cannot match
};
Listing ListingOf(std::string_view pattern);

// Returns the query of the listing's request, with the parameters sorted as a signature requires.
// `token`: the next_token of the previous page; empty for the first page.
std::string QueryOf(const Listing& listing, const std::string& token);

struct ListedPage {
  std::vector<std::string> keys;
  std::string next_token;  // empty: the last page
};
// DataLoss if `xml` is not a complete response of ListObjectsV2.
absl::StatusOr<ListedPage> ParsePage(std::string_view xml);

// Matches as glob(3) does: * and ? do not match a /, or a . at the beginning of a part of the path.
bool Matches(const std::string& pattern, const std::string& key);

}  // namespace penstock::remote
