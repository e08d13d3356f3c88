// SPDX-License-Identifier: Apache-2.0
// Other projects' programs that measure a link: a server on one host and a client on the other.
// Both are started again for each window.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/hosts.h"
#include "bench/side.h"

namespace penstock::bench {

// The commands of one window.
struct ToolRun {
  // Each: variables as "NAME=VALUE", the program, its arguments.
  std::vector<std::string> server, client;
};

// The program's result for a window.
struct ToolResult {
  double bytes_per_s = 0;
  double p50_us = 0;  // of one element, if the program measures it
};

struct Tool {
  std::string name;
  int64_t element_bytes = 0;
  Hosts hosts;
  bool client_there = false;  // the client runs there and the server here: the client sends
  std::string scratch;
  bool counts = false;  // takes a number of elements, not a time
  // Returns the commands for a window of about `seconds` at an expected `bytes_per_s` (0: unknown),
  // with the server at `port` of host `server`.
  std::function<ToolRun(const std::string& server, int port, double seconds, double bytes_per_s)>
      run;
  // Parses the client's output.
  std::function<absl::StatusOr<ToolResult>(const std::string& output)> parse;
};

std::unique_ptr<Side> MakeToolSide(Tool tool);

// `penstock bench-tool`: runs a program, preceded by its variables, until it ends, standard input
// ends, or `bound` is over. Then prints a line {"exit": code, "output": text}. Code 127: the
// program is not installed.
absl::Status RunTool(const std::vector<std::string>& words, absl::Duration bound);

// `penstock bench-with NAME=VALUE… worker …`, or `… bench-trainer`: sets the variables and replaces
// this process by that run of this program. Returns only if that fails.
absl::Status RunWith(const std::vector<std::string>& words);

}  // namespace penstock::bench
