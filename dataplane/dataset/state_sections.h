// SPDX-License-Identifier: Apache-2.0
// What nodes put into a state beside their positions, where it is found without
// them: by whoever takes up the states of all ranks (Distribute).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/state_bytes.h"

namespace penstock {

struct StateSection {
  // How far the node was: of several states that one's positions are taken up
  // whose nodes were least far.
  int64_t at = 0;
  std::string bytes;
};
using StateSections = std::map<int, StateSection>;  // by the node's number

void Write(const StateSections& sections, StateWriter& writer);
absl::StatusOr<StateSections> ReadStateSections(StateReader& reader);

// Between a running dataset and its nodes, while a state is saved or taken up.
// One thread at a time, as the nodes' Save() and Restore().
class StateExchange {
 public:
  // Makes a section's bytes; may wait, also while elements are read. Called before
  // the running dataset ends.
  using Finish = std::function<absl::StatusOr<std::string>()>;
  struct Unfinished {
    int node;
    int64_t at;
    Finish finish;
  };

  // In Save():
  void Put(int node, int64_t at, Finish finish) {
    unfinished_.push_back({node, at, std::move(finish)});
  }
  // After it:
  std::vector<Unfinished> TakeUnfinished() { return std::exchange(unfinished_, {}); }

  // Before Restore(): what the state taken up contains, or those of all ranks.
  struct TakenUp {
    std::vector<StateSections> of;  // one, or one per rank
    bool all_ranks = false;
    uint64_t name = 0;   // of `of`: the same for all ranks of one launch
    std::string run_id;  // of the launch
  };
  void TakeUp(TakenUp taken_up) { taken_up_ = std::move(taken_up); }
  // In Restore():
  const TakenUp& taken_up() const { return taken_up_; }

 private:
  std::vector<Unfinished> unfinished_;
  TakenUp taken_up_;
};

}  // namespace penstock
