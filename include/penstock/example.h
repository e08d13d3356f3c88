// SPDX-License-Identifier: Apache-2.0
// Features of a tf.train.Example that need not be there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "penstock/expr.h"
#include "penstock/spec.h"

namespace penstock {

struct ExampleFeature {
  std::string name;
  TensorSpec spec;  // dense: string, float32, bool or integers; the first dimension may be unknown
  // What stands where an Example lacks it, or has it without a list: of the
  // spec's dtype and shape, of any length where that is unknown. Not given: an
  // Example that lacks it is InvalidArgument.
  std::optional<Expr> otherwise = std::nullopt;
};

// As ParseExampleProto (penstock/map.h), with defaults.
Expr ParseExampleOr(const Expr& serialized, std::vector<ExampleFeature> features);

}  // namespace penstock
