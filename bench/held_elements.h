// SPDX-License-Identifier: Apache-2.0
// A dataset of elements of which each is held for as long as is said before it is made:
// sources of a known rate, which use no processor.
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

// x[1] bytes, x[0] ns after they were asked for.
inline absl::Status MakeHeld(CallContext& call) {
  Sleep(static_cast<double>(call.inputs()[0].scalar<int64_t>()) / 1e9);
  return call.Output(0, {call.inputs()[1].scalar<int64_t>()}).status();
}
PENSTOCK_REGISTER_MAP("bench.held", 1, Dense(kUInt8, {kUnknownDim}), MakeHeld);

// Without end, one at a time in each partition.
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
