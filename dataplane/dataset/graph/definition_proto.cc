// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "control/proto/dataset.pb.h"
#include "dataplane/dataset/graph/attr_proto.h"
#include "dataplane/dataset/graph/definition.h"
#include "dataplane/dataset/graph/definition_size.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr uint32_t kDefinitionVersion = 1;

// Builds the node that a message describes. The node takes the last of the trees read so far as its
// inputs. REQUIRES: there are enough trees. Does not yet compare the node with the results that the
// message states.
absl::StatusOr<NodePtr> ReadNode(const dataset::wire::Node& from, std::vector<NodePtr>& trees) {
  const NodeKind* kind = FindNodeKind(from.op());
  if (kind == nullptr)
    return absl::InvalidArgumentError("this program has no operation of this name");
  if (from.version() != static_cast<uint32_t>(kind->version)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the definition needs version ", from.version(),
                     " of the operation, but this program has version ", kind->version));
  }
  ASSIGN_OR_RETURN(Attrs attrs, AttrsFromProto(from.attrs()));
  const auto first = trees.end() - from.inputs();
  std::vector<NodePtr> inputs(std::make_move_iterator(first), std::make_move_iterator(trees.end()));
  trees.erase(first, trees.end());
  return MakeNode(from.op(), std::move(attrs), std::move(inputs));
}

absl::Status AtWireNode(const dataset::wire::Node& node, int number, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(absl::CHexEscape(node.op()), "#", number, ": ",
                                                  status.message()));
}

}  // namespace

absl::StatusOr<std::string> Serialize(const Dataset& dataset) {
  RETURN_IF_ERROR(CheckStandsAlone(dataset));
  dataset::wire::Dataset definition;
  definition.set_version(kDefinitionVersion);
  VisitNodes(*NodeOf(dataset), [&](const Dataset::Node& node, int) {
    dataset::wire::Node& message = *definition.add_nodes();
    message.set_op(node.op);
    message.set_version(static_cast<uint32_t>(node.version));
    for (const auto& [name, value] : node.attrs) ToProto(name, value, *message.add_attrs());
    message.set_inputs(static_cast<uint32_t>(node.inputs.size()));
    message.set_spec_fingerprint(node.spec.fingerprint());
  });
  if (definition.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the definition takes ", definition.ByteSizeLong(),
                     " bytes; put constants of more than 2 GiB into files"));
  }
  std::string bytes = definition.SerializeAsString();
  RETURN_IF_ERROR(CheckSize(bytes));  // so that the program that made the dataset gets the error
  return bytes;
}

absl::StatusOr<Dataset> ParseDataset(std::string_view bytes) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return absl::InvalidArgumentError("the bytes are not a dataset definition");
  RETURN_IF_ERROR(CheckSize(bytes));
  dataset::wire::Dataset definition;
  if (!definition.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::InvalidArgumentError("the bytes are not a dataset definition");
  if (definition.version() != kDefinitionVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the definition has version ",
                                                   definition.version(), "; this program reads ",
                                                   kDefinitionVersion));
  }
  if (definition.nodes_size() > kMaxNodes)
    return absl::InvalidArgumentError(
        absl::StrCat("the definition has more than ", kMaxNodes, " nodes"));
  std::vector<NodePtr> trees;
  for (int number = 0; number < definition.nodes_size(); ++number) {
    const dataset::wire::Node& message = definition.nodes(number);
    if (message.inputs() > trees.size())
      return AtWireNode(message, number,
                        absl::InvalidArgumentError("takes inputs that do not exist"));
    absl::StatusOr<NodePtr> node = ReadNode(message, trees);
    if (!node.ok()) return AtWireNode(message, number, node.status());
    RETURN_IF_ERROR((*node)->status);
    if ((*node)->spec.fingerprint() != message.spec_fingerprint()) {
      return AtWireNode(
          message, number,
          absl::InvalidArgumentError(absl::StrCat(
              "produces elements of ", (*node)->spec.ToString(),
              ", but was defined with different ones; the definition was altered, or comes "
              "from a program whose operations differ")));
    }
    trees.push_back(*std::move(node));
  }
  if (trees.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the definition contains ", trees.size(), " datasets instead of one"));
  }
  Dataset dataset = DatasetOf(std::move(trees.front()));
  RETURN_IF_ERROR(CheckStandsAlone(dataset));
  return dataset;
}

}  // namespace penstock
