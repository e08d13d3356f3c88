// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/s3_account.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "control/env/disk.h"

namespace penstock::remote {
namespace {

std::string FirstOf(std::initializer_list<std::string> values) {
  for (const std::string& value : values) {
    if (!value.empty()) return value;
  }
  return "";
}

}  // namespace

Profiles ParseProfiles(std::string_view text) {
  Profiles profiles;
  std::map<std::string, std::string>* profile = nullptr;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      absl::string_view name = line.substr(1, line.find(']') - 1);
      absl::ConsumePrefix(&name, "profile ");
      profile = &profiles[std::string(absl::StripAsciiWhitespace(name))];
      continue;
    }
    const size_t equals = line.find('=');
    if (profile == nullptr || equals == line.npos) continue;
    (*profile)[std::string(absl::StripAsciiWhitespace(line.substr(0, equals)))] =
        std::string(absl::StripAsciiWhitespace(line.substr(equals + 1)));
  }
  return profiles;
}

S3Account::S3Account(const FilesConfig& config, Environment environment)
    : environment_(std::move(environment)),
      profile_(FirstOf({FromEnvironment({"AWS_PROFILE"}), "default"})),
      style_(config.s3_addressing_style),
      region_(FirstOf({config.s3_region, FromEnvironment({"AWS_REGION", "AWS_DEFAULT_REGION"}),
                       FromFiles("region"), "us-east-1"})),
      endpoint_(
          absl::StripSuffix(FirstOf({config.s3_endpoint,
                                     FromEnvironment({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})}),
                            "/")) {}

std::string S3Account::AddressOf(const std::string& bucket) const {
  const bool dotted = bucket.find('.') != std::string::npos;
  const bool path = style_ == "path" || (style_ == "auto" && (!endpoint_.empty() || dotted));
  const std::string host =
      endpoint_.empty() ? absl::StrCat("https://s3.", region_, ".amazonaws.com") : endpoint_;
  if (path) return absl::StrCat(host, "/", bucket);
  const size_t name = host.find("://") + 3;
  return absl::StrCat(host.substr(0, name), bucket, ".", host.substr(name));
}

Authorization S3Account::Authorize() const {
  std::string key = FromEnvironment({"AWS_ACCESS_KEY_ID"});
  std::string secret = FromEnvironment({"AWS_SECRET_ACCESS_KEY"});
  std::string token = FromEnvironment({"AWS_SESSION_TOKEN"});
  if (key.empty() || secret.empty()) {
    key = FromFiles("aws_access_key_id");
    secret = FromFiles("aws_secret_access_key");
    token = FromFiles("aws_session_token");
  }
  if (key.empty() || secret.empty()) return {};
  return {.provider = absl::StrCat("aws:amz:", region_, ":s3"),
          .user = absl::StrCat(key, ":", secret),
          .token = std::move(token)};
}

const char* S3Account::Places() {
  return "there are no credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
         "~/.aws/credentials or ~/.aws/config";
}

std::string S3Account::FromFiles(const std::string& key) const {
  const std::string home = FromEnvironment({"HOME"});
  const std::string credentials = FirstOf(
      {FromEnvironment({"AWS_SHARED_CREDENTIALS_FILE"}), absl::StrCat(home, "/.aws/credentials")});
  const std::string config =
      FirstOf({FromEnvironment({"AWS_CONFIG_FILE"}), absl::StrCat(home, "/.aws/config")});
  for (const std::string& path : {credentials, config}) {
    Profiles profiles = ParseProfiles(LocalDisk().Read(path).value_or(""));
    const std::string& value = profiles[profile_][key];
    if (!value.empty()) return value;
  }
  return "";
}

std::string S3Account::FromEnvironment(std::initializer_list<const char*> variables) const {
  for (const char* variable : variables) {
    if (const auto value = environment_(variable); !value.value_or("").empty()) return *value;
  }
  return "";
}

}  // namespace penstock::remote
