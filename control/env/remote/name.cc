// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/name.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::remote {
namespace {

constexpr std::string_view kAfterScheme = "://";

std::string Encode(std::string_view text, std::string_view also_kept) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || std::string_view("-._~").find(c) != std::string_view::npos ||
        also_kept.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace

std::string SchemeOf(std::string_view name) {
  const size_t end = name.find(kAfterScheme);
  if (end == std::string_view::npos || end == 0) return "";
  const std::string_view scheme = name.substr(0, end);
  const bool is_scheme = std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '+' || c == '-' || c == '.';
  });
  return is_scheme ? absl::AsciiStrToLower(std::string(scheme)) : "";
}

std::string Shown(std::string_view url) {
  std::string shown(url.substr(0, url.find_first_of("?#")));
  if (shown.size() < url.size()) shown += "?…";
  const size_t scheme = shown.find(kAfterScheme);
  const size_t host = scheme == std::string::npos ? 0 : scheme + kAfterScheme.size();
  const size_t at = std::string_view(shown).substr(0, shown.find('/', host)).rfind('@');
  if (at != std::string::npos && at >= host) shown.erase(host, at + 1 - host);
  return shown;
}

bool HasDotSegments(std::string_view path) {
  const std::vector<absl::string_view> segments =
      absl::StrSplit(absl::string_view(path.data(), path.size()), '/');
  return std::any_of(segments.begin(), segments.end(),
                     [](absl::string_view segment) { return segment == "." || segment == ".."; });
}

std::string PercentEncode(std::string_view text) {
  return Encode(text, "");
}

std::string PercentEncodePath(std::string_view path) {
  return Encode(path, "/");
}

absl::StatusOr<S3Name> ParseS3Name(std::string_view name) {
  const size_t scheme = name.find(kAfterScheme);
  const std::string_view rest =
      scheme == std::string_view::npos ? "" : name.substr(scheme + kAfterScheme.size());
  const size_t slash = rest.find('/');
  const std::string_view bucket = rest.substr(0, slash);
  // Other characters could change the host of the URL that is made of the name.
  const bool is_bucket = std::all_of(bucket.begin(), bucket.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
  });
  if (bucket.empty() || !is_bucket) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), " does not name a bucket: s3://bucket/key"));
  }
  return S3Name{std::string(bucket),
                slash == std::string_view::npos ? "" : std::string(rest.substr(slash + 1))};
}

}  // namespace penstock::remote
