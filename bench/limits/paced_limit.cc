// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/interrupt.h"
#include "bench/limits/limits.h"
#include "bench/measure.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

// Seconds of work between two waits.
constexpr double kSpell = 0.05;

class PacedLimit final : public Side {
 public:
  PacedLimit(std::unique_ptr<Side> side, double elements_per_s)
      : side_(std::move(side)), elements_per_s_(elements_per_s) {}

  std::string name() const override { return absl::StrCat(side_->name(), ", paced"); }
  const Roles& roles() const override { return side_->roles(); }

  absl::StatusOr<Done> Read(double seconds) override {
    Done sum;
    const double start = Now();
    double now = start;
    while (!Interrupted() && now < start + seconds) {
      ASSIGN_OR_RETURN(const Done done, side_->Read(std::min(kSpell, seconds)));
      sum.elements += done.elements;
      sum.bytes += done.bytes;
      const double due = start + sum.elements / elements_per_s_;
      absl::SleepFor(absl::Seconds(std::max(0.0, due - Now())));
      now = Now();
    }
    sum.seconds = now - start;
    return sum;
  }

 private:
  const std::unique_ptr<Side> side_;
  const double elements_per_s_;
};

}  // namespace

std::unique_ptr<Side> MakePacedLimit(std::unique_ptr<Side> side, double elements_per_s) {
  return std::make_unique<PacedLimit>(std::move(side), elements_per_s);
}

}  // namespace penstock::bench
