// SPDX-License-Identifier: Apache-2.0
// The states of a reader that may still be committed. Reason to change: the rules that decide which
// states these are. A value, guarded by the reader's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "dataplane/client/session_state/state.h"

namespace penstock::client {

class SavedStates {
 public:
  // The maximum number of states that are kept because they may still be committed. States older
  // than these can no longer be committed.
  static constexpr size_t kMost = 1024;

  void Add(ReaderState state) {
    newest_ = std::max(newest_, state.save);
    states_[state.save] = std::move(state);
    if (states_.size() > kMost) states_.erase(states_.begin());
  }
  // Returns nullptr for a state that was never added, or is no longer kept.
  const ReaderState* Find(uint64_t save) const {
    const auto found = states_.find(save);
    return found == states_.end() ? nullptr : &found->second;
  }
  // Records that a node above holds elements that it has not passed on.
  void NoteReadAhead() { read_ahead_ = true; }
  bool read_ahead() const { return read_ahead_; }
  uint64_t newest() const { return newest_; }  // number of the newest state; 0: none
  // Returns true if state `save` or a later state is committed.
  bool IsCommitted(uint64_t save) const { return save <= committed_; }
  void OnCommitted(uint64_t save) {
    states_.erase(states_.begin(), states_.upper_bound(save));
    committed_ = std::max(committed_, save);
  }

 private:
  std::map<uint64_t, ReaderState> states_;  // by number
  uint64_t newest_ = 0;
  uint64_t committed_ = 0;
  bool read_ahead_ = false;
};

}  // namespace penstock::client
