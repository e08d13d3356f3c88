// SPDX-License-Identifier: Apache-2.0
#include "bench/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/interrupt.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

constexpr absl::Duration kStop = absl::Seconds(5);

[[noreturn]] void Become(const std::vector<std::string>& argv, int in, int out, int log) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (argv[0].empty()) {
    words[0] = const_cast<char*>("penstock");
    ::execv("/proc/self/exe", words.data());
  } else {
    ::execvp(words[0], words.data());
  }
  const std::string why = absl::StrCat("cannot run ", argv[0], ": ", std::strerror(errno), "\n");
  (void)!::write(STDERR_FILENO, why.data(), why.size());
  ::_exit(127);
}

bool Gone(pid_t pid) {
  return ::waitpid(pid, nullptr, WNOHANG) != 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Start(std::vector<std::string> argv, Ends ends,
                                                        std::string log) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe to a process");
  if (::pipe2(out, O_CLOEXEC) != 0) {
    const absl::Status status = absl::ErrnoToStatus(errno, "pipe from a process");
    ::close(in[0]);
    ::close(in[1]);
    return status;
  }
  const int log_fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const pid_t pid = log_fd < 0 ? -1 : ::fork();
  const int error = errno;
  if (pid == 0) Become(argv, in[0], out[1], log_fd);
  ::close(in[0]);
  ::close(out[1]);
  if (log_fd >= 0) ::close(log_fd);
  if (pid < 0) {
    ::close(in[1]);
    ::close(out[0]);
    return absl::ErrnoToStatus(error, absl::StrCat("cannot start a process with its log ", log));
  }
  return std::unique_ptr<Process>(new Process(pid, ends, in[1], out[0], std::move(log)));
}

Process::~Process() {
  if (in_ >= 0) ::close(in_);
  ::close(out_);
  if (pid_ == 0) return;
  if (ends_ == Ends::kBySignal) ::kill(pid_, SIGINT);
  const absl::Time end = absl::Now() + kStop;
  while (absl::Now() < end) {
    if (Gone(pid_)) return;
    absl::SleepFor(absl::Milliseconds(2));
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

absl::Status Process::Write(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t put = ::write(in_, text.data() + at, text.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return Ended();
    at += static_cast<size_t>(put);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Process::ReadLine(absl::Duration bound) {
  const absl::Time end = absl::Now() + bound;
  while (true) {
    if (const size_t line_end = unread_.find('\n'); line_end != std::string::npos) {
      std::string line = unread_.substr(0, line_end);
      unread_.erase(0, line_end + 1);
      return line;
    }
    const int64_t left_ms = std::max<int64_t>(0, absl::ToInt64Milliseconds(end - absl::Now()));
    pollfd ready[] = {{.fd = out_, .events = POLLIN, .revents = 0},
                      {.fd = InterruptFd(), .events = POLLIN, .revents = 0}};
    const int count = ::poll(ready, 2, static_cast<int>(std::min<int64_t>(left_ms, 1 << 30)));
    RETURN_IF_ERROR(CheckInterrupted());
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("a process did not answer within ", absl::FormatDuration(bound)));
    }
    char bytes[4096];
    const ssize_t got = ::read(out_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Ended();
    unread_.append(bytes, static_cast<size_t>(got));
  }
}

absl::StatusOr<std::string> Process::Finish() {
  ::close(std::exchange(in_, -1));
  char bytes[65536];
  while (true) {
    const ssize_t got = ::read(out_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    unread_.append(bytes, static_cast<size_t>(got));
  }
  int how = 0;
  while (::waitpid(pid_, &how, 0) < 0 && errno == EINTR) continue;
  pid_ = 0;
  if (how != 0) return absl::UnavailableError(EndOfLog());
  return std::move(unread_);
}

absl::Status Process::Ended() const {
  return absl::UnavailableError(absl::StrCat("a process ended: ", EndOfLog()));
}

std::string Process::EndOfLog() const {
  std::ifstream file(log_);
  std::string last, line;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "it said nothing" : last;
}

}  // namespace penstock::bench
