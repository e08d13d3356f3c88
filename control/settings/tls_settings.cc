// SPDX-License-Identifier: Apache-2.0
#include "control/settings/tls_settings.h"

#include "absl/strings/str_cat.h"

namespace penstock {

Setting TokenSettingOf(TlsConfig& tls) {
  return {"token-file", &tls.token_file,
          "File of the token by which the dispatcher knows this process.", nullptr,
          /*may_be_empty=*/false};
}

std::vector<Setting> TlsSettingsOf(TlsConfig& tls) {
  return {
      {"tls-ca", &tls.ca,
       "File of CA certificates in PEM; one of them must have signed the peer's certificate.",
       nullptr, /*may_be_empty=*/false},
      {"tls-certificate", &tls.certificate,
       "File of this process's certificate and its chain, in PEM.", nullptr,
       /*may_be_empty=*/false},
      {"tls-key", &tls.key, "File of the private key of that certificate, in PEM.", nullptr,
       /*may_be_empty=*/false},
  };
}

void AddServerTlsSettings(TlsConfig& tls, std::vector<Setting>& settings) {
  for (const Setting& setting : TlsSettingsOf(tls)) settings.push_back(setting);
  settings.push_back({"tls-mutual", &tls.mutual,
                      "Refuse clients without a certificate that --tls-ca has signed."});
}

absl::Status RefuseServerTls(const Environment& environment) {
  const std::string variable = VariableOf("client", "tls-mutual");
  if (environment(variable).value_or("").empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(variable,
                   " is set, but this process is a client: only servers refuse clients without a "
                   "certificate. Unset it here"));
}

}  // namespace penstock
