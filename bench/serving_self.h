// SPDX-License-Identifier: Apache-2.0
// Runs this program as `serve` in another process, so that what it serves has its own memory and
// CPU.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::bench {

// The serving process. It ends with this object, and with this process.
class ServingSelf {
 public:
  // Starts it and waits for its first line, which is its address.
  static absl::StatusOr<std::unique_ptr<ServingSelf>> Start() {
    int out[2];
    if (::pipe(out) != 0) return absl::ErrnoToStatus(errno, "pipe");
    const pid_t child = ::fork();
    if (child < 0) {
      const absl::Status error = absl::ErrnoToStatus(errno, "fork");
      for (const int end : out) ::close(end);
      return error;
    }
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(out[1], STDOUT_FILENO);
      ::execl("/proc/self/exe", "bench", "serve", nullptr);
      ::_exit(127);
    }
    ::close(out[1]);
    std::unique_ptr<ServingSelf> self(new ServingSelf(child));
    for (char c; ::read(out[0], &c, 1) == 1 && c != '\n';) self->target_ += c;
    ::close(out[0]);
    if (self->target_.empty()) return absl::InternalError("the serving process has ended");
    return self;
  }
  ~ServingSelf() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ServingSelf(const ServingSelf&) = delete;
  ServingSelf& operator=(const ServingSelf&) = delete;

  const std::string& target() const { return target_; }
  // Returns a clock of its CPU time.
  absl::StatusOr<clockid_t> CpuClock() const {
    clockid_t clock;
    if (::clock_getcpuclockid(child_, &clock) == 0) return clock;
    return absl::InternalError("cannot read the CPU clock of the serving process");
  }

 private:
  explicit ServingSelf(pid_t child) : child_(child) {}

  const pid_t child_;
  std::string target_;
};

}  // namespace penstock::bench
