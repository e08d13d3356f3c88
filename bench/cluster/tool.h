// SPDX-License-Identifier: Apache-2.0
// Programs of others that measure a link: a server on one host, a client on the
// other, both started anew for each window.
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

// One window of such a program.
struct ToolRun {
  // Variables as "NAME=VALUE", the program, its arguments.
  std::vector<std::string> server, client;
};

// What such a program says of a window.
struct ToolResult {
  double bytes_per_s = 0;
  double p50_us = 0;  // of one element, where it measures that
};

struct Tool {
  std::string name;
  int64_t element_bytes = 0;
  Hosts hosts;
  bool client_there = false;  // and the server here, where the client is who sends
  std::string scratch;
  bool counts = false;  // whether it is told how many to move, not how long
  // The commands of a window of about `seconds` in which `bytes_per_s` are to be
  // expected (0: not known yet), with the server at `port` of host `server`.
  std::function<ToolRun(const std::string& server, int port, double seconds, double bytes_per_s)>
      run;
  // What the client's output says.
  std::function<absl::StatusOr<ToolResult>(const std::string& output)> parse;
};

std::unique_ptr<Side> MakeToolSide(Tool tool);

// `penstock bench-tool`: runs a program, its variables before it, until it ends,
// our standard input ends, or `bound` is over; then writes a line
// {"exit": code, "output": text} to standard output. Code 127: it is not installed.
absl::Status RunTool(const std::vector<std::string>& words, absl::Duration bound);

// `penstock bench-with NAME=VALUE… worker …`, or `bench-trainer`: becomes that run of this program,
// with the variables set. Returns if it cannot.
absl::Status RunWith(const std::vector<std::string>& words);

}  // namespace penstock::bench
