// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/link_versions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace {

constexpr uint32_t kHighest = 0xffff;

}  // namespace

std::string ToString(const LinkVersions& versions) {
  if (versions.lowest == versions.highest) return absl::StrCat("v", versions.lowest);
  return absl::StrCat("v", versions.lowest, "-", versions.highest);
}

absl::StatusOr<LinkVersions> ParseLinkVersions(std::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("'", std::string(text), "' is not a range of versions, such as v1 or v1-3"));
  if (!text.starts_with('v')) return wrong;
  const std::vector<std::string> ends = absl::StrSplit(std::string(text.substr(1)), '-');
  LinkVersions versions;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &versions.lowest) ||
      !absl::SimpleAtoi(ends.back(), &versions.highest) || versions.lowest == 0 ||
      versions.lowest > versions.highest || versions.highest > kHighest) {
    return wrong;
  }
  return versions;
}

uint32_t Pack(const LinkVersions& versions) {
  return versions.lowest | (versions.highest - versions.lowest) << 16;
}

LinkVersions UnpackLinkVersions(uint32_t packed) {
  const uint32_t lowest = packed & kHighest;
  return {lowest, lowest + (packed >> 16)};
}

absl::StatusOr<uint32_t> Agree(const LinkVersions& worker, const LinkVersions& client) {
  const uint32_t version = std::min(worker.highest, client.highest);
  if (version >= worker.lowest && version >= client.lowest) return version;
  return absl::FailedPreconditionError(absl::StrCat(
      "this worker reads ", ToString(worker), " of the transfer protocol, but the client reads ",
      ToString(client), "; run releases that are at most one apart"));
}

absl::Status CheckOffer(std::string_view offered, const LinkVersions& ours) {
  const absl::StatusOr<LinkVersions> theirs = ParseLinkVersions(offered);
  if (theirs.ok() && Agree(*theirs, ours).ok()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("the worker speaks '", std::string(offered),
                                          "', this client '", ToString(ours), "'"));
}

}  // namespace penstock::transfer
