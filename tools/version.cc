// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_join.h"
#include "control/protocol/message_parts.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/transfer/transport.h"
#include "tools/commands.h"

namespace penstock::tools {

void AddVersion(CLI::App& app, Chosen& chosen) {
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION, "Print the release.");
  CLI::App* command =
      app.add_subcommand("version", "Show the release, its protocols and its devices.");
  command->callback([&chosen] {
    chosen.run = [] {
      const control::VersionRange control;
      std::printf("penstock %s\ncontrol protocol %u to %u\ntransfer %s\ndevices %s\n",
                  PENSTOCK_VERSION, control.min, control.max,
                  absl::StrJoin(transfer::TransportNames(), ", ").c_str(),
                  DescribeDevices(LinkedDeviceBackend()).c_str());
      return absl::OkStatus();
    };
  });
}

}  // namespace penstock::tools
