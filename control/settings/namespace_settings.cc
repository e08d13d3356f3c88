// SPDX-License-Identifier: Apache-2.0
#include "control/settings/namespace_settings.h"

#include <utility>

#include "control/settings/server_settings.h"

namespace penstock {

absl::Status SettleNamespaces(DispatcherConfig& config, std::string path,
                              const Environment& environment) {
  const auto settings_of = [&](const std::string& name) {
    NamespaceLimits& limits = config.namespaces[name];
    limits = config.namespace_limits;
    return SettingsOf(limits);
  };
  return SettleTables("namespaces", settings_of, std::move(path), environment);
}

}  // namespace penstock
