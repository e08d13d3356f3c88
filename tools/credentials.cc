// SPDX-License-Identifier: Apache-2.0
// `penstock credentials`: makes the folder of a cluster with TLS and roles.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "include/status_macros.h"
#include "tools/commands.h"
#include "tools/credentials/certificates.h"
#include "tools/credentials/folder.h"
#include "tools/credentials/settings_files.h"

namespace penstock::tools {
namespace {

struct Arguments {
  std::string folder;
  ClusterTerms cluster{.hosts = {}, .trainers = {"trainer"}, .days = 365};
  control::Principal principal;
  std::string role = "trainer";
};

absl::Status Init(const Arguments& given) {
  RETURN_IF_ERROR(MakeCredentials(given.folder, given.cluster));
  const std::string& folder = given.folder;
  const std::string service = ServiceAt(given.cluster.hosts.main());
  std::printf("made %s. Keep ca.key there; docs/security.md says which files each machine needs.\n",
              folder.c_str());
  std::printf("  penstock dispatcher --config %s/dispatcher.toml\n", folder.c_str());
  std::printf("  penstock worker --config %s/worker.toml --worker-address HOST:%%port%%\n",
              folder.c_str());
  for (const std::string& trainer : given.cluster.trainers) {
    std::printf("  PENSTOCK_CONFIG=%s/%s.toml ./trainer    # service = \"%s\"\n", folder.c_str(),
                trainer.c_str(), service.c_str());
  }
  std::printf("  . %s/operator.env && penstock status\n", folder.c_str());
  return absl::OkStatus();
}

absl::Status AddOne(const Arguments& given) {
  control::Principal principal = given.principal;
  for (const control::Role role :
       {control::Role::kTrainer, control::Role::kWorker, control::Role::kOperator}) {
    if (given.role == ToText(role)) principal.role = role;
  }
  RETURN_IF_ERROR(AddPrincipal(given.folder, principal));
  std::printf("added %s to %s/auth.toml; its token is in %s/%s.token\n", principal.name.c_str(),
              given.folder.c_str(), given.folder.c_str(), principal.name.c_str());
  return absl::OkStatus();
}

absl::Status Renew(const Arguments& given) {
  ASSIGN_OR_RETURN(const HostsByName renewed,
                   RenewCertificates(given.folder, given.cluster.hosts, given.cluster.days));
  for (const auto& [name, hosts] : renewed) {
    std::printf("made %s/%s.pem anew, for %s\n", given.folder.c_str(), name.c_str(),
                absl::StrJoin(hosts, ", ").c_str());
  }
  return absl::OkStatus();
}

using Action = absl::Status (*)(const Arguments&);

CLI::App& AddAction(CLI::App& credentials, Chosen& chosen, const std::shared_ptr<Arguments>& given,
                    const char* name, const char* help, Action action) {
  CLI::App* command = credentials.add_subcommand(name, help);
  command->add_option("folder", given->folder, "Folder of the credentials.")->required();
  command->callback(
      [given, &chosen, action] { chosen.run = [given, action] { return action(*given); }; });
  return *command;
}

void AddDays(CLI::App& command, Arguments& given) {
  command.add_option("--days", given.cluster.days, "Days for which the certificates are valid.")
      ->check(CLI::Range(1, kMaxDays))
      ->capture_default_str();
}

// Returns the option for all hosts.
CLI::Option* AddHosts(CLI::App& command, ClusterHosts& hosts, const char* help) {
  CLI::Option* all =
      command.add_option("--hosts", hosts.all, help)->delimiter(',')->allow_extra_args(false);
  command
      .add_option("--dispatcher-host", hosts.dispatcher,
                  "Names of the dispatcher's host, separated by commas; the first is dialled. If "
                  "left out: the first of --hosts. Only dispatcher.pem is for them.")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(all);
  return all;
}

void AddInit(CLI::App& credentials, Chosen& chosen, const std::shared_ptr<Arguments>& given) {
  CLI::App& init = AddAction(credentials, chosen, given, "init",
                             "Make the folder; an existing one is never changed.", Init);
  AddHosts(init, given->cluster.hosts,
           "Hosts of the dispatcher and of the workers, separated by commas, as clients dial them. "
           "localhost is always added.")
      ->required();
  init.add_option("--trainer", given->cluster.trainers,
                  "Name of a trainer's principal; may be given several times.")
      ->allow_extra_args(false)
      ->capture_default_str();
  AddDays(init, *given);
}

void AddAdd(CLI::App& credentials, Chosen& chosen, const std::shared_ptr<Arguments>& given) {
  CLI::App& add = AddAction(credentials, chosen, given, "add",
                            "Add a principal with a new token to auth.toml.", AddOne);
  add.add_option("name", given->principal.name, "Name of the principal.")->required();
  add.add_option("--role", given->role, "trainer, worker or operator.")
      ->check(CLI::IsMember({"trainer", "worker", "operator"}))
      ->capture_default_str();
  add.add_option("--namespaces", given->principal.namespaces,
                 "Namespaces that it may use, separated by commas; if left out: all.")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void AddRenew(CLI::App& credentials, Chosen& chosen, const std::shared_ptr<Arguments>& given) {
  CLI::App& renew = AddAction(credentials, chosen, given, "renew",
                              "Make new certificates for the keys of the dispatcher and of "
                              "workers, with the same authority.",
                              Renew);
  AddHosts(renew, given->cluster.hosts,
           "Hosts in place of the certificates' present ones, as for init.");
  AddDays(renew, *given);
}

}  // namespace

void AddCredentials(CLI::App& app, Chosen& chosen) {
  CLI::App* credentials =
      app.add_subcommand("credentials", "Make the credentials of a cluster with TLS and roles.");
  credentials->require_subcommand(1);
  credentials->footer(
      "  penstock credentials init /etc/penstock --hosts head,node7,10.0.0.4\n"
      "  penstock credentials add /etc/penstock vision --namespaces vision\n"
      "  penstock credentials renew /etc/penstock --days 90\n\n"
      "docs/security.md describes the files.");
  auto given = std::make_shared<Arguments>();
  AddInit(*credentials, chosen, given);
  AddAdd(*credentials, chosen, given);
  AddRenew(*credentials, chosen, given);
}

}  // namespace penstock::tools
