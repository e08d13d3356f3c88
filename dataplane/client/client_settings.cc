// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/client_settings.h"

#include <utility>

#include "penstock/status.h"

namespace penstock::client {

constexpr char kProtocol[] = "data-transfer-protocol";

std::vector<Setting> SettingsOf(ClientSettings& settings) {
  return {
      {kProtocol, &settings.data_transfer_protocol, "how elements come from the workers"},
      {"fallback", &settings.fallback, "taken in this order where that one is not possible"},
  };
}

absl::StatusOr<transfer::Wish> WishOf(const DistributeOptions& options,
                                      const Environment& environment) {
  ClientSettings settings;
  ASSIGN_OR_RETURN(const Sources sources,
                   Settle("client", SettingsOf(settings), {}, "", environment));
  transfer::Wish wish{options.data_transfer_protocol, options.fallback, "DistributeOptions"};
  if (wish.protocol.empty()) {
    wish.protocol = std::move(settings.data_transfer_protocol);
    if (auto source = sources.find(kProtocol); source != sources.end()) {
      wish.source = source->second;
    }
  }
  if (wish.fallback.empty()) wish.fallback = std::move(settings.fallback);
  return wish;
}

}  // namespace penstock::client
