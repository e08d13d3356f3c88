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

// The sections of an AWS configuration file. A section is a line [name] followed by lines key =
// value; # and ; begin comments. Other lines are skipped, as in AWS's tools.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;
Profiles ParseProfiles(std::string_view text);

// Any thread.
class S3Account {
 public:
  S3Account(const FilesConfig& config, Environment environment);

  const std::string& region() const { return region_; }
  // Returns the address of the bucket, without a trailing slash:
  // https://bucket.s3.region.amazonaws.com, or an address at the configured endpoint.
  std::string AddressOf(const std::string& bucket) const;
  // Looks up the credentials at each call, because other tools renew them in the files. If there
  // are none, returns an empty identity, which suffices for public buckets.
  Authorization Authorize() const;
  // Returns the list of places where credentials are looked up, for the error message when there
  // are none.
  static const char* Places();

 private:
  // Returns the value of `key` in the profile, from the credentials file or else the config file.
  std::string FromFiles(const std::string& key) const;
  std::string FromEnvironment(std::initializer_list<const char*> variables) const;

  const Environment environment_;
  const std::string profile_;
  const std::string style_;
  const std::string region_;
  const std::string endpoint_;  // empty: Amazon's servers
};

}  // namespace penstock::remote
