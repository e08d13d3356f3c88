// SPDX-License-Identifier: Apache-2.0
// Parses a tf.train.Example with default values for missing features.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "penstock/expr.h"
#include "penstock/spec.h"

#pragma GCC visibility push(default)
namespace penstock {

struct ExampleFeature {
  std::string name;
  TensorSpec spec;  // dense: string, float32, bool or integers; the first dimension may be unknown
  // The value to use if an Example lacks the feature, or has it without a list of values. It must
  // have the spec's dtype and shape, with any length in an unknown first dimension. Not given:
  // InvalidArgument for an Example without the feature.
  std::optional<Expr> otherwise = std::nullopt;
};

// Like ParseExampleProto (penstock/map.h), with defaults.
Expr ParseExampleOr(const Expr& serialized, std::vector<ExampleFeature> features);

}  // namespace penstock
#pragma GCC visibility pop
