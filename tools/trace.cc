// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "control/stub/dispatcher_stub.h"
#include "include/status_macros.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/table.h"

namespace penstock::tools {
namespace {

struct TraceArguments {
  DispatcherCall call;
  std::string dataset_id;
  bool json = false;
};

// A node's figures over all workers. Nodes are in the order of the dataset.
struct Together {
  std::string dataset_id;
  NodeStats node;
};

void Add(const NodeStats& from, NodeStats& to) {
  to.elements += from.elements;
  to.bytes += from.bytes;
  to.busy += from.busy;
  to.waiting += from.waiting;
  to.parallelism = std::max(to.parallelism, from.parallelism);
  to.ahead = std::max(to.ahead, from.ahead);
}

std::vector<Together> OfAllWorkers(const control::DispatcherStatus& status,
                                   const std::string& dataset_id) {
  std::vector<Together> together;
  for (const control::WorkStatus& worker : status.work) {
    if (!dataset_id.empty() && worker.work.dataset_id != dataset_id) continue;
    for (const NodeStats& node : worker.work.stats.nodes) {
      auto same = std::find_if(together.begin(), together.end(), [&](const Together& other) {
        return other.dataset_id == worker.work.dataset_id && other.node.node == node.node;
      });
      if (same == together.end()) {
        together.push_back({worker.work.dataset_id, node});
      } else {
        Add(node, same->node);
      }
    }
  }
  return together;
}

std::string NumberOrDash(int64_t number) {
  return number == 0 ? "-" : absl::StrCat(number);
}

// Returns one line for each node, over all workers.
std::string ReportWork(const control::DispatcherStatus& status, const std::string& dataset_id) {
  const std::vector<Together> nodes = OfAllWorkers(status, dataset_id);
  std::map<std::string, absl::Duration> busy;  // by dataset
  for (const Together& each : nodes) busy[each.dataset_id] += each.node.busy;
  std::vector<std::vector<std::string>> rows;
  for (const Together& each : nodes) {
    const NodeStats& node = each.node;
    const double seconds = absl::ToDoubleSeconds(node.busy);
    const double all = absl::ToDoubleSeconds(busy[each.dataset_id]);
    rows.push_back(
        {each.dataset_id, node.node, absl::StrCat(node.elements),
         absl::StrFormat("%.3f", static_cast<double>(node.bytes) / 1e9),
         absl::StrFormat("%.3f", seconds),
         absl::StrFormat("%.0f%%", all > 0 ? 100 * seconds / all : 0),
         absl::StrFormat(
             "%.2f", node.elements > 0 ? 1e6 * seconds / static_cast<double>(node.elements) : 0),
         absl::StrFormat("%.3f", absl::ToDoubleSeconds(node.waiting)),
         NumberOrDash(node.parallelism), NumberOrDash(node.ahead)});
  }
  return FormatTable({"DATASET", "NODE", "ELEMENTS", "GB", "BUSY S", "SHARE", "US/ELEMENT",
                      "WAITING S", "CALLS", "AHEAD"},
                     rows, 2);
}

// Returns one object for each node and worker.
std::string WorkAsJson(const control::DispatcherStatus& status, const std::string& dataset_id) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const control::WorkStatus& worker : status.work) {
    if (!dataset_id.empty() && worker.work.dataset_id != dataset_id) continue;
    for (const NodeStats& node : worker.work.stats.nodes) {
      nodes.push_back({{"worker", worker.address},
                       {"dataset", worker.work.dataset_id},
                       {"node", node.node},
                       {"elements", node.elements},
                       {"bytes", node.bytes},
                       {"busy_s", absl::ToDoubleSeconds(node.busy)},
                       {"waiting_s", absl::ToDoubleSeconds(node.waiting)},
                       {"parallelism", node.parallelism},
                       {"ahead", node.ahead}});
    }
  }
  return nodes.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::Status PrintTrace(const TraceArguments& given) {
  ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(given.call.address, given.call.tls));
  ASSIGN_OR_RETURN(const control::DispatcherStatus status,
                   stub->GetStatus({.timeout = given.call.timeout, .stop = {}},
                                   {.parts = {control::StatusPart::kWork}}));
  const auto as_text = given.json ? WorkAsJson : ReportWork;
  std::fputs(as_text(status, given.dataset_id).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddTrace(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<TraceArguments>();
  CLI::App* command =
      app.add_subcommand("trace", "Show what each node of a dataset did on the workers.");
  command->footer(
      "Totals of all partitions since the workers started the dataset, as of their last\n"
      "heartbeats.\n\n"
      "  BUSY     seconds of all threads in the node's own code, estimated from samples\n"
      "  WAITING  seconds for which readers waited for the node's next element\n"
      "  CALLS    calls at a time, as last tuned\n"
      "  AHEAD    elements ready or in progress, as last tuned\n\n"
      "  penstock trace --dispatcher-address head:5050\n"
      "  penstock trace 1000 --json");
  command->add_option("dataset", given->dataset_id,
                      "Id of the dataset to show (penstock datasets list); the default is all.");
  AddOptions(*command, SettingsOf(given->call));
  command->add_flag("--json", given->json, "Print one JSON array instead of a table.");
  command->callback([given, &chosen] { chosen.run = [given] { return PrintTrace(*given); }; });
}

}  // namespace penstock::tools
