// SPDX-License-Identifier: Apache-2.0
// Who asks S3, where, and for which region, as the tools of AWS are told: by
// AWS_… in the environment, then by the files under ~/.aws.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "control/env/remote/http_client.h"
#include "control/settings/settings.h"
#include "penstock/files.h"

namespace penstock::remote {

// Sections of an AWS configuration file: [name], then key = value; # and ; begin
// comments. What is neither is passed over, as AWS's tools do.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;
Profiles ParseProfiles(std::string_view text);

// Any thread.
class S3Account {
 public:
  S3Account(const FilesConfig& config, Environment environment);

  const std::string& region() const { return region_; }
  // https://bucket.s3.region.amazonaws.com, or as the settings say; no / behind.
  std::string AddressOf(const std::string& bucket) const;
  // Looked up anew each time, since credentials are renewed in their files.
  // Without any, nobody: for buckets that are public.
  Authorization Authorize() const;
  // Where credentials were looked for; for those who lack them.
  static const char* Places();

 private:
  // The value of `key` in the profile, of the credentials file or else of the
  // config file.
  std::string FromFiles(const std::string& key) const;
  std::string FromEnvironment(std::initializer_list<const char*> variables) const;

  const Environment environment_;
  const std::string profile_;
  const std::string style_;
  const std::string region_;
  const std::string endpoint_;  // empty: Amazon's
};

}  // namespace penstock::remote
