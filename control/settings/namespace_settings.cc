// SPDX-License-Identifier: Apache-2.0
#include "control/settings/namespace_settings.h"

#include <utility>
#include <vector>

namespace penstock {

absl::Status SettleNamespaces(DispatcherConfig& config, std::string path,
                              const Environment& environment) {
  const auto settings_of = [&](const std::string& name) -> std::vector<Setting> {
    NamespaceLimits& limits = config.namespaces[name];
    limits = config.namespace_limits;
    return {{"max-jobs", &limits.jobs, ""},
            {"max-dataset-bytes", &limits.dataset_bytes, ""},
            {"max-partitions", &limits.partitions, ""},
            {"max-clients", &limits.clients, ""},
            {"max-worker-percent", &limits.worker_percent, ""}};
  };
  return SettleTables("namespaces", settings_of, std::move(path), environment);
}

}  // namespace penstock
