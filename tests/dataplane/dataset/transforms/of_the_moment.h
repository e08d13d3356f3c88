// SPDX-License-Identifier: Apache-2.0
// A function that is registered as not deterministic; no test calls it.
#pragma once

#include "penstock/expr.h"
#include "penstock/register.h"

namespace penstock {

inline const bool kOfTheMomentRegistered =
    RegisterMap("test.of_the_moment",
                {.output_spec = [](const Spec& input) -> absl::StatusOr<Spec> { return input; },
                 .call = [](CallContext&) { return absl::OkStatus(); },
                 .deterministic = false})
        .ok();

inline Expr OfTheMoment(const Expr& x) {
  return Call("test.of_the_moment", x);
}

}  // namespace penstock
