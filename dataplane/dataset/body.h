// SPDX-License-Identifier: Apache-2.0
// Datasets inside functions (FlatMap, Interleave): the graph that the function
// returned is a node's second input, its *body*; what the body's sources need
// of the outer element is one traced function, the attribute "function".
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/function.h"
#include "dataplane/dataset/graph.h"
#include "penstock/element.h"
#include "penstock/map.h"

namespace penstock {

// What a DatasetFunction became.
struct Body {
  NodePtr root;
  // From the outer element to a tuple: one member per source with an argument,
  // in the order of root->arguments.
  std::shared_ptr<const FunctionDef> arguments;
};

// Calls `fn` with a symbolic element of `input`. The error of the dataset it
// returns, or InvalidArgument for a function that does not trace.
absl::StatusOr<Body> TraceBody(const DatasetFunction& fn, const Spec& input);

// For inference of a node {outer, body} with the attribute "function": the
// function takes the outer spec and gives what the body's sources need.
absl::Status CheckBody(const FunctionDef& arguments, const Spec& outer, const Dataset::Node& body);

// Opens a body for one outer element after the other.
class BodyOpener {
 public:
  // For a node {outer, body} with the attribute "function".
  static absl::StatusOr<BodyOpener> Create(const BuildSite& site);

  // The body's iterator for `outer`, which is number `element` of its dataset.
  // Needs `outer` only during the call.
  absl::StatusOr<std::unique_ptr<NodeIterator>> Open(const Element& outer, uint64_t element) const;

 private:
  BodyOpener(BuildSite site, std::shared_ptr<const BoundFunction> function)
      : site_(std::move(site)), function_(std::move(function)) {}

  BuildSite site_;
  std::shared_ptr<const BoundFunction> function_;
};

}  // namespace penstock
