// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/client_settings.h"

#include "absl/strings/str_cat.h"
#include "control/settings/tls_settings.h"
#include "include/status_macros.h"

namespace penstock::client {

constexpr char kProtocol[] = "data-transfer-protocol";

std::vector<Setting> SettingsOf(ClientSettings& settings) {
  std::vector<Setting> rows = TlsSettingsOf(settings.tls);
  rows.push_back(TokenSettingOf(settings.tls));
  rows.insert(
      rows.begin(),
      {
          {kProtocol, &settings.data_transfer_protocol, "how workers send elements"},
          {"fallback", &settings.fallback, "used in this order if that protocol is not possible"},
          {"ucx-lanes", &settings.ucx_lanes, "\"rdma\", \"any\" or \"tcp\": what ucx may use"},
          {"checksum-values", &settings.tcp.checksum_values,
           "checksums over elements' values too, for elements sent over tcp"},
          {"tcp-connections", &settings.tcp.connections,
           "to each worker over tcp, 1 to 16: a large element is sent over all of them in turn"},
          {"transports", &settings.transports, "shared libraries with further protocols"},
          {"metrics-port", &settings.metrics_port,
           "of this process's pages; 0: any free port, -1: no pages"},
          {"metrics-token", &settings.metrics_token,
           "token that a request for a page must contain"},
      });
  return rows;
}

absl::StatusOr<ClientSettings> ReadClientSettings(const Environment& environment) {
  RETURN_IF_ERROR(RefuseServerTls(environment));
  ClientSettings settings;
  ASSIGN_OR_RETURN(settings.sources, Settle("client", SettingsOf(settings), {}, "", environment));
  if (const int count = settings.tcp.connections;
      count < 1 || count > transfer::kMaxTcpConnections) {
    return absl::InvalidArgumentError(
        absl::StrCat("tcp_connections is ", count, " (", settings.sources["tcp-connections"],
                     "); it must be from 1 to ", transfer::kMaxTcpConnections));
  }
  return settings;
}

transfer::TransportPreference MakeTransportPreference(const DistributeOptions& options,
                                                      const ClientSettings& settings) {
  if (options.target_workers == TargetWorkers::kLocal) {
    return {
        "local", {}, "target_workers LOCAL"};  // a call into the worker, whatever the settings are
  }
  transfer::TransportPreference preference{options.data_transfer_protocol, options.fallback,
                                           "DistributeOptions"};
  if (preference.protocol.empty()) {
    preference.protocol = settings.data_transfer_protocol;
    if (auto source = settings.sources.find(kProtocol); source != settings.sources.end()) {
      preference.source = source->second;
    }
  }
  if (preference.fallback.empty()) preference.fallback = settings.fallback;
  return preference;
}

}  // namespace penstock::client
