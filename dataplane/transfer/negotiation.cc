// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "dataplane/transfer/transport.h"
#include "penstock/status.h"

namespace penstock::transfer {
namespace {

// Returns the worker's offer of protocol `name` if this client can use it; otherwise NotFound with
// the reason.
absl::StatusOr<TransportSelection> TryProtocol(std::string_view name,
                                               const std::vector<TransportOffer>& offers) {
  const absl::StatusOr<Transport*> transport = FindTransport(name);
  if (!transport.ok()) {
    return absl::NotFoundError(absl::StrCat("'", std::string(name), "' is not in this build"));
  }
  std::vector<std::string> reasons;
  for (const TransportOffer& offer : offers) {
    if (offer.protocol != name) continue;
    absl::Status reachable = offer.given_up.empty()
                                 ? (*transport)->Check(offer.address, offer.compatibility)
                                 : absl::NotFoundError(offer.given_up);
    if (reachable.ok()) return TransportSelection{*transport, offer, ""};
    reasons.emplace_back(reachable.message());
  }
  if (!reasons.empty()) return absl::NotFoundError(absl::StrJoin(reasons, "; "));
  return absl::NotFoundError("the worker does not offer it");
}

// Lists the protocols of both sides.
std::string BothSides(const std::vector<TransportOffer>& offers) {
  std::vector<std::string> offered;
  for (const TransportOffer& offer : offers) offered.push_back(offer.protocol);
  return absl::StrCat("the worker offers ",
                      offered.empty() ? "nothing" : absl::StrJoin(offered, ", "),
                      "; this process has ", absl::StrJoin(TransportNames(), ", "));
}

// Returns the protocols of this program, the most preferred first.
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

// Returns the order in which "auto" tries protocols: first the protocols in the worker's config, in
// the order given there, and then all other protocols.
std::vector<std::string> InOrder(std::vector<TransportOffer> offers) {
  std::erase_if(offers, [](const TransportOffer& offer) { return offer.preference <= 0; });
  std::stable_sort(
      offers.begin(), offers.end(),
      [](const TransportOffer& a, const TransportOffer& b) { return a.preference < b.preference; });
  std::vector<std::string> names;
  for (TransportOffer& offer : offers) names.push_back(std::move(offer.protocol));
  for (std::string& name : ByRank()) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

bool IsPreferred(const std::string& name, const std::vector<TransportOffer>& offers) {
  return std::any_of(offers.begin(), offers.end(), [&](const TransportOffer& offer) {
    return offer.protocol == name && offer.preference > 0;
  });
}

// Returns the reason for which the first protocol tried was selected.
std::string SelectionReason(const TransportSelection& selection, bool automatic,
                            const TransportPreference& preference) {
  if (!automatic) return preference.source;
  if (selection.offer.preference == 0) return "the best available";
  return selection.offer.preference == 1 ? "the worker's data_transfer_protocol"
                                         : "the worker's fallback";
}

}  // namespace

absl::StatusOr<TransportSelection> Negotiate(const TransportPreference& preference,
                                             const std::vector<TransportOffer>& offers,
                                             std::string_view worker) {
  const bool automatic = preference.protocol.empty() || preference.protocol == "auto";
  std::vector<std::string> names;
  if (automatic) {
    names = InOrder(offers);
  } else {
    names.push_back(preference.protocol);
    names.insert(names.end(), preference.fallback.begin(), preference.fallback.end());
  }
  std::vector<std::string> refused;
  std::string first_refusal;
  for (const std::string& name : names) {
    absl::StatusOr<TransportSelection> selection = TryProtocol(name, offers);
    if (selection.ok()) {
      selection->reason =
          absl::StrCat(name, ": ",
                       refused.empty() ? SelectionReason(*selection, automatic, preference)
                                       : absl::StrJoin(refused, ", "));
      const bool named = !automatic || IsPreferred(names.front(), offers);
      if (named && !refused.empty()) selection->instead_of = names.front();
      return selection;
    }
    if (first_refusal.empty()) first_refusal = std::string(selection.status().message());
    const bool first_named = !automatic && refused.empty();
    refused.push_back(absl::StrCat(name,
                                   first_named ? absl::StrCat(" (", preference.source, ")") : "",
                                   " cannot be used (", selection.status().message(), ")"));
  }
  if (automatic || !preference.fallback.empty()) {
    return absl::NotFoundError(
        absl::StrCat("No transfer protocol is available for worker '", std::string(worker),
                     "': ", absl::StrJoin(refused, ", "), "; ", BothSides(offers)));
  }
  return absl::NotFoundError(absl::StrCat("Protocol '", preference.protocol,
                                          "' is not available for worker '", std::string(worker),
                                          "': ", first_refusal, "; ", BothSides(offers)));
}

}  // namespace penstock::transfer
