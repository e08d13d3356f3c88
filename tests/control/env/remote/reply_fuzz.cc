// SPDX-License-Identifier: Apache-2.0
// Input from servers and the files of AWS's tools. The first byte chooses the kind: a header, an
// error, a listing, profiles.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "control/env/remote/content_range.h"
#include "control/env/remote/retry.h"
#include "control/env/remote/s3_account.h"
#include "control/env/remote/s3_listing.h"
#include "penstock/check.h"

namespace penstock::remote {
namespace {

void TryRange(std::string_view text) {
  const std::optional<ContentRange> range = ParseContentRange(text);
  if (!range.has_value()) return;
  PENSTOCK_CHECK(0 <= range->begin && range->begin < range->end && range->end <= range->size);
}

void TryError(std::string_view text) {
  for (const char* type : {"application/xml", "text/plain"}) {
    const Refusal refusal{.code = 400, .content_type = type, .body = std::string(text)};
    MayPass(refusal);
    PENSTOCK_CHECK(!ErrorOf("s3://bucket/key", refusal).ok());
  }
}

void TryListing(std::string_view text) {
  const absl::StatusOr<ListedPage> page = ParsePage(text);
  if (!page.ok()) return;
  for (const std::string& key : page->keys) Matches("a*/[b-c]?", key);
}

}  // namespace
}  // namespace penstock::remote

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      penstock::remote::TryRange(text);
      break;
    case 1:
      penstock::remote::TryError(text);
      break;
    case 2:
      penstock::remote::TryListing(text);
      break;
    default:
      penstock::remote::ParseProfiles(text);
  }
  return 0;
}
