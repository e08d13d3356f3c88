// SPDX-License-Identifier: Apache-2.0
// Names of files that have a scheme.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::remote {

// Returns "s3" for "s3://bucket/key", in lower case; empty if the name has no scheme.
std::string SchemeOf(std::string_view name);

// Returns an address as errors and logs show it: without the password, and without the query, which
// may contain a signature.
std::string Shown(std::string_view url);

// Returns whether a path has a segment "." or "..".
bool HasDotSegments(std::string_view path);

// Encode all but letters, digits and -._~ as %XX; in a path, / is also kept.
std::string PercentEncode(std::string_view text);
std::string PercentEncodePath(std::string_view path);

// The parts of s3://bucket/key, as written in the name.
struct S3Name {
  std::string bucket;
  std::string key;  // may be empty
};
// InvalidArgument if there is no bucket.
absl::StatusOr<S3Name> ParseS3Name(std::string_view name);

}  // namespace penstock::remote
