// SPDX-License-Identifier: Apache-2.0
// How this process reads files over HTTP(S) and from S3 (docs/files.md). Without ConfigureFiles(),
// the settings come from the environment (PENSTOCK_FILES_…) and from [files] of the settings file
// (docs/settings.md).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

#pragma GCC visibility push(default)
namespace penstock {

struct FilesConfig {
  // --- S3 ----------------------------------------------------------------------
  // The address of the service, such as "http://minio:9000". Empty: AWS_ENDPOINT_URL_S3 or
  // AWS_ENDPOINT_URL, or else Amazon's endpoint of the region.
  std::string s3_endpoint;
  // Empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's region, else us-east-1.
  std::string s3_region;
  // Where a URL has the bucket's name: "path" (host/bucket/key), "virtual" (bucket.host/key), or
  // "auto": path if an endpoint is given or the name has a dot, else virtual.
  std::string s3_addressing_style = "auto";

  // --- Connections ---------------------------------------------------------------
  std::string ca_file;  // PEM; trusted instead of the system's certificates
  absl::Duration connect_timeout = absl::Seconds(10);
  absl::Duration stall_timeout = absl::Seconds(20);  // retries after this long without a byte
  // Temporary errors are retried until no byte has arrived for this long. Then the read fails with
  // Unavailable.
  absl::Duration retry_for = absl::Minutes(5);
  int max_connections = 64;  // for the whole process

  // --- Reading ahead ---------------------------------------------------------------
  int64_t range_bytes = 4 << 20;  // per request
  int ranges_ahead = 4;           // per file, requested or waiting to be read
  // The limit for the whole process. Each file that is read in order may fetch one range beyond
  // this limit.
  int64_t read_ahead_bytes = 256 << 20;
};

// Sets the configuration of this process, in place of the environment and the settings file.
// InvalidArgument, with the name of the field, if a field is invalid. FailedPrecondition once a
// remote file has been named.
absl::Status ConfigureFiles(FilesConfig config);

}  // namespace penstock
#pragma GCC visibility pop
