// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"
#include "include/status_macros.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/status_tables.h"

namespace penstock::tools {
namespace {

absl::Status PrintStatus(const DispatcherCall& call) {
  ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(call.address, call.tls));
  ASSIGN_OR_RETURN(const control::DispatcherStatus status,
                   stub->GetStatus({.timeout = call.timeout, .stop = {}}));
  const std::string text =
      absl::StrCat(ReportOverview(status), "\n", ReportWorkers(status), "\n", ReportJobs(status),
                   "\n", ReportFeeds(status), "\n", ReportDatasets(status));
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddStatus(CLI::App& app, Chosen& chosen) {
  auto call = std::make_shared<DispatcherCall>();
  CLI::App* command =
      app.add_subcommand("status", "Show a dispatcher's workers, jobs and datasets.");
  command->footer("  penstock status --dispatcher-address head:5050");
  AddOptions(*command, SettingsOf(*call));
  command->callback([call, &chosen] { chosen.run = [call] { return PrintStatus(*call); }; });
}

}  // namespace penstock::tools
