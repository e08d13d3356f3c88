// SPDX-License-Identifier: Apache-2.0
// The Python processes of a worker, or of a program that reads datasets itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/python_host.h"
#include "dataplane/python/process.h"

namespace penstock::python_host {

struct HostOptions {
  int processes = 1;  // at most so many, at least 1
  Command command;
  // Modules that alone functions may come from, with those below them; none by value then. Empty:
  // all may.
  std::vector<std::string> allowed;
};

// Calls take the first process that is free; generators stay with theirs, and take turns with
// calls. A process that dies is started again: what ran in it is asked once more, and is Internal,
// saying how the process ended, if that ends it again.
class ProcessHost {
 public:
  // Processes are started when they are needed: as many as there are calls at a time.
  static std::shared_ptr<PythonHost> Create(HostOptions options);
  // All are started at once, and waited for; their error.
  static absl::StatusOr<std::shared_ptr<PythonHost>> Start(HostOptions options);
};

}  // namespace penstock::python_host
