// SPDX-License-Identifier: Apache-2.0
// A Dataset is a tree of nodes that never change. A dataset used twice (Zip, Concatenate) appears
// twice in the tree, and is read twice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/graph/kept_by_node.h"
#include "penstock/dataset.h"
#include "penstock/expr.h"
#include "penstock/spec.h"

namespace penstock {

using NodePtr = std::shared_ptr<const Dataset::Node>;

// Made only by MakeNode(); constant afterwards, except for `kept`.
struct Dataset::Node {
  std::string op;   // "Map"; a row of the registry
  int version = 0;  // of the operation; part of the fingerprint
  Attrs attrs;
  std::vector<NodePtr> inputs;  // followed by bodies, for nodes that have them (NodeKind::bodies)

  Spec spec;
  Cardinality cardinality = kUnknown;
  absl::Status status;       // the first error in this tree; names its node
  uint64_t fingerprint = 0;  // of the whole tree

  int size = 1;       // nodes in this tree, including itself and bodies
  int providers = 0;  // sources that can be divided, bodies excluded

  // Sources inside a DatasetFunction (RangeOf …) take an argument made from the element that opens
  // them. `arguments` has the spec that each source needs, in the order of the sources' nodes;
  // `open` has the expressions while the function is traced (see body.h). Both are empty for a
  // dataset that is not part of a function.
  std::vector<Spec> arguments;
  std::vector<Expr> open;

  mutable KeptByNode kept;
};

// Makes a Dataset from a node, and returns the node of a Dataset. Users of the library do neither.
class DatasetAccess {
 public:
  static const NodePtr& Node(const Dataset& dataset) { return dataset.node_; }
  static Dataset Make(NodePtr node) { return Dataset(std::move(node)); }
};
inline const NodePtr& NodeOf(const Dataset& dataset) {
  return DatasetAccess::Node(dataset);
}
inline Dataset DatasetOf(NodePtr node) {
  return DatasetAccess::Make(std::move(node));
}

// Larger trees are refused: recursion into them would be too deep.
inline constexpr int kMaxNodes = 1024;

// Returns the node of operation `op` over `inputs`, with the inferred spec and cardinality. Never
// fails: an error becomes the node's status, "Batch#3: batch_size …". The error of an input is
// passed on.
NodePtr MakeNode(std::string op, Attrs attrs, std::vector<NodePtr> inputs,
                 std::vector<Expr> open = {});

// Returns a node whose attributes could not be made (for example, from a lambda that cannot be
// traced).
NodePtr FailedNode(std::string op, std::vector<NodePtr> inputs, absl::Status status);

// Returns the dataset's status, or InvalidArgument if it was made inside a function and uses values
// of an outer element.
absl::Status CheckStandsAlone(const Dataset& dataset);

// Returns "Map#3". Nodes are numbered from 0 in topological order, inputs before their users.
// `number` is the node's number in the tree that the message is about.
std::string NodeName(const Dataset::Node& node, int number);

// Calls `visit(node, number)` for all nodes of the tree in topological order;
// `number` is what NodeName and BuildSite::number() use.
template <class Visit>
void VisitNodes(const Dataset::Node& root, Visit&& visit, int first_number = 0) {
  int number = first_number;
  for (const NodePtr& input : root.inputs) {
    VisitNodes(*input, visit, number);
    number += input->size;
  }
  visit(root, number);
}

}  // namespace penstock
