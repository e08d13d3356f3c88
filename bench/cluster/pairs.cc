// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/pairs.h"

#include <cstdlib>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/process.h"
#include "bench/report.h"
#include "bench/wire.h"
#include "control/protocol/host_port.h"
#include "dataplane/transfer/tcp/socket.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

using nlohmann::json;

// The variable in which commands find the key. launch.py reads it.
constexpr char kKeyVariable[] = "PENSTOCK_BENCH_KEY";
constexpr absl::Duration kAgentStart = absl::Minutes(2);  // by a remote shell

json ToJson(const Window& window) {
  return {{"done", ToJson(window.done)},
          {"cpu_seconds", window.cpu_seconds},
          {"resident_bytes", window.resident_bytes},
          {"foreign_cores", window.foreign_cores}};
}

// These three throw json::exception for a missing field or one of another type.
absl::StatusOr<Window> WindowOf(const json& fields) {
  ASSIGN_OR_RETURN(Done done, DoneOf(fields.at("done")));
  return Window{.done = std::move(done),
                .cpu_seconds = fields.at("cpu_seconds"),
                .resident_bytes = fields.at("resident_bytes"),
                .foreign_cores = fields.at("foreign_cores")};
}

absl::Status StatusOf(const json& fields) {
  return {static_cast<absl::StatusCode>(fields.at("code").get<int>()),
          fields.at("message").get<std::string>()};
}

absl::StatusOr<Row> RowOf(const json& fields) {
  Row row;
  row.system = fields.at("system");
  row.version = fields.at("version");
  row.variant = fields.at("variant");
  row.setup.protocol = fields.at("protocol");
  row.setup.element_bytes = fields.at("element_bytes");
  row.limit = fields.at("limit");
  row.line_gb_per_s = fields.at("line_gb_per_s");
  row.lanes = fields.at("lanes").get<std::set<std::string>>();
  row.status = StatusOf(fields.at("status"));
  for (const json& pair : fields.at("pairs")) {
    ASSIGN_OR_RETURN(Window side, WindowOf(pair.at("side")));
    ASSIGN_OR_RETURN(Window limit, WindowOf(pair.at("limit")));
    row.pairs.push_back({.side = std::move(side), .limit = std::move(limit)});
  }
  return row;
}

}  // namespace

void MakeKey() {
  std::random_device random;
  std::string key;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&key, absl::Hex(random(), absl::kZeroPad8));
  ::setenv(kKeyVariable, key.c_str(), /*overwrite=*/1);
}

absl::StatusOr<Agent> StartAgent(std::vector<std::string> words, const std::string& host,
                                 const std::string& log) {
  words.insert(words.end(), {"bench-agent", host});
  Agent agent{.host = host};
  ASSIGN_OR_RETURN(agent.process, Process::Start(std::move(words), Process::Ends::kWithInput, log));
  RETURN_IF_ERROR(agent.process->Write(std::getenv(kKeyVariable)));
  ASSIGN_OR_RETURN(const std::string port, agent.process->ReadLine(kAgentStart));
  agent.address = control::JoinHostPort(host, port);
  RETURN_IF_ERROR(transfer::tcp::ParseAddress(agent.address).status());
  return agent;
}

json ToJson(const std::vector<Row>& rows) {
  json all = json::array();
  for (const Row& row : rows) {
    json pairs = json::array();
    for (const Pair& pair : row.pairs) {
      pairs.push_back({{"side", ToJson(pair.side)}, {"limit", ToJson(pair.limit)}});
    }
    all.push_back(
        {{"system", row.system},
         {"version", row.version},
         {"variant", row.variant},
         {"protocol", row.setup.protocol},
         {"element_bytes", row.setup.element_bytes},
         {"limit", row.limit},
         {"line_gb_per_s", row.line_gb_per_s},
         {"lanes", row.lanes},
         {"status",
          {{"code", row.status.raw_code()}, {"message", std::string(row.status.message())}}},
         {"pairs", std::move(pairs)}});
  }
  return all;
}

absl::StatusOr<std::vector<Row>> RowsOf(const json& fields) {
  if (!fields.is_array()) return absl::InvalidArgumentError("a pair's rows are not a list");
  try {  // the library reports a field of another type only by an exception
    std::vector<Row> rows;
    for (const json& row : fields) {
      ASSIGN_OR_RETURN(rows.emplace_back(), RowOf(row));
    }
    return rows;
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a pair's rows: ", error.what()));
  }
}

absl::StatusOr<std::vector<Row>> MeasurePair(const Agent& reader, const Agent& sender,
                                             const std::vector<std::string>& flags,
                                             const std::string& log) {
  std::vector<std::string> words = {"",          "bench-there", reader.address, "bench-pair",
                                    reader.host, sender.host,   sender.address};
  words.insert(words.end(), flags.begin(), flags.end());
  ASSIGN_OR_RETURN(const std::unique_ptr<Process> process,
                   Process::Start(std::move(words), Process::Ends::kBySignal, log));
  // Waits without a bound, because each side that the reader's host measures has one.
  ASSIGN_OR_RETURN(const std::string line, process->ReadLine(absl::InfiniteDuration()));
  ASSIGN_OR_RETURN(std::vector<Row> rows,
                   RowsOf(json::parse(line, nullptr, /*allow_exceptions=*/false)));
  for (Row& row : rows) {
    row.setup.workload = kPairWorkload;
    row.setup.hosts = {.here = reader.host, .there = sender.host};
  }
  return rows;
}

}  // namespace penstock::bench
