// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "control/stub/dispatcher_stub.h"
#include "dataplane/dataset/graph/definition.h"
#include "include/status_macros.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/status_tables.h"

namespace penstock::tools {
namespace {

struct DatasetsArguments {
  DispatcherCall call;
  std::string dataset_id;
  std::string name_space;
  bool all = false;
};

absl::Status ListDatasets(const DatasetsArguments& given) {
  ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(given.call.address, given.call.tls));
  ASSIGN_OR_RETURN(const control::DispatcherStatus status,
                   stub->GetStatus({.timeout = given.call.timeout, .stop = {}},
                                   {.name_space = given.name_space,
                                    .parts = {control::StatusPart::kDatasets},
                                    .rows = given.all ? 0 : kRowsShown}));
  std::fputs(ReportDatasets(status).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Explain(const DatasetsArguments& given) {
  ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(given.call.address, given.call.tls));
  ASSIGN_OR_RETURN(const control::GetDatasetAnswer found,
                   stub->GetDataset(given.dataset_id, /*edition=*/0,
                                    {.timeout = given.call.timeout, .stop = {}}));
  ASSIGN_OR_RETURN(const Dataset dataset, ParseDataset(found.definition));
  std::fputs(dataset.Explain().c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Unregister(const DatasetsArguments& given) {
  ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(given.call.address, given.call.tls));
  return stub->UnregisterDataset(given.dataset_id, {.timeout = given.call.timeout, .stop = {}});
}

}  // namespace

void AddDatasets(CLI::App& app, Chosen& chosen) {
  CLI::App* datasets = app.add_subcommand("datasets", "List, explain and unregister datasets.");
  datasets->require_subcommand(1);
  datasets->footer(
      "  penstock datasets list\n  penstock datasets explain train-v2\n  penstock datasets "
      "unregister train-v2");

  auto listed = std::make_shared<DatasetsArguments>();
  CLI::App* list = datasets->add_subcommand("list", "List registered datasets, one a line.");
  AddOptions(*list, SettingsOf(listed->call));
  list->add_option("--namespace", listed->name_space,
                   "Namespace of the datasets to list; the default is all.");
  list->add_flag("--all", listed->all, kAllRowsHelp);
  list->callback([listed, &chosen] { chosen.run = [listed] { return ListDatasets(*listed); }; });

  auto explained = std::make_shared<DatasetsArguments>();
  CLI::App* explain = datasets->add_subcommand(
      "explain",
      "Print a dataset as a tree: nodes, specs, how each function runs, and which nodes work per "
      "partition.");
  AddOptions(*explain, SettingsOf(explained->call));
  explain->add_option("id", explained->dataset_id, "Id of the dataset.")->required();
  explain->callback(
      [explained, &chosen] { chosen.run = [explained] { return Explain(*explained); }; });

  auto gone = std::make_shared<DatasetsArguments>();
  CLI::App* unregister =
      datasets->add_subcommand("unregister", "Forget a dataset that no unfinished job reads.");
  AddOptions(*unregister, SettingsOf(gone->call));
  unregister->add_option("id", gone->dataset_id, "Id of the dataset.")->required();
  unregister->callback([gone, &chosen] { chosen.run = [gone] { return Unregister(*gone); }; });
}

}  // namespace penstock::tools
