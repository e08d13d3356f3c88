// SPDX-License-Identifier: Apache-2.0
// Names of files that have a scheme.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::remote {

// "s3" of "s3://bucket/key", in lower case; empty where a name has no scheme.
std::string SchemeOf(std::string_view name);

// How an address is shown in errors and logs: no password, no query (which may
// sign the request).
std::string Shown(std::string_view url);

// All but letters, digits and -._~ as %XX; of a path also without /.
std::string PercentEncode(std::string_view text);
std::string PercentEncodePath(std::string_view path);

// s3://bucket/key, both literal.
struct S3Name {
  std::string bucket;
  std::string key;  // may be empty
};
// InvalidArgument where there is no bucket.
absl::StatusOr<S3Name> ParseS3Name(std::string_view name);

}  // namespace penstock::remote
