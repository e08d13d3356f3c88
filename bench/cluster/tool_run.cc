// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/cluster/tool.h"

namespace penstock::bench {
namespace {

constexpr size_t kMost = size_t{1} << 20;  // maximum size of the output in bytes

// Sets the variables at the front. Returns the words after them for execv(). `words` must stay
// alive.
std::vector<char*> TakeVariables(const std::vector<std::string>& words) {
  auto word = words.begin();
  for (; word != words.end() && word->find('=') != std::string::npos; ++word) {
    ::putenv(const_cast<char*>(word->c_str()));
  }
  std::vector<char*> argv;
  for (; word != words.end(); ++word) argv.push_back(const_cast<char*>(word->c_str()));
  argv.push_back(nullptr);
  return argv;
}

[[noreturn]] void BecomeTool(const std::vector<std::string>& words, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  const std::vector<char*> argv = TakeVariables(words);
  if (argv[0] != nullptr) ::execvp(argv[0], argv.data());
  const std::string why = absl::StrCat("cannot be started: ", std::strerror(errno), "\n");
  (void)!::write(STDERR_FILENO, why.data(), why.size());
  ::_exit(127);
}

// Returns the program's output until the program closes it, our input ends, or `end` is reached.
std::string OutputOf(int out, absl::Time end) {
  std::string output;
  while (true) {
    const int64_t left_ms = absl::ToInt64Milliseconds(end - absl::Now());
    pollfd ready[] = {{.fd = out, .events = POLLIN, .revents = 0},
                      {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
    const int count = left_ms <= 0 ? 0 : ::poll(ready, 2, static_cast<int>(left_ms));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return output;
    char bytes[4096];
    if (ready[0].revents != 0) {
      const ssize_t got = ::read(out, bytes, sizeof bytes);
      if (got <= 0) return output;
      output.append(bytes, std::min<size_t>(got, kMost - std::min(kMost, output.size())));
    } else if (::read(STDIN_FILENO, bytes, sizeof bytes) <= 0) {
      return output;
    }
  }
}

}  // namespace

absl::Status RunTool(const std::vector<std::string>& words, absl::Duration bound) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe from a tool");
  const pid_t pid = ::fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start a tool");
  if (pid == 0) BecomeTool(words, out[1]);
  ::close(out[1]);
  const std::string output = OutputOf(out[0], absl::Now() + bound);
  ::close(out[0]);
  // A program that closed its output has ended or will soon. Any other is killed after a second.
  int how = 0;
  for (const absl::Time end = absl::Now() + absl::Seconds(1); ::waitpid(pid, &how, WNOHANG) == 0;) {
    if (absl::Now() > end) ::kill(pid, SIGKILL);
    absl::SleepFor(absl::Milliseconds(2));
  }
  const int code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  const nlohmann::json said = {{"exit", code}, {"output", output}};
  std::printf("%s\n", said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status RunWith(const std::vector<std::string>& words) {
  std::vector<char*> argv = TakeVariables(words);
  const std::string run = argv[0] == nullptr ? "" : argv[0];
  if (run != "worker" && run != "bench-trainer") {
    return absl::InvalidArgumentError("bench-with NAME=VALUE… worker ARGUMENTS…, or bench-trainer");
  }
  argv.insert(argv.begin(), const_cast<char*>("penstock"));
  ::execv("/proc/self/exe", argv.data());
  return absl::ErrnoToStatus(errno, "cannot become another run of this program");
}

}  // namespace penstock::bench
