// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/perftest.h"

#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "dataplane/transfer/tcp/socket.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

constexpr double kUnknownRate = 1e8;  // bytes a second, until the first run's result
constexpr int64_t kLeast = 20;        // elements, for tools that take a count

using CommandWords = std::vector<std::string>;

CommandWords Joined(CommandWords words, const CommandWords& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Returns whether the host has only IPv6 addresses.
bool NeedsIpv6(const std::string& host) {
  const auto endpoints = transfer::tcp::LookUp({.host = host, .port = 1}, /*numeric=*/false);
  return endpoints.ok() && std::all_of(endpoints->begin(), endpoints->end(), [](const auto& one) {
           return one.address.ss_family == AF_INET6;
         });
}

std::string WholeSeconds(double seconds) {
  return absl::StrCat(std::max<int64_t>(1, std::llround(std::ceil(seconds))));
}

// Returns the numbers of a line; none if a word is not a number.
std::vector<double> NumbersOf(const std::string& line) {
  std::vector<double> numbers;
  for (const auto word : absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    double number = 0;
    if (!absl::SimpleAtod(word, &number)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

absl::Status NoResult(const std::string& tool, const std::string& output) {
  constexpr size_t kEnd = 300;
  return absl::InternalError(absl::StrCat(
      "the output of ", tool,
      " has no result in it: ", output.substr(output.size() > kEnd ? output.size() - kEnd : 0)));
}

// Returns the line for that size.
absl::StatusOr<std::vector<double>> PerftestLine(const std::string& output, int64_t element_bytes) {
  for (const auto line : absl::StrSplit(output, '\n')) {
    std::vector<double> numbers = NumbersOf(std::string(line));
    if (numbers.size() >= 4 && std::llround(numbers[0]) == element_bytes) return numbers;
  }
  return NoResult("perftest", output);
}

}  // namespace

absl::StatusOr<RdmaPath> FindPath(const std::string& here_name, const Survey& here,
                                  const std::string& there_name, const Survey& there) {
  for (const auto& [survey, name] : {std::pair(&here, &here_name), {&there, &there_name}}) {
    if (!survey->rdma)
      return absl::NotFoundError(absl::StrCat("on ", *name, ": ", survey->no_rdma));
  }
  RdmaPath path{.here = *here.rdma, .there = *there.rdma};
  if (path.here.ethernet != path.there.ethernet) {
    return absl::FailedPreconditionError(
        "one host's RDMA device is on Ethernet and the other's on InfiniBand");
  }
  if (!path.here.ethernet) return path;
  for (const std::string& kind : GidKinds()) {
    if (path.here.gids.contains(kind) && path.there.gids.contains(kind)) {
      path.gid_kind = kind;
      return path;
    }
  }
  return absl::FailedPreconditionError("the hosts' RDMA ports have no GID of the same kind");
}

Tool Perftest(Tool tool, const std::string& program, const RdmaPath& path,
              const std::vector<std::string>& of_client) {
  tool.name = program;
  // The reader is the client, except for ib_write_bw, where the writer is.
  tool.client_there = program == "ib_write_bw";
  const bool latency = program == "ib_read_lat";
  const auto words = [program, path, latency, size = tool.element_bytes](
                         const RdmaPort& port, const std::string& server, int at, double seconds) {
    // The measured time excludes a margin of a second at both ends.
    CommandWords made = {program, "-F",
                         "-d",    port.device,
                         "-i",    absl::StrCat(port.number),
                         "-s",    absl::StrCat(size),
                         "-p",    absl::StrCat(at),
                         "-f",    "1",
                         "-D",    WholeSeconds(seconds + 2)};
    if (!latency) made = Joined(made, {"--report_gbits", "-q", "4"});
    if (NeedsIpv6(server)) made.push_back("--ipv6-addr");  // for connecting, not for the data
    if (port.ethernet) {
      made = Joined(made, {"-x", absl::StrCat(port.gids.at(path.gid_kind))});
    }
    return made;
  };
  tool.run = [words, path, of_client, there = tool.client_there](
                 const std::string& server, int port, double seconds, double /*bytes_per_s*/) {
    const RdmaPort& client_port = there ? path.there : path.here;
    const RdmaPort& server_port = there ? path.here : path.there;
    return ToolRun{
        .server = words(server_port, server, port, seconds),
        .client = Joined(Joined(words(client_port, server, port, seconds), of_client), {server})};
  };
  tool.parse = [latency, size = tool.element_bytes](const std::string& output) {
    return latency ? ParsePerftestLatency(output, size) : ParsePerftest(output, size);
  };
  return tool;
}

Tool UcxPerftest(Tool tool, const std::string& test, const UcxEnds& ends) {
  tool.name = absl::StrCat("ucx_perftest ", test);
  tool.counts = true;
  tool.client_there = test != "ucp_get";  // the client reads for ucp_get, else it sends
  tool.run = [test, ends, size = tool.element_bytes, away = tool.client_there](
                 const std::string& server, int port, double seconds, double bytes_per_s) {
    const double rate = bytes_per_s > 0 ? bytes_per_s : kUnknownRate;
    const int64_t count =
        std::max<int64_t>(kLeast, std::llround(rate * seconds / static_cast<double>(size)));
    const auto words = [&](const CommandWords& variables, const CommandWords& host) {
      CommandWords made = Joined(Joined(variables, {"ucx_perftest"}), host);
      made = Joined(made, {"-t", test, "-s", absl::StrCat(size), "-n", absl::StrCat(count), "-w",
                           "10", "-O", "8", "-f", "-p", absl::StrCat(port)});
      if (ends.error_handling) made.push_back("-e");
      if (ends.to_gpu) made = Joined(made, {"-m", "host,cuda"});
      if (NeedsIpv6(server)) made.push_back("-6");  // for connecting
      return made;
    };
    return ToolRun{.server = words(away ? ends.here : ends.there, {}),
                   .client = words(away ? ends.there : ends.here, {server})};
  };
  tool.parse = [latency = test == "ucp_am_lat"](const std::string& output) {
    return ParseUcxPerftest(output, latency);
  };
  return tool;
}

Tool Iperf(Tool tool, int streams, const std::string& congestion) {
  tool.name = "iperf3";
  tool.run = [streams, congestion](const std::string& server, int port, double seconds,
                                   double /*bytes_per_s*/) {
    return ToolRun{
        .server = {"iperf3", "-s", "-1", "-p", absl::StrCat(port)},
        .client = {"iperf3", "-c", server, "-p", absl::StrCat(port), "-R", "-J", "-t",
                   WholeSeconds(seconds), "-P", absl::StrCat(streams), "-C", congestion}};
  };
  tool.parse = ParseIperf;
  return tool;
}

absl::StatusOr<ToolResult> ParsePerftest(const std::string& output, int64_t element_bytes) {
  // The line's numbers: bytes, iterations, peak and mean in Gb/s, messages a second.
  ASSIGN_OR_RETURN(const std::vector<double> numbers, PerftestLine(output, element_bytes));
  return ToolResult{.bytes_per_s = numbers[3] * 1e9 / 8};
}

absl::StatusOr<ToolResult> ParsePerftestLatency(const std::string& output, int64_t element_bytes) {
  // The line's numbers: bytes, iterations, mean in us, reads a second.
  ASSIGN_OR_RETURN(const std::vector<double> numbers, PerftestLine(output, element_bytes));
  return ToolResult{.bytes_per_s = numbers[3] * static_cast<double>(element_bytes),
                    .p50_us = numbers[2]};
}

absl::StatusOr<ToolResult> ParseUcxPerftest(const std::string& output, bool latency) {
  // The line's numbers: iterations, median and two means in us, mean and overall in MiB/s, two
  // rates. "Final:" precedes them if there were intermediate lines.
  for (const auto line : absl::StrSplit(output, '\n')) {
    const std::vector<double> numbers = NumbersOf(std::string(absl::StripPrefix(line, "Final:")));
    if (numbers.size() >= 8)
      return ToolResult{.bytes_per_s = numbers[5] * (1 << 20), .p50_us = latency ? numbers[1] : 0};
  }
  return NoResult("ucx_perftest", output);
}

absl::StatusOr<ToolResult> ParseIperf(const std::string& output) {
  const nlohmann::json said = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
  const auto rate = nlohmann::json::json_pointer("/end/sum_received/bits_per_second");
  if (said.is_object() && said.contains("error") && said["error"].is_string()) {
    return absl::UnavailableError(absl::StrCat("iperf3: ", said["error"].get<std::string>()));
  }
  if (!said.is_object() || !said.contains(rate) || !said[rate].is_number()) {
    return NoResult("iperf3", output);
  }
  return ToolResult{.bytes_per_s = said[rate].get<double>() / 8};
}

}  // namespace penstock::bench
