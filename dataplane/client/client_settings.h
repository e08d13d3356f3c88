// SPDX-License-Identifier: Apache-2.0
// The settings from a trainer's environment and settings file ([client] in control/settings). A
// setting applies if the trainer's DistributeOptions leave it out.
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
  std::string ucx_lanes;  // for the whole process (transfer/ucx/settings.h)
  transfer::TcpOptions tcp;
  std::vector<std::string> transports;  // libraries to load (transfer/library.h)
  int metrics_port = -1;                // for this process's pages; 0: any free port, -1: no pages
  std::string metrics_token;
  TlsConfig tls;    // for servers at "grpcs://"
  Sources sources;  // where each set value comes from
};

std::vector<Setting> SettingsOf(ClientSettings& settings);

// Returns InvalidArgument naming an invalid value in the environment or the file, or NotFound
// naming a missing file.
absl::StatusOr<ClientSettings> ReadClientSettings(const Environment& environment);

// Returns the protocol for links, its fallbacks, and the place where the protocol was set.
transfer::TransportPreference MakeTransportPreference(const DistributeOptions& options,
                                                      const ClientSettings& settings);

}  // namespace penstock::client
