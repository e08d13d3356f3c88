// SPDX-License-Identifier: Apache-2.0
#include "control/env/files_settings.h"

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// The minimum of range_bytes: to transfer a smaller range costs less than the request for it.
constexpr int64_t kSmallestRange = 4 << 10;
constexpr int64_t kLargestRange = 1 << 30;

absl::Status Bad(const char* setting, absl::string_view value, absl::string_view must) {
  return absl::InvalidArgumentError(absl::StrCat(setting, " is ", value, ", but must be ", must));
}

}  // namespace

std::vector<Setting> SettingsOf(FilesConfig& config) {
  return {
      {"s3-endpoint", &config.s3_endpoint, "http[s]://host[:port] of the S3 service"},
      {"s3-region", &config.s3_region, "that requests are signed for"},
      {"s3-addressing-style", &config.s3_addressing_style, "auto, path or virtual"},
      {"ca-file", &config.ca_file, "certificates trusted instead of the system's"},
      {"connect-timeout-ms", &config.connect_timeout, "to establish a connection"},
      {"stall-timeout-ms", &config.stall_timeout, "without a byte before a retry"},
      {"retry-for-ms", &config.retry_for, "without a byte before the read fails"},
      {"max-connections", &config.max_connections, "of this process"},
      {"range-bytes", &config.range_bytes, "fetched by one request"},
      {"ranges-ahead", &config.ranges_ahead, "of one file, fetched before they are read"},
      {"read-ahead-bytes", &config.read_ahead_bytes, "of all files of this process"},
  };
}

absl::Status Check(const FilesConfig& config) {
  const std::string& endpoint = config.s3_endpoint;
  if (!endpoint.empty() && endpoint.rfind("http://", 0) != 0 && endpoint.rfind("https://", 0) != 0)
    return Bad("s3_endpoint", endpoint, "http://host[:port] or https://host[:port]");
  const std::string& style = config.s3_addressing_style;
  if (style != "auto" && style != "path" && style != "virtual")
    return Bad("s3_addressing_style", style, "auto, path or virtual");
  if (config.connect_timeout <= absl::ZeroDuration()) {
    return Bad("connect_timeout", absl::FormatDuration(config.connect_timeout), "above 0");
  }
  if (config.stall_timeout <= absl::ZeroDuration())
    return Bad("stall_timeout", absl::FormatDuration(config.stall_timeout), "above 0");
  if (config.retry_for < absl::ZeroDuration())
    return Bad("retry_for", absl::FormatDuration(config.retry_for), "0 or more");
  if (config.max_connections < 1)
    return Bad("max_connections", absl::StrCat(config.max_connections), "1 or more");
  if (config.range_bytes < kSmallestRange || config.range_bytes > kLargestRange)
    return Bad("range_bytes", absl::StrCat(config.range_bytes), "from 4 KiB to 1 GiB");
  if (config.ranges_ahead < 1)
    return Bad("ranges_ahead", absl::StrCat(config.ranges_ahead), "1 or more");
  if (config.read_ahead_bytes < 0)
    return Bad("read_ahead_bytes", absl::StrCat(config.read_ahead_bytes), "0 or more");
  return absl::OkStatus();
}

absl::StatusOr<FilesConfig> ReadFilesConfig(const std::string& path,
                                            const Environment& environment) {
  FilesConfig config;
  RETURN_IF_ERROR(Settle("files", SettingsOf(config), {}, path, environment).status());
  RETURN_IF_ERROR(Check(config));
  return config;
}

}  // namespace penstock
