// SPDX-License-Identifier: Apache-2.0
// What a Dataset is made of: a tree of nodes that never change. A dataset used
// twice (Zip, Concatenate) stands twice in the tree: it is read twice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/kept_by_node.h"
#include "penstock/dataset.h"
#include "penstock/expr.h"
#include "penstock/spec.h"

namespace penstock {

using NodePtr = std::shared_ptr<const Dataset::Node>;

// Made by MakeNode() alone; constant afterwards, but for what is `kept`.
struct Dataset::Node {
  std::string op;   // "Map"; a row of the registry
  int version = 0;  // of the operation; part of the fingerprint
  Attrs attrs;
  std::vector<NodePtr> inputs;  // then bodies, for nodes that have them (NodeKind::bodies)

  Spec spec;
  Cardinality cardinality = kUnknown;
  absl::Status status;       // the first mistake in this tree, naming its node
  uint64_t fingerprint = 0;  // of the whole tree

  int size = 1;       // nodes in this tree, itself and bodies included
  int providers = 0;  // sources that can be divided, bodies excluded

  // Sources inside a DatasetFunction (RangeOf …) take an argument made of the
  // element that opens them: what each needs, in the order of their nodes, and
  // while the function is traced, the expressions (see body.h). Both are empty
  // for a dataset that stands alone.
  std::vector<Spec> arguments;
  std::vector<Expr> open;

  mutable KeptByNode kept;
};

// Trees larger than this are refused: they would be recursed into too deeply.
inline constexpr int kMaxNodes = 1024;

// The node of that operation over `inputs`, with spec and cardinality inferred.
// Never fails: a mistake becomes the node's status, "Batch#3: batch_size …";
// the mistake of an input is handed on.
NodePtr MakeNode(std::string op, Attrs attrs, std::vector<NodePtr> inputs,
                 std::vector<Expr> open = {});

// A node whose attributes could not be made (a lambda that does not trace).
NodePtr FailedNode(std::string op, std::vector<NodePtr> inputs, absl::Status status);

// The dataset's status, and InvalidArgument for one that was made inside a
// function and takes values of an outer element.
absl::Status CheckStandsAlone(const Dataset& dataset);

// "Map#3": nodes are numbered in topological order, inputs before their users,
// from 0. `number` in the tree of which the message speaks.
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
