// SPDX-License-Identifier: Apache-2.0
// Credentials, address and region for S3, found where AWS's tools find them: in the environment
// variables AWS_…, then in the files under ~/.aws.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "control/env/remote/http_client.h"
#include "control/settings/settings.h"
#include "penstock/files.h"

namespace penstock::remote {

// Sections of an AWS configuration file: [name], then key = value; # and ; begin comments. Other
// lines are skipped, as AWS's tools do.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;
Profiles ParseProfiles(std::string_view text);

// Any thread.
class S3Account {
 public:
  S3Account(const FilesConfig& config, Environment environment);

  const std::string& region() const { return region_; }
  // Returns https://bucket.s3.region.amazonaws.com, or the configured address, without a trailing
  // slash.
  std::string AddressOf(const std::string& bucket) const;
  // Looks up the credentials each time, because they are renewed in their files. Returns an empty
  // identity, for public buckets, if there are none.
  Authorization Authorize() const;
  // Returns where credentials are searched for, for the error message when there are none.
  static const char* Places();

 private:
  // Returns the value of `key` in the profile, from the credentials file or else the config file.
  std::string FromFiles(const std::string& key) const;
  std::string FromEnvironment(std::initializer_list<const char*> variables) const;

  const Environment environment_;
  const std::string profile_;
  const std::string style_;
  const std::string region_;
  const std::string endpoint_;  // empty: Amazon's
};

}  // namespace penstock::remote
