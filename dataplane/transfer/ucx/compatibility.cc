// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/compatibility.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/ucx/tested_releases.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

// Returns "1.13" for "1.13.1".
std::string LineOf(std::string_view release) {
  const size_t minor = release.find('.');
  const size_t patch = minor == release.npos ? release.npos : release.find('.', minor + 1);
  return std::string(release.substr(0, patch));
}

bool Tested(const std::string& a, const std::string& b, Lanes lanes) {
  return std::any_of(kTestedReleases.begin(), kTestedReleases.end(), [&](const TestedPair& pair) {
    return pair.lanes == lanes &&
           ((pair.one == a && pair.other == b) || (pair.one == b && pair.other == a));
  });
}

}  // namespace

std::string CompatibilityOf(std::string_view release, Lanes lanes, uint64_t incarnation) {
  return absl::StrCat(ToString(kLinkVersions), " ucx=", std::string(release),
                      " lanes=", std::string(NameOf(lanes)), " incarnation=", incarnation);
}

absl::Status CheckCompatibility(std::string_view worker, std::string_view release,
                                const Settings& settings) {
  std::map<std::string, std::string> says;
  const std::vector<std::string> words = absl::StrSplit(std::string(worker), ' ');
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    says.insert(pair);
  }
  RETURN_IF_ERROR(CheckOffer(words.front(), kLinkVersions));
  const std::string lanes(NameOf(settings.lanes));
  if (says["lanes"] != lanes) {
    return absl::NotFoundError(absl::StrCat("the worker's ucx_lanes is '", says["lanes"],
                                            "', but this client's is '", lanes, "'"));
  }
  const std::string theirs = LineOf(says["ucx"]);
  const std::string ours = LineOf(release);
  if (settings.any_release || theirs == ours || Tested(theirs, ours, settings.lanes)) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("the worker has UCX ", says["ucx"], ", this client ", std::string(release),
                   ", and these releases cannot be mixed: install the same release on both "
                   "(PENSTOCK_UCX_ANY_RELEASE=1 tries anyway)"));
}

}  // namespace penstock::transfer::ucx
