// SPDX-License-Identifier: Apache-2.0
// One row per kind of node. A new source or transform is two files and one line
// in the table of its folder (sources/kinds.cc, transforms/kinds.cc).
// sources/range.{h,cc} is the example to follow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/graph.h"
#include "dataplane/dataset/node_iterator.h"
#include "dataplane/dataset/split.h"

namespace penstock {

// The alternatives of Attr, in its order; numbers on the wire, never reused.
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
  // Enters the fingerprint: another value gives other elements. False for what
  // only says how they are made or fetched.
  bool identifies = true;
};

// What inference finds about a node.
struct Inferred {
  Spec spec;
  Cardinality cardinality = kUnknown;
};

inline constexpr char kParamPrefix[] = "param.";

struct NodeKind {
  std::string op;
  int version = 1;  // raised when the same attributes would give other elements
  std::vector<AttrRule> attrs;
  int min_inputs = 1;
  int max_inputs = 1;
  // The last `bodies` inputs are not read as they stand but built anew for each
  // element (FlatMap, Interleave); their sources are no split providers.
  int bodies = 0;
  // The last `undivided` inputs before these are read whole by every partition
  // (the choice of ChooseFromDatasets): their sources are no split providers.
  int undivided = 0;
  // The inputs run somewhere else (Distribute): they are not built, and have
  // no split providers here.
  bool elsewhere = false;
  // Takes an argument from the element that opens it (RangeOf …): the attribute
  // "argument" is its Spec. Only inside a body.
  bool takes_argument = false;
  // Gives elements of its inputs (of its bodies, where it has some; of none that is undivided) as
  // they are, in the memory that they lie in (Take, Prefetch, Interleave). It may leave some out.
  bool hands_on = false;
  // Takes further attributes, under names that begin with kParamPrefix: what a
  // registered source or transform is given. They identify.
  bool takes_params = false;

  // Checks values of attributes and inputs' specs. Number and types of both are
  // checked already. InvalidArgument (OutOfRange …) names the argument; the
  // node's name is put in front of it by the caller.
  absl::StatusOr<Inferred> (*infer)(const Attrs& attrs, absl::Span<const NodePtr> inputs) = nullptr;
  // The iterator. Inputs are built by site.BuildInput(i).
  absl::StatusOr<std::unique_ptr<NodeIterator>> (*build)(const BuildSite& site) = nullptr;
  // For sources that can be divided: how. nullptr for all other nodes. The
  // plan's `node` is filled in by PlanSplits.
  absl::StatusOr<SplitProviderPlan> (*plan)(const Dataset::Node& node, Files& files) = nullptr;
  // What Explain() says of such a node beyond its attributes (how far back it
  // restores); nullptr: nothing.
  std::string (*explain_details)(const Dataset::Node& node) = nullptr;
};

// The row of that operation; nullptr for one not known. Any thread.
const NodeKind* FindNodeKind(std::string_view op);

// All rows, in the order of their names.
std::vector<const NodeKind*> NodeKinds();

// Adds a kind from a layer above (Distribute). Once per op: the second call of
// the same op changes nothing.
void RegisterNodeKind(NodeKind kind);

}  // namespace penstock
