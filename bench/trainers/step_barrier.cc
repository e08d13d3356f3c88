// SPDX-License-Identifier: Apache-2.0
#include "bench/trainers/step_barrier.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/measure.h"

namespace penstock::bench {
namespace {

constexpr int kMostTrainers = 64;
constexpr double kPatience = 120;  // seconds

}  // namespace

// Zero-initialized, like the start of a file. Fields with two elements are for even and odd steps,
// because a trainer may be a step ahead of another that still reads them.
struct StepBarrier::Shared {
  std::atomic<uint32_t> steps;  // steps that all trainers have ended
  std::atomic<int> arrived;
  std::atomic<bool> more[2];
  std::atomic<double> received[2][kMostTrainers];  // seconds
  std::atomic<double> computes[2][kMostTrainers];  // seconds
};

absl::StatusOr<std::unique_ptr<StepBarrier>> StepBarrier::Open(const Setup& setup) {
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
  if (setup.consumers > kMostTrainers) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", kMostTrainers, " trainers step together, not ", setup.consumers));
  }
  const std::string name =
      absl::StrCat(setup.scratch, setup.coordinated ? "/steps-in-rounds" : "/steps");
  const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0 && ::ftruncate(file, sizeof(Shared)) == 0) {
    memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int error = errno;
  if (file >= 0) ::close(file);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat(name, ": ", std::strerror(error)));
  return std::unique_ptr<StepBarrier>(
      new StepBarrier(*static_cast<Shared*>(memory), setup.consumer, setup.consumers));
}

StepBarrier::~StepBarrier() {
  ::munmap(&shared_, sizeof(Shared));
}

void StepBarrier::Received(double step_s) {
  shared_.received[step_ % 2][trainer_] = Now();
  shared_.computes[step_ % 2][trainer_] = step_s;
}

absl::StatusOr<bool> StepBarrier::Wait(bool more) {
  const uint32_t step = step_++;
  if (trainer_ == 0) shared_.more[step % 2] = more;
  auto* word = reinterpret_cast<uint32_t*>(&shared_.steps);
  if (++shared_.arrived == trainers_) {
    shared_.arrived = 0;
    ++shared_.steps;
    ::syscall(SYS_futex, word, FUTEX_WAKE, kMostTrainers, nullptr, nullptr, 0);
  }
  const double start = Now();
  while (shared_.steps == step) {
    constexpr timespec kSecond = {.tv_sec = 1, .tv_nsec = 0};
    ::syscall(SYS_futex, word, FUTEX_WAIT, step, &kSecond, nullptr, 0);
    if (Now() > start + kPatience)
      return absl::AbortedError("another trainer did not reach the barrier");
  }
  if (trainer_ == 0) {
    const auto range = [&](const std::atomic<double>* of) {
      const auto [least, most] = std::minmax_element(of, of + trainers_);
      return std::pair<double, double>(*least, *most);
    };
    const auto [first, last] = range(shared_.received[step % 2]);
    skews_us_.push_back(static_cast<float>((last - first) * 1e6));
    const auto [least, most] = range(shared_.computes[step % 2]);
    spreads_.push_back(least > 0 ? static_cast<float>(most / least - 1) : 0);
  }
  return shared_.more[step % 2].load();
}

std::optional<InStep> StepBarrier::Take() {
  if (trainer_ != 0) return std::nullopt;
  const InStep taken{.skew_p50_us = Quantile(skews_us_, 0.5),
                     .skew_p99_us = Quantile(skews_us_, 0.99),
                     .spread_p50 = Quantile(spreads_, 0.5),
                     .spread_p99 = Quantile(spreads_, 0.99)};
  skews_us_.clear();
  spreads_.clear();
  return taken;
}

}  // namespace penstock::bench
