// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/url_rules.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "control/env/remote/name.h"
#include "include/status_macros.h"

namespace penstock::remote {
namespace {

bool IsRemote(const std::string& scheme) {
  return scheme == "http" || scheme == "https" || scheme == "s3";
}

// Removes from each segment a ";" and what follows it, as some servers do.
std::string WithoutParameters(const std::string& path) {
  return absl::StrJoin(absl::StrSplit(path, '/'), "/",
                       [](std::string* out, absl::string_view part) {
                         absl::StrAppend(out, part.substr(0, part.find(';')));
                       });
}

// Returns whether all servers see the same folders in a path: `raw` as written, `decoded` once.
bool IsPlain(const std::string& raw, const std::string& decoded) {
  if (HasDotSegments(WithoutParameters(decoded)) || absl::StrContains(decoded, '\\')) return false;
  if (std::count(raw.begin(), raw.end(), '/') != std::count(decoded.begin(), decoded.end(), '/'))
    return false;
  const std::string again = absl::AsciiStrToLower(decoded);
  return !absl::StrContains(again, "%2e") && !absl::StrContains(again, "%2f") &&
         !absl::StrContains(again, "%5c") && !absl::StrContains(again, "%3b");
}

// Returns whether `path` is `folder` or begins with it, up to the end of a segment.
bool IsBelow(absl::string_view path, absl::string_view folder) {
  if (!absl::StartsWith(path, folder)) return false;
  return absl::EndsWith(folder, "/") || path.size() == folder.size() || path[folder.size()] == '/';
}

std::optional<std::string> PartOf(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return std::nullopt;
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

std::optional<UrlRules::Name> UrlRules::ParseUrl(const std::string& url) {
  if (url.find_first_of(std::string_view("\0\\", 2)) != std::string::npos) return std::nullopt;
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_PATH_AS_IS) != CURLUE_OK)
    return std::nullopt;
  const auto scheme = PartOf(parsed.get(), CURLUPART_SCHEME);
  const auto host = PartOf(parsed.get(), CURLUPART_HOST);
  const auto port = PartOf(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const auto raw = PartOf(parsed.get(), CURLUPART_PATH);
  const auto path = PartOf(parsed.get(), CURLUPART_PATH, CURLU_URLDECODE);
  if (!scheme || !host || !port || !raw || !path || !IsPlain(*raw, *path)) return std::nullopt;
  return Name{absl::AsciiStrToLower(*scheme), absl::AsciiStrToLower(*host), *port, *path};
}

std::optional<UrlRules::Name> UrlRules::ParseName(const std::string& name) {
  if (SchemeOf(name) != "s3") return ParseUrl(name);
  const absl::StatusOr<S3Name> place = ParseS3Name(name);
  if (!place.ok() || HasDotSegments(place->bucket) || HasDotSegments(place->key))
    return std::nullopt;
  return Name{"s3", place->bucket, "", absl::StrCat("/", place->key)};
}

absl::StatusOr<UrlRules::Name> UrlRules::ParsePrefix(const std::string& prefix) {
  const std::string scheme = SchemeOf(prefix);
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("files_allow has ", Shown(prefix), ", ", why));
  };
  if (!IsRemote(scheme)) return refused("which does not begin with a folder, http, https or s3");
  if (prefix.ends_with("://")) return Name{scheme, "", "", "/"};
  if (scheme != "s3" && prefix.find_first_of("?#") != std::string::npos)
    return refused("which has a query; leave it out, since all queries are allowed");
  std::optional<Name> name = ParseName(prefix);
  if (!name.has_value()) return refused("which cannot be parsed, or has \"..\" in its path");
  return *std::move(name);
}

absl::StatusOr<UrlRules> UrlRules::Parse(const std::vector<std::string>& prefixes) {
  UrlRules rules;
  for (const std::string& prefix : prefixes) {
    ASSIGN_OR_RETURN(Name name, ParsePrefix(prefix));
    rules.prefixes_.push_back(std::move(name));
  }
  return rules;
}

UrlRules::Hosts UrlRules::Judge(const std::string& name) const {
  const std::optional<Name> parsed = ParseName(name);
  Hosts hosts = Hosts::kNone;
  if (!parsed.has_value()) return hosts;
  for (const Name& prefix : prefixes_) {
    if (prefix.scheme != parsed->scheme) continue;
    if (prefix.host.empty()) {
      hosts = std::max(hosts, Hosts::kPublic);
    } else if (prefix.host == parsed->host && prefix.port == parsed->port &&
               IsBelow(parsed->path, prefix.path)) {
      hosts = Hosts::kAny;
    }
  }
  return hosts;
}

}  // namespace penstock::remote
