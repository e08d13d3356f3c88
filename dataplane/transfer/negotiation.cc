// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "dataplane/transfer/transport.h"
#include "penstock/status.h"

namespace penstock::transfer {
namespace {

// The offer this client can take up by that protocol, or why not.
absl::StatusOr<Choice> TryProtocol(std::string_view name, const std::vector<Offer>& offers) {
  PENSTOCK_ASSIGN_OR_RETURN(Transport * transport, FindTransport(name));
  std::vector<std::string> reasons;
  for (const Offer& offer : offers) {
    if (offer.protocol != name) continue;
    absl::Status reachable = transport->Check(offer.address, offer.compatibility);
    if (reachable.ok()) return Choice{transport, offer, ""};
    reasons.emplace_back(reachable.message());
  }
  if (!reasons.empty()) return absl::NotFoundError(absl::StrJoin(reasons, "; "));
  std::vector<std::string> offered;
  for (const Offer& offer : offers) offered.push_back(offer.protocol);
  return absl::NotFoundError(
      offered.empty() ? "the worker offers nothing"
                      : absl::StrCat("the worker offers ", absl::StrJoin(offered, ", ")));
}

// The protocols of this program, the most preferred first.
std::vector<std::string> ByRank() {
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& name : TransportNames()) {
    if (absl::StatusOr<Transport*> transport = FindTransport(name); transport.ok()) {
      ranked.emplace_back((*transport)->rank(), name);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (auto& [rank, name] : ranked) names.push_back(std::move(name));
  return names;
}

}  // namespace

absl::StatusOr<Choice> Negotiate(std::string_view wanted, const std::vector<std::string>& fallback,
                                 const std::vector<Offer>& offers, std::string_view worker) {
  const bool automatic = wanted.empty() || wanted == "auto";
  std::vector<std::string> names;
  if (automatic) {
    names = ByRank();
  } else {
    PENSTOCK_RETURN_IF_ERROR(FindTransport(wanted).status());
    names.emplace_back(wanted);
    names.insert(names.end(), fallback.begin(), fallback.end());
  }
  std::vector<std::string> refused;
  std::string first_refusal;
  for (const std::string& name : names) {
    absl::StatusOr<Choice> choice = TryProtocol(name, offers);
    if (choice.ok()) {
      choice->reason = absl::StrCat(name, ": ",
                                    refused.empty() ? automatic ? "the best of all" : "as asked for"
                                                    : absl::StrJoin(refused, ", "));
      return choice;
    }
    if (first_refusal.empty()) first_refusal = std::string(choice.status().message());
    refused.push_back(absl::StrCat(name, " is not possible (", choice.status().message(), ")"));
  }
  if (automatic || !fallback.empty()) {
    return absl::NotFoundError(absl::StrCat("No transfer protocol is available for worker '",
                                            std::string(worker),
                                            "': ", absl::StrJoin(refused, ", ")));
  }
  return absl::NotFoundError(absl::StrCat("Protocol '", std::string(wanted),
                                          "' is not available for worker '", std::string(worker),
                                          "': ", first_refusal));
}

}  // namespace penstock::transfer
