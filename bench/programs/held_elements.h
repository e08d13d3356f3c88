// SPDX-License-Identifier: Apache-2.0
// A dataset whose elements are each held for a given time before they are made: a source of a known
// rate that uses no CPU.
#pragma once

#include <time.h>

#include <cstdint>

#include "penstock/penstock.h"

namespace penstock::bench {

inline void Sleep(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const timespec left{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  ::nanosleep(&left, nullptr);
}

// Makes x[1] bytes, x[0] ns after the call.
inline absl::Status MakeHeld(CallContext& call) {
  Sleep(static_cast<double>(call.inputs()[0].scalar<int64_t>()) / 1e9);
  return call.Output(0, {call.inputs()[1].scalar<int64_t>()}).status();
}
PENSTOCK_REGISTER_MAP("bench.held", 1, Dense(kUInt8, {kUnknownDim}), MakeHeld);

// Returns an endless dataset that makes one element at a time in each partition.
inline Dataset HeldElements(int64_t bytes, double seconds) {
  const auto ns = static_cast<int64_t>(seconds * 1e9);
  return Dataset::Range(int64_t{1} << 40)
      .Map(
          [=](auto) {
            return Call("bench.held", Tuple({Expr(ns), Expr(bytes)}));
          },
          {.num_parallel_calls = 1});
}

}  // namespace penstock::bench
