// SPDX-License-Identifier: Apache-2.0
// The rows of TLS, which all programs have.
#pragma once

#include <vector>

#include "control/settings/settings.h"
#include "penstock/tls.h"

namespace penstock {

// Of a client. `tls` outlives them.
std::vector<Setting> TlsSettingsOf(TlsConfig& tls);
// And of a server, to `settings`.
void AddServerTlsSettings(TlsConfig& tls, std::vector<Setting>& settings);

}  // namespace penstock
