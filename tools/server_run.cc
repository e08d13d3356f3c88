// SPDX-License-Identifier: Apache-2.0
#include "tools/server_run.h"

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"

namespace penstock::tools {
namespace {

constexpr int kJoined = SIGUSR1;  // from our own thread: the server has stopped

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, kJoined}) sigaddset(&set, signal);
  return set;
}

}  // namespace

void BlockStopSignals() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void RunUntilStopped(const Running& server) {
  const pthread_t self = pthread_self();
  std::thread joiner([&] {
    server.join();
    pthread_kill(self, kJoined);
  });
  std::thread finisher;
  const sigset_t set = StopSignals();
  for (int signal = 0; sigwait(&set, &signal) == 0 && signal != kJoined;) {
    if (signal == SIGTERM && !finisher.joinable()) {
      finisher = std::thread(server.finish);
    } else {
      server.stop();
    }
  }
  joiner.join();
  if (finisher.joinable()) finisher.join();
}

absl::Status SayReady(const std::string& line, int port, const std::string& port_file) {
  if (!port_file.empty()) {
    const std::string unfinished = absl::StrCat(port_file, ".new");
    std::ofstream out(unfinished);
    out << port << '\n';
    out.close();
    if (!out || std::rename(unfinished.c_str(), port_file.c_str()) != 0) {
      return absl::PermissionDeniedError(
          absl::StrCat("cannot write --port-file ", port_file, ": ", std::strerror(errno)));
    }
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace penstock::tools
