// SPDX-License-Identifier: Apache-2.0
#include "tools/server_run.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "control/protocol/host_port.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::tools {
namespace {

constexpr unsigned char kJoined = 0;  // in the pipe of signals: the server has stopped

int pipe_ends[2];  // the handler writes to it, in any thread

void WriteToPipe(unsigned char what) {
  const int before = errno;
  [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], &what, 1);
  errno = before;
}

unsigned char ReadFromPipe() {
  unsigned char what = kJoined;
  while (::read(pipe_ends[0], &what, 1) < 0 && errno == EINTR) {
  }
  return what;
}

}  // namespace

void ReturnFreedMemory(int bytes) {
  mallopt(M_MMAP_THRESHOLD, bytes);
  mallopt(M_TRIM_THRESHOLD, bytes);
}

absl::Status CatchStopSignals() {
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe for signals");
  struct sigaction action = {};
  action.sa_handler = [](int signal) { WriteToPipe(static_cast<unsigned char>(signal)); };
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  return absl::OkStatus();
}

absl::Status RunUntilStopped(const Running& server) {
  ASSIGN_OR_RETURN(Thread joiner, StartThread("waiting for the server's end", [&] {
                     server.join();
                     WriteToPipe(kJoined);
                   }));
  Thread finisher;
  while (const unsigned char signal = ReadFromPipe()) {
    if (signal == SIGTERM && !finisher.joinable()) {
      absl::StatusOr<Thread> started = StartThread("SIGTERM", server.finish);
      if (started.ok()) {
        finisher = *std::move(started);
      } else {
        server.finish();  // the next signal waits until it returns
      }
    } else {
      server.stop();
    }
  }
  joiner.join();
  if (finisher.joinable()) finisher.join();
  return absl::OkStatus();
}

std::string MetricsAt(const std::string& host, int metrics_port) {
  if (metrics_port < 0) return "";
  return absl::StrCat(", metrics at http://", control::JoinHostPort(host, metrics_port),
                      "/metrics");
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
