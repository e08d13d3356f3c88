// SPDX-License-Identifier: Apache-2.0
#include "bench/side.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/interrupt.h"
#include "bench/measure.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

// Before each window a side reads for this share of the window's time, unmeasured. This uses up
// elements that were made during other sides' windows, and lets those sides finish their work. A
// few such elements of 38 MB would be a quarter of a slow system's window.
constexpr double kLead = 0.25;

template <class OfProcess>
std::map<std::string, double> ByRole(const Roles& roles, OfProcess of_process) {
  std::map<std::string, double> sums;
  for (const auto& [role, processes] : roles) {
    double& sum = sums[role];
    for (pid_t pid : processes) sum += of_process(pid);
  }
  return sums;
}

double Sum(const std::map<std::string, double>& by_role) {
  double sum = 0;
  for (const auto& [role, value] : by_role) sum += value;
  return sum;
}

double Cpu(const std::vector<pid_t>& processes) {
  double sum = 0;
  for (pid_t pid : processes) sum += CpuSeconds(pid);
  return sum;
}

// Waits until no process still works on earlier requests, for example on batches made ahead, for at
// most `seconds`, the length of a window.
void AwaitQuiet(double seconds) {
  const double start = Now();
  const double spell = std::min(0.1, seconds / 2);
  double busy = 1;
  while (busy > kForeignCores && !Interrupted() && Now() < start + seconds) {
    const double before = MachineBusySeconds(), began = Now();
    absl::SleepFor(absl::Seconds(spell));
    busy = (MachineBusySeconds() - before) / (Now() - began);
  }
}

// Returns why the side failed: after an interrupt always Cancelled, else its error.
absl::Status Reason(const absl::Status& status) {
  return Interrupted() ? CheckInterrupted() : status;
}

}  // namespace

void Done::SetLatencies(std::vector<float>& next_us) {
  p50_us = Quantile(next_us, 0.5);
  p99_us = Quantile(next_us, 0.99);
  max_us = next_us.empty() ? 0 : *std::max_element(next_us.begin(), next_us.end());
}

double Window::cpu() const {
  return Sum(cpu_seconds);
}

double Window::rss() const {
  return Sum(resident_bytes);
}

absl::StatusOr<Window> Measure(Side& side, double seconds) {
  AwaitQuiet(seconds);
  RETURN_IF_ERROR(CheckInterrupted());
  if (!side.starts_anew()) {
    RETURN_IF_ERROR(Reason(side.Read(seconds * kLead).status()));
  }
  Window window;
  const std::map<std::string, double> before = ByRole(side.roles(), CpuSeconds);
  const double company_before = Cpu(side.company());
  const double busy_before = MachineBusySeconds();
  const double start = Now();
  absl::StatusOr<Done> done = side.Read(seconds);
  RETURN_IF_ERROR(Reason(done.status()));
  window.done = *std::move(done);
  const double took = Now() - start;
  window.cpu_seconds = ByRole(side.roles(), CpuSeconds);
  for (auto& [role, cpu] : window.cpu_seconds) cpu -= before.at(role);
  if (!side.roles().empty()) {  // else it has no lasting process: a bar or a tool
    const double ours = window.cpu() + Cpu(side.company()) - company_before;
    window.foreign_cores = std::max(0.0, (MachineBusySeconds() - busy_before - ours) / took);
  }
  window.resident_bytes = ByRole(side.roles(), ResidentBytes);
  if (window.done.elements <= 0 || window.done.seconds <= 0) {
    return absl::DeadlineExceededError(absl::StrCat(side.name(), " got no element in a window of ",
                                                    seconds, " s; make the window longer"));
  }
  return window;
}

}  // namespace penstock::bench
