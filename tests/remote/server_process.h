// SPDX-License-Identifier: Apache-2.0
// A server in a process of its own, killed −9 and started again by a test.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace penstock {

inline constexpr int kBetweenLooksMs = 5;  // at a server or at what has been read

class ServerProcess {
 public:
  // Starts `command`, which has to listen on that port of loopback. What it says
  // goes to the file `log`.
  ServerProcess(std::vector<std::string> command, int port, std::string log);
  ~ServerProcess();  // kills it
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void Kill();
  // Returns when it listens; a test failure if it ends instead. It ends with the
  // thread that calls this.
  void Start();
  int port() const { return port_; }

 private:
  const std::vector<std::string> command_;
  const int port_;
  const std::string log_;
  pid_t pid_ = 0;
};

// A port of loopback that nobody listens on.
int FreePort();

// Runs a command to its end; a test failure if that is not 0.
void RunCommand(const std::vector<std::string>& command);

}  // namespace penstock
