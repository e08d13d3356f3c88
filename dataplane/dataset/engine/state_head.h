// SPDX-License-Identifier: Apache-2.0
// The beginning of an iterator's state: everything except the sections and the nodes' position.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "penstock/iterator.h"

namespace penstock {

struct StateHead {
  // Identifies the iterator and its Save() for Commit().
  uint64_t origin = 0;
  uint64_t save = 0;
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t step = 0;  // elements delivered
};

std::string EncodeStateHead(const StateHead& head);

// Returns the state without its first four bytes, which distinguish a state from other bytes.
std::string_view AfterMagic(const State& state);
// Reads the head from `reader`, which begins at AfterMagic(state). InvalidArgument if `state` is
// not an iterator's state, or is of a different version.
absl::StatusOr<StateHead> ReadStateHead(StateReader& reader, const State& state);

}  // namespace penstock
