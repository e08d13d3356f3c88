// SPDX-License-Identifier: Apache-2.0
#include "penstock/plugin.h"

#include "control/env/shared_library.h"

namespace penstock {

absl::Status LoadPlugin(const std::string& path) {
  return LoadLibrary(path, {.what = "plug-in",
                            .stamp = "penstock_plugin_stamp",
                            .enter = "penstock_register_plugin",
                            .macro = "PENSTOCK_EXPORT_PLUGIN",
                            .ours = PluginStamp()});
}

}  // namespace penstock
