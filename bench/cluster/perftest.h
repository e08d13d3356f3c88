// SPDX-License-Identifier: Apache-2.0
// Command lines of other projects' programs, and parsers of their output.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/cluster/survey.h"
#include "bench/cluster/tool.h"

namespace penstock::bench {

// The ports of two hosts that a link uses.
struct RdmaPath {
  RdmaPort here, there;
  std::string gid_kind;  // for Ethernet
};
// Finds a path. NotFound, naming the host, if a host has no port; FailedPrecondition, with the
// reason, if two ports cannot reach each other.
absl::StatusOr<RdmaPath> FindPath(const std::string& here_name, const Survey& here,
                                  const std::string& there_name, const Survey& there);

// Each function below completes a tool that already has its hosts, size and folder.

// perftest: ib_read_bw, where the reader pulls, or ib_write_bw, each over 4 queue pairs;
// ib_read_lat with one read at a time. `of_client`: arguments only for the client, such as the
// memory into which it reads.
Tool Perftest(Tool tool, const std::string& program, const RdmaPath& path,
              const std::vector<std::string>& of_client = {});
// ucx_perftest: ucp_am_bw, ucp_get or ucp_put_bw with 8 messages in flight, or ucp_am_lat, which
// sends one message there and back and reports half of that time. The variables choose lanes and
// devices.
struct UcxEnds {
  std::vector<std::string> here, there;  // environment variables
  bool error_handling = true;            // as in our ucx
  bool to_gpu = false;  // from host memory into GPU memory; each end allocates both
};
Tool UcxPerftest(Tool tool, const std::string& test, const UcxEnds& ends);
// iperf3 with `streams` streams to the reader.
Tool Iperf(Tool tool, int streams, const std::string& congestion);

// Parse the tools' output. Internal if the figures are missing. For ib_read_lat, p50 is the mean.
absl::StatusOr<ToolResult> ParsePerftest(const std::string& output, int64_t element_bytes);
absl::StatusOr<ToolResult> ParsePerftestLatency(const std::string& output, int64_t element_bytes);
absl::StatusOr<ToolResult> ParseUcxPerftest(const std::string& output, bool latency);
absl::StatusOr<ToolResult> ParseIperf(const std::string& output);

}  // namespace penstock::bench
