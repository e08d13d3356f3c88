// SPDX-License-Identifier: Apache-2.0
#include "bench/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>

namespace penstock::bench {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> event{-1};

void Note(int /*signal*/) {
  interrupted = true;
  const uint64_t one = 1;
  (void)!::write(event, &one, sizeof one);
}

}  // namespace

void WatchForInterrupts() {
  if (event < 0) event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
    struct sigaction noted {};
    noted.sa_handler = Note;
    noted.sa_flags = static_cast<int>(SA_RESETHAND);  // the second signal has its default effect
    ::sigaction(signal, &noted, nullptr);
  }
}

bool Interrupted() {
  return interrupted;
}

int InterruptFd() {
  return event;
}

absl::Status CheckInterrupted() {
  return interrupted ? absl::CancelledError("interrupted") : absl::OkStatus();
}

}  // namespace penstock::bench
