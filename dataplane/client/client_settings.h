// SPDX-License-Identifier: Apache-2.0
// What a trainer's environment and settings file say where its DistributeOptions
// do not: [client] of control/settings.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/settings/settings.h"
#include "dataplane/transfer/transport.h"
#include "penstock/distribute.h"
#include "penstock/tls.h"

namespace penstock::client {

struct ClientSettings {
  std::string data_transfer_protocol;
  std::vector<std::string> fallback;
  std::string ucx_lanes;  // of the process (transfer/ucx/settings.h)
  transfer::TcpOptions tcp;
  std::vector<std::string> transports;  // libraries to load (transfer/library.h)
  int metrics_port = -1;                // of this process's pages; 0: any free one, -1: none
  std::string metrics_token;
  TlsConfig tls;    // towards servers at "grpcs://"
  Sources sources;  // of what is set
};

std::vector<Setting> SettingsOf(ClientSettings& settings);

// InvalidArgument names what in the environment or the file makes no sense,
// NotFound a file that is not there.
absl::StatusOr<ClientSettings> ReadClientSettings(const Environment& environment);

// The protocol that links take and who says so.
transfer::TransportPreference MakeTransportPreference(const DistributeOptions& options,
                                                      const ClientSettings& settings);

}  // namespace penstock::client
