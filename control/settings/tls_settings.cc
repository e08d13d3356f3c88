// SPDX-License-Identifier: Apache-2.0
#include "control/settings/tls_settings.h"

namespace penstock {

std::vector<Setting> TlsSettingsOf(TlsConfig& tls) {
  return {
      {"tls-ca", &tls.ca, "certificates in PEM that the other side's must be signed by"},
      {"tls-certificate", &tls.certificate, "its own certificate with its chain, in PEM"},
      {"tls-key", &tls.key, "the key of that certificate, in PEM"},
  };
}

void AddServerTlsSettings(TlsConfig& tls, std::vector<Setting>& settings) {
  for (const Setting& setting : TlsSettingsOf(tls)) settings.push_back(setting);
  settings.push_back(
      {"tls-mutual", &tls.mutual, "serve nobody without a certificate that --tls-ca has signed"});
}

}  // namespace penstock
