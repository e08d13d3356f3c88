// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/protocol/host_port.h"
#include "control/settings/namespace_settings.h"
#include "control/settings/server_settings.h"
#include "include/status_macros.h"
#include "penstock/server.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/server_run.h"

namespace penstock::tools {
namespace {

struct DispatcherArguments {
  DispatcherArguments() { config.port = 5050; }  // the port at which clients look by default

  DispatcherConfig config;
  std::string deployment_mode;
  std::string port_file;
};

absl::Status RunDispatcher(const DispatcherArguments& given) {
  ReturnFreedMemory(1 << 20);
  DispatcherConfig config = given.config;
  ASSIGN_OR_RETURN(config.deployment_mode, DeploymentModeFromName(given.deployment_mode));
  ASSIGN_OR_RETURN(std::unique_ptr<DispatchServer> server,
                   DispatchServer::Start(std::move(config)));
  RETURN_IF_ERROR(CatchStopSignals());
  RETURN_IF_ERROR(SayReady(
      absl::StrCat("dispatcher ready at ", control::JoinHostPort(given.config.host, server->port()),
                   MetricsAt(PagesHost(given.config), server->metrics_port())),
      server->port(), given.port_file));
  const auto stop = [&] { server->Stop(); };
  RETURN_IF_ERROR(RunUntilStopped({.join = [&] { server->Join(); }, .stop = stop, .finish = stop}));
  return server->status();
}

}  // namespace

void AddDispatcher(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<DispatcherArguments>();
  CLI::App* command = app.add_subcommand("dispatcher", "Run the dispatcher of a cluster.");
  command->footer(
      "Prints \"dispatcher ready at HOST:PORT\" once it serves; SIGINT and SIGTERM stop it.\n\n"
      "  penstock dispatcher --host 0.0.0.0 --work-dir /var/lib/penstock --fault-tolerant-mode\n\n"
      "With a journal you may kill it and start it again at the same address: workers and\n"
      "clients reconnect by themselves, and nothing is lost or delivered twice.");
  std::vector<Setting> settings = SettingsOf(given->config);
  settings.push_back(
      {"deployment-mode", &given->deployment_mode,
       "Place of the workers: COLOCATED (in trainers' processes), REMOTE or HYBRID."});
  AddServerOptions(*command, std::move(settings), [given](const std::string& path) {
    return SettleNamespaces(given->config, path, ProcessEnvironment());
  });
  command->add_option("--port-file", given->port_file, "File to which the bound port is written.");
  command->callback([given, &chosen] { chosen.run = [given] { return RunDispatcher(*given); }; });
}

}  // namespace penstock::tools
