// SPDX-License-Identifier: Apache-2.0
// How programs of others are told what to do, and what they say.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/cluster/survey.h"
#include "bench/cluster/tool.h"

namespace penstock::bench {

// Which ports of two hosts a link goes through.
struct RdmaPath {
  RdmaPort here, there;
  std::string gid_kind;  // of Ethernet
};
// NotFound says which host has no port, FailedPrecondition what keeps two from each other.
absl::StatusOr<RdmaPath> FindPath(const std::string& here_name, const Survey& here,
                                  const std::string& there_name, const Survey& there);

// Each completes a tool that has its hosts, its size and its folder.

// perftest: ib_read_bw, by which the reader pulls, or ib_write_bw, over 4 queue pairs; ib_read_lat
// one read at a time. `of_client`: words that only the client gets, such as the memory it reads
// into.
Tool Perftest(Tool tool, const std::string& program, const RdmaPath& path,
              const std::vector<std::string>& of_client = {});
// ucx_perftest's ucp_am_bw, ucp_get or ucp_put_bw with 8 messages on their way, or ucp_am_lat, to
// and fro with one, of which it says the half; the variables choose lanes and devices.
struct UcxEnds {
  std::vector<std::string> here, there;  // variables
  bool error_handling = true;            // as our ucx has it
  bool to_gpu = false;                   // from host memory into a GPU's; each end allocates both
};
Tool UcxPerftest(Tool tool, const std::string& test, const UcxEnds& ends);
// iperf3 with so many streams to the reader.
Tool Iperf(Tool tool, int streams, const std::string& congestion);

// What they print; Internal if what is wanted is not in it. Of ib_read_lat the mean stands for p50.
absl::StatusOr<ToolResult> ParsePerftest(const std::string& output, int64_t element_bytes);
absl::StatusOr<ToolResult> ParsePerftestLatency(const std::string& output, int64_t element_bytes);
absl::StatusOr<ToolResult> ParseUcxPerftest(const std::string& output, bool latency);
absl::StatusOr<ToolResult> ParseIperf(const std::string& output);

}  // namespace penstock::bench
