// SPDX-License-Identifier: Apache-2.0
#include "control/settings/tls_settings.h"

namespace penstock {

Setting TokenSettingOf(TlsConfig& tls) {
  return {"token-file", &tls.token_file,
          "File of the token by which the dispatcher knows this process."};
}

std::vector<Setting> TlsSettingsOf(TlsConfig& tls) {
  return {
      {"tls-ca", &tls.ca,
       "File of CA certificates in PEM; one of them must have signed the peer's certificate."},
      {"tls-certificate", &tls.certificate,
       "File of this process's certificate and its chain, in PEM."},
      {"tls-key", &tls.key, "File of the private key of that certificate, in PEM."},
  };
}

void AddServerTlsSettings(TlsConfig& tls, std::vector<Setting>& settings) {
  for (const Setting& setting : TlsSettingsOf(tls)) settings.push_back(setting);
  settings.push_back({"tls-mutual", &tls.mutual,
                      "Refuse clients without a certificate that --tls-ca has signed."});
}

}  // namespace penstock
