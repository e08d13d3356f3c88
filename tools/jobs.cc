// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"
#include "penstock/status.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/reports.h"

namespace penstock::tools {
namespace {

struct JobsArguments {
  DispatcherCall call;
  std::string job;  // name, with its namespace unless that is "default", or id
  std::string name_space;
};

absl::Status ListJobs(control::DispatcherStub& stub, const JobsArguments& given) {
  PENSTOCK_ASSIGN_OR_RETURN(const control::DispatcherStatus status,
                            stub.GetStatus({.timeout = given.call.timeout, .stop = {}}));
  std::fputs(ReportJobs(status, given.name_space).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Show(control::DispatcherStub& stub, const JobsArguments& given) {
  PENSTOCK_ASSIGN_OR_RETURN(const control::DispatcherStatus status,
                            stub.GetStatus({.timeout = given.call.timeout, .stop = {}}));
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
    command->add_option("job", given->job, "its number, its name, or namespace/name")->required();
  } else {
    command->add_option("--namespace", given->name_space, "only jobs of that one");
  }
  command->callback([given, &chosen, action] {
    chosen.run = [given, action]() -> absl::Status {
      PENSTOCK_ASSIGN_OR_RETURN(
          auto stub, control::DispatcherStub::Make(given->call.address, given->call.tls));
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
      "Columns of list, of all passes of a job together:\n"
      "  TAKEN      elements that its readers have, as they last said: that Next() has returned,\n"
      "             or that were received for it and are given back if others wait for them\n"
      "  KEPT       those of them that are in a trainer's history for good, and never come again\n"
      "  OWED       of a pass that is read to its end: what is not KEPT yet, and would be given "
      "to\n"
      "             others if all readers went now\n"
      "  SLOWED BY  the bounds of its quota that it has reached\n"
      "  WAITS FOR  who is missing for the latest pass to go on: a worker, a reader, a consumer");
  AddJobAction(*jobs, chosen, "list", "All jobs, one a line.", ListJobs, false);
  AddJobAction(*jobs, chosen, "show", "The partitions of one job.", Show, true);
  AddJobAction(*jobs, chosen, "cancel", "End a job; its readers get Cancelled.", Cancel, true);
  AddJobAction(*jobs, chosen, "remove", "Forget a finished or cancelled job and its name.", Remove,
               true);
}

}  // namespace penstock::tools
