// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/farm/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace penstock::simulator {
namespace {

// Follows what the child wrote to stderr.
constexpr char kMark[] = "\n=== returned ===\n";
constexpr size_t kLastWords = 500;  // bytes of stderr in a failure
constexpr absl::Duration kLongestPoll = absl::Minutes(1);
// How many times its processor time a child may take, because it waits for its turn or sleeps.
constexpr int kMostWaiting = 10;

// Returns the processor time that the process has taken.
absl::Duration ProcessorTimeOf(pid_t process) {
  clockid_t clock = 0;
  timespec time = {};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return absl::InfiniteDuration();
  }
  return absl::DurationFromTimespec(time);
}

void WriteAll(int descriptor, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) return;
    done += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
}

// The child's program. It leaves without destructors, because fibers may be left.
[[noreturn]] void RunChild(absl::FunctionRef<std::string()> work, int descriptor) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(descriptor, STDERR_FILENO);
  const std::string text = work();
  WriteAll(descriptor, absl::StrCat(kMark, text));
  _exit(0);
}

// Returns the end of what the child wrote to stderr, on one line.
std::string LastWords(std::string words) {
  absl::StripAsciiWhitespace(&words);
  if (words.empty()) return "";
  if (words.size() > kLastWords) words = words.substr(words.size() - kLastWords);
  std::replace(words.begin(), words.end(), '\n', ' ');
  return absl::StrCat(": ", words);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Start(absl::FunctionRef<std::string()> work,
                                                    absl::Duration limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    RunChild(work, ends[1]);
  }
  const int error = errno;
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    return absl::ErrnoToStatus(error, "cannot start a process");
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<Child>(new Child(process, ends[0], limit));
}

Child::Child(pid_t process, int descriptor, absl::Duration limit)
    : process_(process),
      descriptor_(descriptor),
      limit_(limit),
      last_deadline_(absl::Now() + kMostWaiting * limit),
      deadline_(absl::Now() + limit) {}

Child::~Child() {
  if (process_ != 0) End(/*hangs=*/true);
  close(descriptor_);
}

std::optional<ChildEnd> Child::Poll() {
  while (true) {
    char buffer[1 << 16];
    const ssize_t count = read(descriptor_, buffer, sizeof(buffer));
    if (count > 0) {
      got_.append(buffer, static_cast<size_t>(count));
    } else if (count == 0) {
      return End(/*hangs=*/false);
    } else if (errno != EINTR) {
      break;  // nothing more is there now
    }
  }
  const absl::Time now = absl::Now();
  if (now < deadline_) return std::nullopt;
  const absl::Duration left = std::min(limit_ - ProcessorTimeOf(process_), last_deadline_ - now);
  if (left <= absl::ZeroDuration()) return End(/*hangs=*/true);
  deadline_ = now + left;
  return std::nullopt;
}

ChildEnd Child::End(bool hangs) {
  if (hangs) kill(process_, SIGKILL);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
  const size_t mark = got_.rfind(kMark);
  ChildEnd end;
  if (hangs) {
    end.failure = absl::StrCat("hangs: no end within ", absl::FormatDuration(limit_),
                               " of processor time", LastWords(got_));
  } else if (WIFSIGNALED(status)) {
    end.failure = absl::StrCat("crashed by ", strsignal(WTERMSIG(status)), LastWords(got_));
  } else if (mark == got_.npos) {
    end.failure = absl::StrCat("crashed with exit code ", WEXITSTATUS(status), LastWords(got_));
  } else {
    end.text = got_.substr(mark + std::strlen(kMark));
  }
  return end;
}

void AwaitReadable(const std::vector<int>& descriptors, absl::Time deadline) {
  std::vector<pollfd> waiting;
  for (const int descriptor : descriptors) waiting.push_back({descriptor, POLLIN, 0});
  const absl::Duration left =
      std::clamp(deadline - absl::Now(), absl::ZeroDuration(), kLongestPoll);
  poll(waiting.data(), waiting.size(),
       static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
}

ChildEnd RunInChild(absl::FunctionRef<std::string()> work, absl::Duration limit) {
  const absl::StatusOr<std::unique_ptr<Child>> child = Child::Start(work, limit);
  if (!child.ok()) return {std::nullopt, std::string(child.status().message())};
  while (true) {
    if (std::optional<ChildEnd> end = (*child)->Poll()) return *std::move(end);
    AwaitReadable({(*child)->descriptor()}, (*child)->deadline());
  }
}

}  // namespace penstock::simulator
