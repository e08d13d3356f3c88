// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/traced_function.h"

#include <utility>

#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/engine/element_views.h"
#include "include/status_macros.h"

namespace penstock::replica {

absl::StatusOr<TracedFunction> TracedFunction::Of(const MapFunction& fn, const Spec& input) {
  ASSIGN_OR_RETURN(std::shared_ptr<const FunctionDef> def, Trace(fn, input));
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundFunction> bound, BoundFunction::Bind(std::move(def)));
  return TracedFunction(std::move(bound));
}

absl::StatusOr<Element> TracedFunction::operator()(const Element& element, const RandomKey& random,
                                                   Pool& pool) const {
  ElementSink sink(pool, output());
  RETURN_IF_ERROR(bound_->Run(ElementTensors(element), random, sink));
  return std::move(sink).Finish();
}

}  // namespace penstock::replica
