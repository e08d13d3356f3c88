// SPDX-License-Identifier: Apache-2.0
// Parts of a state other than the nodes' positions. They can be read without the nodes, to restore
// the states of all ranks (Distribute).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/graph/state_bytes.h"

namespace penstock {

struct StateSection {
  // How far the node had read. If there are several states, the positions are taken from the state
  // whose nodes had read the least.
  int64_t at = 0;
  std::string bytes;
};
using StateSections = std::map<int, StateSection>;  // by the node's number

void Write(const StateSections& sections, StateWriter& writer);
absl::StatusOr<StateSections> ReadStateSections(StateReader& reader);

// Connects a running dataset and its nodes while a state is saved or restored. One thread at a
// time, as for the nodes' Save() and Restore().
class StateExchange {
 public:
  // Makes a section's bytes. May wait, even while elements are being read. Called before the
  // running dataset ends.
  using Finish = std::function<absl::StatusOr<std::string>()>;
  struct Unfinished {
    int node;
    int64_t at;
    Finish finish;
  };

  // Called in Save().
  void Put(int node, int64_t at, Finish finish) {
    unfinished_.push_back({node, at, std::move(finish)});
  }
  // Called after Save().
  std::vector<Unfinished> TakeUnfinished() { return std::exchange(unfinished_, {}); }

  // Called before Restore(), with the sections of the restored state, or of the states of all
  // ranks.
  struct TakenUp {
    std::vector<StateSections> of;  // of one state, or of one state per rank
    bool all_ranks = false;
    uint64_t name = 0;   // hash of the states and run_id; equal for all ranks of one launch
    std::string run_id;  // of the launch
  };
  void TakeUp(TakenUp taken_up) { taken_up_ = std::move(taken_up); }
  // Called in Restore().
  const TakenUp& taken_up() const { return taken_up_; }

 private:
  std::vector<Unfinished> unfinished_;
  TakenUp taken_up_;
};

}  // namespace penstock
