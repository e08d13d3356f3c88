// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/s3_listing.h"

#include <curl/curl.h>
#include <fnmatch.h>

#include <algorithm>
#include <pugixml.hpp>

#include "absl/strings/str_cat.h"
#include "control/env/remote/name.h"

namespace penstock::remote {
namespace {

// Decodes a key from a response with encoding-type=url, in which + is a space.
std::string Decoded(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  int size = 0;
  char* const decoded =
      curl_easy_unescape(nullptr, text.data(), static_cast<int>(text.size()), &size);
  if (decoded == nullptr) return text;
  std::string key(decoded, size);
  curl_free(decoded);
  return key;
}

}  // namespace

Listing ListingOf(std::string_view pattern) {
  const size_t special = std::min(pattern.find_first_of("*?[\\"), pattern.size());
  return {std::string(pattern.substr(0, special)),
          pattern.find('/', special) == std::string_view::npos};
}

std::string QueryOf(const Listing& listing, const std::string& token) {
  std::string query;
  if (!token.empty()) absl::StrAppend(&query, "continuation-token=", PercentEncode(token), "&");
  if (listing.one_level) absl::StrAppend(&query, "delimiter=%2F&");
  absl::StrAppend(&query, "encoding-type=url&list-type=2&prefix=", PercentEncode(listing.prefix));
  return query;
}

absl::StatusOr<ListedPage> ParsePage(std::string_view xml) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  const pugi::xml_node list = document.child("ListBucketResult");
  if (!parsed || !list) {
    return absl::DataLossError(absl::StrCat("the response is not a ListBucketResult",
                                            parsed ? "" : ": ",
                                            parsed ? "" : parsed.description()));
  }
  const bool encoded = std::string_view(list.child_value("EncodingType")) == "url";
  ListedPage page;
  for (const pugi::xml_node object : list.children("Contents")) {
    const std::string key = object.child_value("Key");
    page.keys.push_back(encoded ? Decoded(key) : key);
  }
  if (std::string_view(list.child_value("IsTruncated")) == "true") {
    page.next_token = list.child_value("NextContinuationToken");
    if (page.next_token.empty())
      return absl::DataLossError("the response is truncated, but has no NextContinuationToken");
  }
  return page;
}

bool Matches(const std::string& pattern, const std::string& key) {
  return fnmatch(pattern.c_str(), key.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
}

}  // namespace penstock::remote
