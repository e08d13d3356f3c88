// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "control/stub/dispatcher_stub.h"
#include "include/status_macros.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/status_tables.h"

namespace penstock::tools {
namespace {

// Moves the cursor home and clears the rest of the screen, so that the text is replaced without
// flicker.
constexpr char kFromTheTop[] = "\033[H\033[J";

struct TopArguments {
  DispatcherCall call;
  absl::Duration interval = absl::Seconds(1);
  bool once = false;
  bool all = false;
};

std::string Report(control::DispatcherStatus status, const control::DispatcherStatus* before,
                   absl::Duration since) {
  std::stable_sort(status.links.begin(), status.links.end(), [](const auto& a, const auto& b) {
    return a.bytes_per_s > b.bytes_per_s;  // busiest first
  });
  return absl::StrCat(ReportOverview(status), "\n", ReportWorkers(status), "\n", ReportJobs(status),
                      "\n", ReportFeeds(status), "\n", ReportWaits(status, before, since), "\n",
                      ReportLinks(status));
}

absl::Status RunTop(const TopArguments& given) {
  ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(given.call.address, given.call.tls));
  const control::CallOptions call{.timeout = given.call.timeout, .stop = {}};
  const control::StatusQuery query{
      .parts = {control::StatusPart::kWorkers, control::StatusPart::kJobs,
                control::StatusPart::kLinks},
      .rows = given.all ? 0 : kRowsShown};
  std::optional<control::DispatcherStatus> before;
  absl::Time looked;
  while (true) {
    ASSIGN_OR_RETURN(control::DispatcherStatus status, stub->GetStatus(call, query));
    const absl::Time now = absl::Now();
    const std::string page =
        absl::StrCat(given.once ? "" : kFromTheTop,
                     Report(status, before.has_value() ? &*before : nullptr, now - looked));
    before = std::move(status);
    looked = now;
    std::fwrite(page.data(), 1, page.size(), stdout);
    std::fflush(stdout);
    if (given.once || std::ferror(stdout) != 0) return absl::OkStatus();
    absl::SleepFor(given.interval);
  }
}

}  // namespace

void AddTop(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<TopArguments>();
  CLI::App* command = app.add_subcommand(
      "top", "Watch workers, jobs and links, and the workers for which steps wait.");
  command->footer(
      "Redraws its tables at every interval, the busiest links first. Ctrl-C ends it. Without "
      "--all,\n"
      "it shows the first 100 workers, jobs and links of the service.\n\n"
      "  penstock top --dispatcher-address head:5050\n"
      "  penstock top --once");
  std::vector<Setting> settings = SettingsOf(given->call);
  settings.push_back({"interval-ms", &given->interval, "Milliseconds between two updates."});
  AddOptions(*command, std::move(settings));
  command->add_flag("--once", given->once, "Print the tables once, without clearing the screen.");
  command->add_flag("--all", given->all, kAllRowsHelp);
  command->callback([given, &chosen] { chosen.run = [given] { return RunTop(*given); }; });
}

}  // namespace penstock::tools
