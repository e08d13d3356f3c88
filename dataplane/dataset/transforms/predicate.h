// SPDX-License-Identifier: Apache-2.0
// The function "predicate" of nodes that decide by a bool (Filter, TakeWhile).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/function.h"
#include "dataplane/dataset/graph.h"
#include "penstock/element.h"

namespace penstock {

// For inference of a node with the attribute "predicate": it takes what the
// input gives, gives a bool scalar, and all that it decides by is deterministic.
absl::Status CheckPredicate(const Attrs& attrs, const Dataset::Node& input);

// The node of that operation over `input`, whose predicate is `fn`.
NodePtr MakePredicateNode(const char* op, const MapFunction& fn, const Dataset& input);

class Predicate {
 public:
  // For a node with the attribute "predicate".
  static absl::StatusOr<Predicate> Create(const BuildSite& site);

  // Whether it is true for element number `number` of the input. The error names the node.
  absl::StatusOr<bool> HoldsFor(const Element& element, uint64_t number) const;

 private:
  Predicate(std::string name, std::shared_ptr<const BoundFunction> function, RandomKey random)
      : name_(std::move(name)), function_(std::move(function)), random_(random) {}

  std::string name_;
  std::shared_ptr<const BoundFunction> function_;
  RandomKey random_;
};

}  // namespace penstock
