// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/distribute_options.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "control/rpc/target.h"
#include "penstock/status.h"

namespace penstock {
namespace client {
namespace {

// Names go into messages and logs.
absl::Status CheckName(std::string_view option, const std::string& name) {
  for (char c : name) {
    if (absl::ascii_iscntrl(c)) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(option), " must have no control characters"));
    }
  }
  if (name.size() <= 1024) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(option), " has ", name.size(), " bytes; 1024 are the most"));
}

absl::Status CheckMode(ShardingPolicy mode) {
  switch (mode) {
    case ShardingPolicy::kOff:
    case ShardingPolicy::kDynamic:
      return absl::OkStatus();
    case ShardingPolicy::kFile:
    case ShardingPolicy::kData:
    case ShardingPolicy::kFileOrData:
    case ShardingPolicy::kHint:
      return absl::UnimplementedError(
          "processing_mode FILE, DATA, FILE_OR_DATA and HINT are not there yet; OFF and DYNAMIC "
          "are");
  }
  return absl::InvalidArgumentError(absl::StrCat("processing_mode ", static_cast<int>(mode),
                                                 " is none; there are OFF and DYNAMIC"));
}

}  // namespace

absl::Status Check(const DistributeOptions& options) {
  RETURN_IF_ERROR(CheckMode(options.processing_mode));
  RETURN_IF_ERROR(control::ParseTarget(options.service).status());
  RETURN_IF_ERROR(CheckName("job_name", options.job_name));
  RETURN_IF_ERROR(CheckName("run_id", options.run_id));
  if (!options.run_id.empty() && options.job_name.empty()) {
    return absl::InvalidArgumentError(
        "run_id tells apart runs of one job_name; without a job_name it means nothing");
  }
  if (options.max_outstanding_requests < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_outstanding_requests must be above 0, or 0 for AUTO, not ",
                     options.max_outstanding_requests));
  }
  if (options.max_outstanding_bytes <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_outstanding_bytes must be above 0, not ", options.max_outstanding_bytes));
  }
  if (options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeout must be above 0, not ", absl::FormatDuration(options.timeout)));
  }
  return absl::OkStatus();
}

Attrs ToAttrs(const DistributeOptions& options) {
  Attrs attrs = {
      {"processing_mode", static_cast<int64_t>(options.processing_mode)},
      {"service", options.service},
      {"job_name", options.job_name},
      {"run_id", options.run_id},
      {"max_outstanding_requests", options.max_outstanding_requests},
      {"max_outstanding_bytes", options.max_outstanding_bytes},
      {"data_transfer_protocol", options.data_transfer_protocol},
      {"fallback", options.fallback},
      {"order", static_cast<int64_t>(options.order)},
      {"timeout_ns", absl::ToInt64Nanoseconds(options.timeout)},
  };
  if (options.keep.has_value()) attrs["keep"] = static_cast<int64_t>(*options.keep);
  if (options.seed.has_value()) attrs["job_seed"] = static_cast<int64_t>(*options.seed);
  return attrs;
}

DistributeOptions FromAttrs(const Attrs& attrs) {
  DistributeOptions options;
  options.processing_mode = static_cast<ShardingPolicy>(Get<int64_t>(attrs, "processing_mode"));
  options.service = Get<std::string>(attrs, "service");
  options.job_name = Get<std::string>(attrs, "job_name");
  options.run_id = Get<std::string>(attrs, "run_id");
  options.max_outstanding_requests = Get<int64_t>(attrs, "max_outstanding_requests");
  options.max_outstanding_bytes = Get<int64_t>(attrs, "max_outstanding_bytes");
  options.data_transfer_protocol = Get<std::string>(attrs, "data_transfer_protocol");
  options.fallback = Get<std::vector<std::string>>(attrs, "fallback");
  options.order = static_cast<MergeOrder>(Get<int64_t>(attrs, "order"));
  options.timeout = absl::Nanoseconds(Get<int64_t>(attrs, "timeout_ns"));
  if (attrs.contains("keep")) options.keep = static_cast<Keep>(Get<int64_t>(attrs, "keep"));
  if (attrs.contains("job_seed")) {
    options.seed = static_cast<uint64_t>(Get<int64_t>(attrs, "job_seed"));
  }
  return options;
}

std::vector<AttrRule> DistributeRules() {
  return {
      {"processing_mode", AttrType::kInt},
      {"service", AttrType::kString, true, false},
      {"job_name", AttrType::kString},
      {"run_id", AttrType::kString},
      {"max_outstanding_requests", AttrType::kInt, true, false},
      {"max_outstanding_bytes", AttrType::kInt, true, false},
      {"data_transfer_protocol", AttrType::kString, true, false},
      {"fallback", AttrType::kStrings, true, false},
      {"order", AttrType::kInt, true, false},
      {"timeout_ns", AttrType::kInt, true, false},
      {"keep", AttrType::kInt, false},
      {"job_seed", AttrType::kInt, false},
  };
}

}  // namespace client

absl::StatusOr<ShardingPolicy> ProcessingModeFromName(std::string_view name) {
  if (name == "parallel_epochs") return ShardingPolicy::kOff;
  if (name == "distributed_epoch") return ShardingPolicy::kDynamic;
  return absl::InvalidArgumentError(
      absl::StrCat("processing mode '", std::string(name),
                   "' is none of \"parallel_epochs\", \"distributed_epoch\""));
}

}  // namespace penstock
