// SPDX-License-Identifier: Apache-2.0
// The settings of TLS, which all programs have.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "control/settings/settings.h"
#include "penstock/tls.h"

namespace penstock {

// Returns the setting of the token by which a dispatcher knows a worker or client. `tls` must
// outlive this setting and the settings that the other functions return.
Setting TokenSettingOf(TlsConfig& tls);
// Returns the TLS settings of a client, without the token.
std::vector<Setting> TlsSettingsOf(TlsConfig& tls);
// Adds to `settings` the TLS settings that only servers have.
void AddServerTlsSettings(TlsConfig& tls, std::vector<Setting>& settings);
// For clients: InvalidArgument if the environment contains a TLS setting that only servers have.
absl::Status RefuseServerTls(const Environment& environment);

}  // namespace penstock
