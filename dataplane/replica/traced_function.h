// SPDX-License-Identifier: Apache-2.0
// A traced function that is applied to a replica's element, outside of any dataset.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/map.h"

namespace penstock::replica {

// A value type. Any thread may call the function.
class TracedFunction {
 public:
  // Returns InvalidArgument if the function does not take elements of `input`.
  static absl::StatusOr<TracedFunction> Of(const MapFunction& fn, const Spec& input);

  const Spec& output() const { return bound_->def().output; }
  // Applies the function. The result is made in a slot of `pool`.
  absl::StatusOr<Element> operator()(const Element& element, const RandomKey& random,
                                     Pool& pool = DefaultPool()) const;

 private:
  explicit TracedFunction(std::shared_ptr<const BoundFunction> bound) : bound_(std::move(bound)) {}

  std::shared_ptr<const BoundFunction> bound_;
};

}  // namespace penstock::replica
