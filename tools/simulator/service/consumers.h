// SPDX-License-Identifier: Apache-2.0
// The trainers that are the consumers of one coordinated read, as one training run: they store
// states at the same steps and commit a state only once all have stored theirs. When one of them
// dies, all others are killed too, and all go back to the latest step of which all have a state. If
// there is none, they begin the job again, under another name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/simulator/service/world.h"

namespace penstock::simulator {

class Trainer;

// Used on fibers. The trainers must outlive it.
class Consumers {
 public:
  explicit Consumers(World& world) : world_(world) {}

  void Add(Trainer* trainer) { trainers_.push_back(trainer); }
  // Returns whether all have a state of `step`: the number of elements that it contains.
  bool AllStored(size_t step) const;
  // Returns the latest step of which all have a state; 0: there is none.
  size_t CommonStep() const;
  // The name of the job that they read now.
  std::string JobName(const JobPlan& plan) const;
  // A trainer's process died, or ended before the job did.
  void OnGone();

 private:
  void GoBack();

  World& world_;
  std::vector<Trainer*> trainers_;
  int begins_again_ = 0;  // how often the job was begun again
  bool going_back_ = false;
};

}  // namespace penstock::simulator
