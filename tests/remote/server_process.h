// SPDX-License-Identifier: Apache-2.0
// A server in a process of its own, which a test kills with kill −9 and starts again.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace penstock {

inline constexpr int kBetweenLooksMs = 5;  // between checks of a server or of the data read

class ServerProcess {
 public:
  // Starts `command`, which has to listen on that port of loopback. Its output goes to the file
  // `log`.
  ServerProcess(std::vector<std::string> command, int port, std::string log);
  ~ServerProcess();  // kills it
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void Kill();
  // Returns when the server listens; fails the test if it ends instead. It ends with the thread
  // that calls this.
  void Start();
  int port() const { return port_; }

 private:
  const std::vector<std::string> command_;
  const int port_;
  const std::string log_;
  pid_t pid_ = 0;
};

// Returns a port of loopback on which nobody listens.
int FreePort();

// Runs a command to its end; fails the test unless it exits with 0.
void RunCommand(const std::vector<std::string>& command);

}  // namespace penstock
