// SPDX-License-Identifier: Apache-2.0
// Requests to S3's ListObjectsV2 and its responses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::remote {

// The listing that contains all keys that match a shell pattern.
struct Listing {
  std::string prefix;  // before the first * ? [
  bool one_level;      // no / after that: deeper keys cannot match
};
Listing ListingOf(std::string_view pattern);

// Returns its query, with the names sorted as a signature requires. `token` is from the previous
// page; empty for the first page.
std::string QueryOf(const Listing& listing, const std::string& token);

struct ListedPage {
  std::vector<std::string> keys;
  std::string next_token;  // empty: the last page
};
// DataLoss if `xml` is not such a response.
absl::StatusOr<ListedPage> ParsePage(std::string_view xml);

// Matches as glob(3) does: * and ? match no /, and no . at the beginning of a part.
bool Matches(const std::string& pattern, const std::string& key);

}  // namespace penstock::remote
