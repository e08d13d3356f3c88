// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"
#include "include/status_macros.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/status_tables.h"

namespace penstock::tools {
namespace {

struct JobsArguments {
  DispatcherCall call;
  std::string job;  // name, with its namespace unless that is "default", or id
  std::string name_space;
  bool all = false;
};

absl::Status ListJobs(control::DispatcherStub& stub, const JobsArguments& given) {
  ASSIGN_OR_RETURN(const control::DispatcherStatus status,
                   stub.GetStatus({.timeout = given.call.timeout, .stop = {}},
                                  {.name_space = given.name_space,
                                   .parts = {control::StatusPart::kJobs},
                                   .rows = given.all ? 0 : kRowsShown}));
  std::fputs(ReportJobs(status).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Show(control::DispatcherStub& stub, const JobsArguments& given) {
  ASSIGN_OR_RETURN(const control::DispatcherStatus status,
                   stub.GetStatus({.timeout = given.call.timeout, .stop = {}},
                                  {.parts = {control::StatusPart::kPartitions}, .job = given.job}));
  for (const control::JobStatus& job : status.jobs) {
    if (job.name != given.job && absl::StrCat(job.job.value()) != given.job) continue;
    std::fputs(ReportPartitions(job).c_str(), stdout);
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("there is no job '", given.job, "'; `penstock jobs list` shows them"));
}

absl::Status Cancel(control::DispatcherStub& stub, const JobsArguments& given) {
  return stub.CancelJob(given.job, {.timeout = given.call.timeout, .stop = {}});
}

absl::Status Remove(control::DispatcherStub& stub, const JobsArguments& given) {
  return stub.RemoveJob(given.job, {.timeout = given.call.timeout, .stop = {}});
}

using JobAction = absl::Status (*)(control::DispatcherStub&, const JobsArguments&);

CLI::App* AddJobAction(CLI::App& jobs, Chosen& chosen, const char* name, const char* help,
                       JobAction action, bool names_a_job) {
  auto given = std::make_shared<JobsArguments>();
  CLI::App* command = jobs.add_subcommand(name, help);
  AddOptions(*command, SettingsOf(given->call));
  if (names_a_job) {
    command->add_option("job", given->job, "Number of the job, its name, or namespace/name.")
        ->required();
  } else {
    command->add_option("--namespace", given->name_space,
                        "Namespace of the jobs to list; the default is all.");
    command->add_flag("--all", given->all, kAllRowsHelp);
  }
  command->callback([given, &chosen, action] {
    chosen.run = [given, action]() -> absl::Status {
      ASSIGN_OR_RETURN(auto stub,
                       control::DispatcherStub::Make(given->call.address, given->call.tls));
      return action(*stub, *given);
    };
  });
  return command;
}

}  // namespace

void AddJobs(CLI::App& app, Chosen& chosen) {
  CLI::App* jobs = app.add_subcommand("jobs", "List, show, cancel and remove jobs.");
  jobs->require_subcommand(1);
  jobs->footer(
      "  penstock jobs list\n"
      "  penstock jobs list --namespace vision\n"
      "  penstock jobs show resnet\n"
      "  penstock jobs cancel resnet && penstock jobs remove resnet\n"
      "\n"
      "Columns of list, for all passes of a job together:\n"
      "  PRIORITY, WEIGHT  how the job shares workers with others (docs/fair_shares.md)\n"
      "  RECEIVED   elements that the job's readers have, as of their last report: those that\n"
      "             Next() has returned, and others, which a reader gives back if other readers\n"
      "             wait for them\n"
      "  COMMITTED  elements of RECEIVED that are committed in a trainer's history and never come\n"
      "             again\n"
      "  OWED       elements that are not COMMITTED yet, of a pass that was read to its end; if "
      "all\n"
      "             readers left now, other readers would get them\n"
      "  SLOWED BY  limits of its quota that the job has reached\n"
      "  WAITS FOR  worker, reader or consumer that the latest pass waits for");
  AddJobAction(*jobs, chosen, "list", "List jobs, one a line.", ListJobs, false);
  AddJobAction(*jobs, chosen, "show", "Show the partitions of one job.", Show, true);
  AddJobAction(*jobs, chosen, "cancel", "End a job. Its readers get Cancelled.", Cancel, true);
  AddJobAction(*jobs, chosen, "remove", "Forget a finished or cancelled job and its name.", Remove,
               true);
}

}  // namespace penstock::tools
