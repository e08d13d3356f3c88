// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"
#include "include/status_macros.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/status_tables.h"

namespace penstock::tools {
namespace {

struct StatusArguments {
  DispatcherCall call;
  std::string name_space;
  bool all = false;
};

absl::Status PrintStatus(const StatusArguments& given) {
  ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(given.call.address, given.call.tls));
  ASSIGN_OR_RETURN(
      const control::DispatcherStatus status,
      stub->GetStatus({.timeout = given.call.timeout, .stop = {}},
                      {.name_space = given.name_space,
                       .parts = {control::StatusPart::kWorkers, control::StatusPart::kJobs,
                                 control::StatusPart::kDatasets},
                       .rows = given.all ? 0 : kRowsShown}));
  const std::string text =
      absl::StrCat(ReportOverview(status), "\n", ReportWorkers(status), "\n", ReportJobs(status),
                   "\n", ReportFeeds(status), "\n", ReportDatasets(status));
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddStatus(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<StatusArguments>();
  CLI::App* command =
      app.add_subcommand("status", "Show a dispatcher's workers, jobs and datasets.");
  command->footer(
      "  penstock status --dispatcher-address head:5050\n"
      "  penstock status --namespace vision");
  AddOptions(*command, SettingsOf(given->call));
  command->add_option("--namespace", given->name_space,
                      "Namespace of the jobs and datasets to show; the default is all.");
  command->add_flag("--all", given->all, kAllRowsHelp);
  command->callback([given, &chosen] { chosen.run = [given] { return PrintStatus(*given); }; });
}

}  // namespace penstock::tools
