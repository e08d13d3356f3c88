// SPDX-License-Identifier: Apache-2.0
// The function "predicate" of nodes that decide by a bool (Filter, TakeWhile).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/graph.h"
#include "penstock/element.h"

namespace penstock {

// Checks a node with the attribute "predicate" at inference. The function must take the input's
// elements and return a bool scalar. The function and all of the input must be deterministic.
absl::Status CheckPredicate(const Attrs& attrs, const Dataset::Node& input);

// Makes a node of operation `op` over `input` with the predicate `fn`.
NodePtr MakePredicateNode(const char* op, const MapFunction& fn, const Dataset& input);

class Predicate {
 public:
  // Makes the predicate of a node with the attribute "predicate".
  static absl::StatusOr<Predicate> Create(const BuildSite& site);

  // Returns the predicate's value for element `number` of the input. The error names the node.
  absl::StatusOr<bool> HoldsFor(const Element& element, uint64_t number) const;

 private:
  Predicate(std::string name, std::shared_ptr<const BoundFunction> function, RandomKey random)
      : name_(std::move(name)), function_(std::move(function)), random_(random) {}

  std::string name_;
  std::shared_ptr<const BoundFunction> function_;
  RandomKey random_;
};

}  // namespace penstock
