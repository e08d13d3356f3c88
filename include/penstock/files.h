// SPDX-License-Identifier: Apache-2.0
// How this process reads files over HTTP(S) and from S3 (docs/files.md). What is
// not said here comes from the environment (PENSTOCK_FILES_…) and [files] of the
// settings file (docs/settings.md).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock {

struct FilesConfig {
  // --- S3 ----------------------------------------------------------------------
  // "http://minio:9000". Empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else
  // Amazon's of the region.
  std::string s3_endpoint;
  // Empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's, else us-east-1.
  std::string s3_region;
  // Where the bucket's name stands: "path" (host/bucket/key), "virtual"
  // (bucket.host/key), or "auto": path where an endpoint is given or the name
  // has a dot, else virtual.
  std::string s3_addressing_style = "auto";

  // --- Connections ---------------------------------------------------------------
  std::string ca_file;  // PEM, whose signatures are trusted instead of the system's
  absl::Duration connect_timeout = absl::Seconds(10);
  absl::Duration stall_timeout = absl::Seconds(20);  // without a byte; then it is tried again
  // What may pass is tried again until no byte has come for so long; then the
  // read fails with Unavailable.
  absl::Duration retry_for = absl::Minutes(5);
  int max_connections = 64;  // of the process

  // --- Reading ahead ---------------------------------------------------------------
  int64_t range_bytes = 4 << 20;  // asked for by one request
  int ranges_ahead = 4;           // of one file, on their way or waiting to be read
  // Of the process. Every file read in order has one range nevertheless.
  int64_t read_ahead_bytes = 256 << 20;
};

// Says it for this process, in place of environment and settings file.
// InvalidArgument names the field that makes no sense; FailedPrecondition once a
// remote file has been opened.
absl::Status ConfigureFiles(FilesConfig config);

}  // namespace penstock
