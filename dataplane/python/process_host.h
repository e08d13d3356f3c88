// SPDX-License-Identifier: Apache-2.0
// The Python processes of a worker, or of a program that reads datasets itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/python/process.h"

#pragma GCC visibility push(default)
namespace penstock::python_host {

struct HostOptions {
  int processes = 1;  // maximum number that run at a time; at least 1
  Command command;
  // The only modules, with their submodules, that functions may come from; functions by value are
  // then refused. Empty: all modules.
  std::vector<std::string> allowed;
};

// A call takes the first free process. A generator stays with its process, and alternates with
// calls. A process that dies is replaced, and the request is repeated once. If the new process dies
// too, the request fails with Internal; the message reports how the process ended.
class ProcessHost {
 public:
  // Starts processes when they are needed, one for each concurrent call up to the limit.
  static std::shared_ptr<PythonHost> Create(HostOptions options);
  // Starts all processes at once and waits for them. Returns their error.
  static absl::StatusOr<std::shared_ptr<PythonHost>> Start(HostOptions options);
};

}  // namespace penstock::python_host
#pragma GCC visibility pop
