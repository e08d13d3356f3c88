// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/settings/server_settings.h"
#include "include/status_macros.h"
#include "penstock/server.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/server_run.h"

namespace penstock::tools {
namespace {

struct WorkerArguments {
  WorkerConfig config;
  absl::Duration drain_timeout = absl::Seconds(30);
  std::string port_file;
};

absl::Status RunWorker(const WorkerArguments& given) {
  ReturnFreedMemory(4 << 20);
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerServer> server, WorkerServer::Start(given.config));
  RETURN_IF_ERROR(CatchStopSignals());
  RETURN_IF_ERROR(SayReady(
      absl::StrCat("worker ready at ", server->address(), " for ", given.config.dispatcher_address,
                   MetricsAt(PagesHost(given.config), server->metrics_port())),
      server->port(), given.port_file));
  absl::Status drained;
  RETURN_IF_ERROR(
      RunUntilStopped({.join = [&] { server->Join(); },
                       .stop = [&] { server->Stop(); },
                       .finish = [&] { drained = server->Drain(given.drain_timeout); }}));
  server->Stop();
  if (!server->status().ok()) return server->status();
  // Cancelled: the operator sent a second signal while the worker drained, which is not a failure.
  return absl::IsCancelled(drained) ? absl::OkStatus() : drained;
}

}  // namespace

void AddWorker(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<WorkerArguments>();
  CLI::App* command = app.add_subcommand("worker", "Run a worker: it prepares elements.");
  command->footer(
      "Prints \"worker ready at HOST:PORT for DISPATCHER\" once the dispatcher has welcomed it.\n"
      "SIGTERM first hands its partitions to other workers; a second signal stops it at once.\n"
      "SIGINT stops it at once.\n\n"
      "  penstock worker --dispatcher-address head:5050 --host 0.0.0.0 \\\n"
      "      --worker-address $(hostname):%port% --files-allow /data,s3://training/");
  std::vector<Setting> settings = SettingsOf(given->config);
  settings.push_back({"drain-timeout-ms", &given->drain_timeout,
                      "Milliseconds that SIGTERM may take to hand partitions over."});
  AddServerOptions(*command, std::move(settings));
  command->add_option("--port-file", given->port_file, "File to which the bound port is written.");
  command->callback([given, &chosen] {
    if (given->config.dispatcher_address.empty()) throw CLI::RequiredError("--dispatcher-address");
    chosen.run = [given] { return RunWorker(*given); };
  });
}

}  // namespace penstock::tools
