// SPDX-License-Identifier: Apache-2.0
// What happens in a simulated run, as a hash and, if asked for, as text. Two runs of one seed have
// the same hash.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "absl/time/time.h"

namespace penstock::simulator {

// Used on one thread.
class Trace {
 public:
  // `out`: gets a line for each entry; nullptr: none. Must outlive the trace.
  explicit Trace(std::FILE* out = nullptr) : out_(out) {}

  // `kind`: a word, such as "switch" or "message". `a` and `b`: numbers of a process and a fiber,
  // or what else tells entries of the kind apart.
  void Add(absl::Time when, std::string_view kind, uint64_t a, uint64_t b,
           std::string_view bytes = {});
  uint64_t hash() const { return hash_; }
  int64_t entries() const { return entries_; }

 private:
  std::FILE* const out_;
  uint64_t hash_ = 0xcbf29ce484222325;
  int64_t entries_ = 0;
};

}  // namespace penstock::simulator
