// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/commands.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/machine.h"
#include "tools/doctor/report.h"
#include "tools/options.h"

namespace penstock::tools {
namespace {

struct DoctorArguments {
  std::string protocol;  // empty: all
  bool json = false;
};

int RunDoctor(const DoctorArguments& given) {
  const std::unique_ptr<doctor::Probe> machine = doctor::MakeMachineProbe();
  std::vector<doctor::Finding> findings = doctor::Examine(*machine);
  if (!given.protocol.empty()) {
    findings = doctor::ForProtocol(std::move(findings), given.protocol);
  }
  const std::string report =
      given.json
          ? doctor::ReportJson(
                findings, machine->RdmaDevices().value_or(std::vector<transfer::verbs::Device>()))
          : doctor::ReportText(findings);
  std::fputs(report.c_str(), stdout);
  return doctor::ExitCode(findings);
}

}  // namespace

void AddDoctor(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<DoctorArguments>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Find what stops or slows protocols on this machine, and what to do about it.");
  command->footer(
      "  penstock doctor\n"
      "  penstock doctor --protocol ucx --json\n\n"
      "Exit code 0: nothing to fix; 1: warnings; 2: errors. Run it as the user that trains.");
  const std::string protocols =
      absl::StrCat("Protocol whose needs are examined; the default is all: ",
                   absl::StrJoin(doctor::Protocols(), ", "), ".");
  AddOptions(*command, {{"protocol", &given->protocol, protocols.c_str()},
                        {"json", &given->json, "Print one JSON object instead of text."}});
  command->get_option("--protocol")->check(CLI::IsMember(doctor::Protocols()));
  command->callback([given, &chosen] {
    chosen.run = [given, &chosen] {
      chosen.exit_code = RunDoctor(*given);
      return absl::OkStatus();
    };
  });
}

}  // namespace penstock::tools
