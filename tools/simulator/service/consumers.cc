// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/consumers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/simulator/service/trainer.h"

namespace penstock::simulator {
namespace {

// The time until the launcher of the training run starts the trainers that it has killed.
constexpr absl::Duration kNextLaunch = absl::Seconds(2);

}  // namespace

bool Consumers::AllStored(size_t step) const {
  return std::all_of(trainers_.begin(), trainers_.end(),
                     [step](const Trainer* trainer) { return trainer->HasStored(step); });
}

size_t Consumers::CommonStep() const {
  size_t common = 0;
  for (const size_t step : trainers_.front()->StoredSteps()) {
    if (AllStored(step)) common = std::max(common, step);
  }
  return common;
}

std::string Consumers::JobName(const JobPlan& plan) const {
  return begins_again_ == 0 ? plan.name : absl::StrCat(plan.name, "-", begins_again_);
}

void Consumers::OnGone() {
  if (going_back_) return;
  going_back_ = true;
  world_.scheduler.At(world_.scheduler.now(), world_.director, [this] { GoBack(); });
}

void Consumers::GoBack() {
  const bool from_the_beginning = CommonStep() == 0;
  for (Trainer* trainer : trainers_) {
    const bool finished = trainer->finished();
    if (finished && !from_the_beginning) continue;
    const bool runs = trainer->process() != nullptr;
    trainer->Crash();
    if (from_the_beginning) trainer->GiveUpHistory();
    if (runs || finished) trainer->StartAfter(kNextLaunch);
  }
  if (from_the_beginning) ++begins_again_;
  going_back_ = false;
}

}  // namespace penstock::simulator
