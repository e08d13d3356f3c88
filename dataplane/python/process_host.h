// SPDX-License-Identifier: Apache-2.0
// The Python processes of a worker, or of a program that reads datasets without a service.
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
  int processes = 1;  // maximum number that exist at a time; at least 1
  Command command;
  // The modules from which functions may come, including their submodules; functions sent by value
  // are then refused. Empty: any module, and functions by value.
  std::vector<std::string> allowed;
};

// A call takes the first free process. A generator stays with its process, which runs other calls
// in between. A process that dies is replaced, and its request is repeated once. If the new process
// dies too, the request fails with Internal and a message that describes the process's end.
class ProcessHost {
 public:
  // Starts processes when they are needed: one for each concurrent call, up to options.processes.
  static std::shared_ptr<PythonHost> Create(HostOptions options);
  // Starts all processes at once, and waits until they are ready. If one does not become ready,
  // returns its error.
  static absl::StatusOr<std::shared_ptr<PythonHost>> Start(HostOptions options);
};

}  // namespace penstock::python_host
#pragma GCC visibility pop
