// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "control/stub/dispatcher_stub.h"
#include "include/status_macros.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/status_tables.h"

namespace penstock::tools {
namespace {

struct LinksArguments {
  DispatcherCall call;
  bool json = false;
  bool all = false;
};

absl::Status PrintLinks(const LinksArguments& given) {
  ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(given.call.address, given.call.tls));
  ASSIGN_OR_RETURN(const control::DispatcherStatus status,
                   stub->GetStatus({.timeout = given.call.timeout, .stop = {}},
                                   {.parts = {control::StatusPart::kLinks},
                                    .rows = given.all || given.json ? 0 : kRowsShown}));
  std::fputs((given.json ? LinksAsJson(status) : ReportLinks(status)).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddLinks(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<LinksArguments>();
  CLI::App* command =
      app.add_subcommand("links", "Show each client's links: protocol, reason for it, and speed.");
  command->footer(
      "One line per client and worker, as of the client's last heartbeat. Rates are since the\n"
      "previous heartbeat.\n\n"
      "  READS     workers of the job that the client reads: all, or some of them because there "
      "are\n"
      "            more than max_links of the dispatcher\n"
      "  CREDITS   elements that the worker may send without asking again\n"
      "  IN PLACE  share of the elements of 64 KiB and more over shm that were made in the\n"
      "            trainer's memory. The remainder was copied there because no slot was free\n"
      "            (no_slot), the element was made for another trainer (for_another), or a node\n"
      "            such as shuffle or cache holds elements (elsewhere).\n\n"
      "  penstock links --dispatcher-address head:5050\n"
      "  penstock links --json | jq '.[] | select(.protocol != \"ucx\")'");
  AddOptions(*command, SettingsOf(given->call));
  command->add_flag("--json", given->json,
                    "Print one JSON array, of all links, instead of a table.");
  command->add_flag("--all", given->all, kAllRowsHelp);
  command->callback([given, &chosen] { chosen.run = [given] { return PrintLinks(*given); }; });
}

}  // namespace penstock::tools
