// SPDX-License-Identifier: Apache-2.0
// One row per kind of node. A new source or transform needs a file and a line in the table of its
// folder (sources/kinds.cc, transforms/kinds.cc). sources/range.cc is the example to follow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/split.h"

namespace penstock {

class BuildSite;     // dataplane/dataset/engine/build_site.h
class NodeIterator;  // dataplane/dataset/engine/node_iterator.h

// The alternatives of Attr, in the same order. The numbers are on the wire and never reused.
enum class AttrType : uint8_t {
  kInt = 0,
  kDouble = 1,
  kBool = 2,
  kString = 3,
  kDType = 4,
  kInts = 5,
  kDoubles = 6,
  kStrings = 7,
  kSpec = 8,
  kFunction = 9,
  kElement = 10,
};
std::string_view Name(AttrType type);

struct AttrRule {
  std::string name;
  AttrType type;
  bool required = true;
  // Part of the fingerprint, because different values produce different elements. False for
  // attributes that only determine how elements are made or fetched.
  bool identifies = true;
};

// The results of inference for a node.
struct Inferred {
  Spec spec;
  Cardinality cardinality = kUnknown;
};

inline constexpr char kParamPrefix[] = "param.";

struct NodeKind {
  std::string op;
  int version = 1;  // raised when equal attributes would produce different elements
  // The version of the positions that the node's iterator saves, raised when their bytes change,
  // and the oldest version that it restores, at most the one that the release before saves.
  // Restore() tells them apart by the bytes.
  int position_version = 1;
  int oldest_position = 1;
  std::vector<AttrRule> attrs;
  int min_inputs = 1;
  int max_inputs = 1;
  // The last `bodies` inputs are built again for each element (FlatMap, Interleave) instead of
  // being read. Their sources are not split providers.
  int bodies = 0;
  // The last `undivided` inputs before the bodies are read as a whole by every partition (the
  // choice dataset of ChooseFromDatasets). Their sources are not split providers.
  int undivided = 0;
  // The inputs run elsewhere (Distribute): they are not built, and have no split providers here.
  bool elsewhere = false;
  // Takes an argument from the element that opens it (RangeOf …); the attribute "argument" is the
  // argument's Spec. Such a node occurs only inside a body.
  bool takes_argument = false;
  // Returns elements of its inputs unchanged, in the inputs' memory (Take, Prefetch, Interleave).
  // The node may skip elements. A node with bodies returns only elements of the bodies. Elements of
  // undivided inputs are never returned.
  bool hands_on = false;
  // Takes further attributes, under names that begin with kParamPrefix: the params of a registered
  // source or transform. They enter the fingerprint.
  bool takes_params = false;

  // Checks the values of attributes and the specs of inputs. The number and types of attributes and
  // inputs have already been checked. InvalidArgument (OutOfRange …) names the argument; the caller
  // puts the node's name in front.
  absl::StatusOr<Inferred> (*infer)(const Attrs& attrs, absl::Span<const NodePtr> inputs) = nullptr;
  // Builds the iterator, and the iterators of its inputs with site.BuildInput(i).
  absl::StatusOr<std::unique_ptr<NodeIterator>> (*build)(const BuildSite& site) = nullptr;
  // Plans the splits of a source that can be divided; nullptr for all other nodes. PlanSplits fills
  // in the plan's `node`.
  absl::StatusOr<SplitProviderPlan> (*plan)(const Dataset::Node& node, Files& files) = nullptr;
  // Returns what Explain() shows for the node in addition to its attributes, such as how far back a
  // restored iterator reads; nullptr: nothing.
  std::string (*explain_details)(const Dataset::Node& node) = nullptr;
};

// Returns the kinds of nodes that the library has itself. Defined outside this folder
// (built_in_kinds.cc), because this folder depends on neither sources nor transforms.
std::vector<NodeKind> BuiltInKinds();

// Returns the row of operation `op`; nullptr if there is none. Any thread.
const NodeKind* FindNodeKind(std::string_view op);

// Returns all rows, sorted by name.
std::vector<const NodeKind*> NodeKinds();

// Adds a kind from a layer above (Distribute). A second call for the same op changes nothing.
void RegisterNodeKind(NodeKind kind);

}  // namespace penstock
