// SPDX-License-Identifier: Apache-2.0
// Which remote files may be read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::remote {

// Immutable. Any thread.
class UrlRules {
 public:
  // `prefixes` begin with "http://", "https://" or "s3://". A prefix without a host or bucket
  // allows all of them. InvalidArgument for a prefix that cannot be parsed or has a query.
  static absl::StatusOr<UrlRules> Parse(const std::vector<std::string>& prefixes);

  enum class Hosts {
    kNone,    // the name is not allowed
    kPublic,  // the name is allowed if its host has a public address (public_address.h)
    kAny      // a prefix names the host, so its address does not matter
  };
  // Judges the name of a file.
  //
  // - A URL is parsed by libcurl, which also requests it. Scheme and host are compared in lower
  //   case, ports with their defaults, paths without percent-encoding. User, password, query and
  //   fragment do not count.
  // - A path is not allowed if servers might disagree about its folder: if it has a segment "." or
  //   "..", also before a ";", an encoded slash, a backslash, or is encoded twice.
  // - The key of an S3 object is compared as written.
  Hosts Judge(const std::string& name) const;

 private:
  struct Name {
    std::string scheme;
    std::string host;  // or the bucket; empty: any
    std::string port;
    std::string path;  // begins with "/"
  };

  static std::optional<Name> ParseName(const std::string& name);
  static std::optional<Name> ParseUrl(const std::string& url);
  static absl::StatusOr<Name> ParsePrefix(const std::string& prefix);

  std::vector<Name> prefixes_;
};

}  // namespace penstock::remote
