// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"
#include "include/status_macros.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/table.h"

namespace penstock::tools {
namespace {

// Describes the journal's format, and the releases of the processes.
std::string ReportUpgrade(const control::DispatcherStatus& status) {
  std::string text = absl::StrCat("dispatcher ", status.release, ", control versions ",
                                  status.version.min, " to ", status.version.max, "\n");
  if (status.newest_format == 0) {  // a release before formats had numbers
    absl::StrAppend(&text, "journal format 1, the only one of the dispatcher's release\n");
  } else {
    absl::StrAppend(&text, "journal format ", status.format, ", newest ", status.newest_format,
                    "\n");
  }
  if (status.format < status.newest_format) {
    absl::StrAppend(&text, "`penstock upgrade finalise` raises the format to ",
                    status.newest_format, "; until then the release before can be started again\n");
  }
  std::vector<std::vector<std::string>> rows;
  for (const control::PeerRelease& peers : status.peers) {
    rows.push_back({peers.workers ? "workers" : "clients",
                    peers.release.empty() ? "-" : peers.release, absl::StrCat(peers.version),
                    absl::StrCat(peers.count)});
  }
  return absl::StrCat(text, "\n", FormatTable({"PEERS", "RELEASE", "VERSION", "COUNT"}, rows));
}

absl::Status PrintUpgrade(control::DispatcherStub& stub, absl::Duration timeout) {
  ASSIGN_OR_RETURN(const control::DispatcherStatus status,
                   stub.GetStatus({.timeout = timeout, .stop = {}},
                                  {.parts = {control::StatusPart::kWorkers}, .rows = 1}));
  std::fputs(ReportUpgrade(status).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Finalise(control::DispatcherStub& stub, absl::Duration timeout) {
  RETURN_IF_ERROR(stub.FinaliseUpgrade({.timeout = timeout, .stop = {}}));
  return PrintUpgrade(stub, timeout);
}

void AddAction(CLI::App& upgrade, Chosen& chosen, const char* name, const char* help,
               absl::Status (*action)(control::DispatcherStub&, absl::Duration)) {
  auto call = std::make_shared<DispatcherCall>();
  CLI::App* command = upgrade.add_subcommand(name, help);
  AddOptions(*command, SettingsOf(*call));
  command->callback([call, action, &chosen] {
    chosen.run = [call, action]() -> absl::Status {
      ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(call->address, call->tls));
      return action(*stub, call->timeout);
    };
  });
}

}  // namespace

void AddUpgrade(CLI::App& app, Chosen& chosen) {
  CLI::App* upgrade =
      app.add_subcommand("upgrade", "Show the releases of a service, and finalise its upgrade.");
  upgrade->require_subcommand(1);
  upgrade->footer(
      "  penstock upgrade status --dispatcher-address head:5050\n"
      "  penstock upgrade finalise\n"
      "\n"
      "Until an upgrade is finalised, the dispatcher writes its journal so that the release "
      "before\n"
      "can read it. VERSION is the version of the control protocol that the peers and the\n"
      "dispatcher use.");
  AddAction(*upgrade, chosen, "status",
            "Show the journal's format, and the releases of the dispatcher, workers and clients.",
            PrintUpgrade);
  AddAction(*upgrade, chosen, "finalise",
            "Let the dispatcher write what earlier releases cannot read. This cannot be undone.",
            Finalise);
}

}  // namespace penstock::tools
