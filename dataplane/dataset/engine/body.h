// SPDX-License-Identifier: Apache-2.0
// Datasets inside functions (FlatMap, Interleave). The graph of the dataset that the function
// returns is the node's second input, called its *body*. The node's attribute "function" is a
// traced function: from the outer element, it computes the values that the body's sources need.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/graph.h"
#include "penstock/element.h"
#include "penstock/map.h"

namespace penstock {

// The result of tracing a DatasetFunction.
struct Body {
  NodePtr root;
  // Maps the outer element to a tuple with one member per source that takes an argument, in the
  // order of root->arguments.
  std::shared_ptr<const FunctionDef> arguments;
};

// Calls `fn` with a symbolic element of the spec `input`. Returns the error of the dataset that
// `fn` returns, if it has one, or InvalidArgument if `fn` cannot be traced.
absl::StatusOr<Body> TraceBody(const DatasetFunction& fn, const Spec& input);

// Checks that `arguments` takes the spec `outer` and returns the values that the sources of `body`
// need. Called when the spec of a node {outer, body} with the attribute "function" is inferred.
absl::Status CheckBody(const FunctionDef& arguments, const Spec& outer, const Dataset::Node& body);

// Opens a body for each outer element.
class BodyOpener {
 public:
  // REQUIRES: the site's node is {outer, body} with the attribute "function".
  static absl::StatusOr<BodyOpener> Create(const BuildSite& site);

  // Returns the body's iterator for `outer`, which is element number `element` of the outer
  // dataset. Reads `outer` only during the call.
  absl::StatusOr<std::unique_ptr<NodeIterator>> Open(const Element& outer, uint64_t element) const;

 private:
  BodyOpener(BuildSite site, std::shared_ptr<const BoundFunction> function)
      : site_(std::move(site)), function_(std::move(function)) {}

  BuildSite site_;
  std::shared_ptr<const BoundFunction> function_;
};

}  // namespace penstock
