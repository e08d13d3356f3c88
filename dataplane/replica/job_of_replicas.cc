// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/job_of_replicas.h"

#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "dataplane/client/distribute_options.h"
#include "dataplane/dataset/graph/graph.h"

namespace penstock::replica {
namespace {

using Kind = JobOfReplicas::Kind;

// Returns a copy of the tree, with the attributes of all Distribute nodes changed by `change`.
NodePtr Changed(const NodePtr& node, absl::FunctionRef<void(Attrs&)> change) {
  if (node->op == "Distribute") {
    Attrs attrs = node->attrs;
    change(attrs);
    return MakeNode(node->op, std::move(attrs), node->inputs, node->open);
  }
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs) inputs.push_back(Changed(input, change));
  if (inputs == node->inputs) return node;
  return MakeNode(node->op, node->attrs, std::move(inputs), node->open);
}

}  // namespace

absl::StatusOr<JobOfReplicas> JobOf(const Dataset& dataset) {
  JobOfReplicas job;
  absl::Status status;
  VisitNodes(*NodeOf(dataset), [&](const Dataset::Node& node, int number) {
    if (node.op != "Distribute") return;
    const absl::StatusOr<DistributeOptions> options = client::FromAttrs(node.attrs);
    if (!options.ok()) {
      status.Update(options.status());
      return;
    }
    const auto* order = std::get_if<DeterministicOrder>(&options->delivery);
    if (order != nullptr && order->num_consumers > 0) {
      status.Update(absl::InvalidArgumentError(absl::StrCat(
          NodeName(node, number),
          " has order kDeterministic and num_consumers: its consumers may get different numbers of "
          "elements, but all replicas of a group make the same number of steps; leave out order")));
      return;
    }
    const auto* rounds = std::get_if<CoordinatedRounds>(&options->delivery);
    const Kind kind = rounds != nullptr           ? Kind::kCoordinated
                      : options->job_name.empty() ? Kind::kAnonymous
                                                  : Kind::kNamed;
    const int64_t consumers = rounds != nullptr ? rounds->num_consumers : 0;
    const std::string name = NodeName(node, number);
    if (job.kind != Kind::kNone && (job.kind != kind || job.num_consumers != consumers)) {
      status.Update(absl::InvalidArgumentError(absl::StrCat(
          name, " and ", job.node,
          " must both have the same number of coordinated consumers, both have a job_name, or both "
          "have neither, because one group of replicas reads them")));
    }
    job = {kind, consumers, name, options->job_name};
  });
  if (!status.ok()) return status;
  return job;
}

Dataset AsConsumer(const Dataset& dataset, int64_t consumer,
                   std::optional<RemainderPolicy> policy) {
  return DatasetOf(Changed(NodeOf(dataset), [&](Attrs& attrs) {
    attrs["consumer_index"] = consumer;
    auto& of_node = std::get<int64_t>(attrs.at("rests"));
    if (policy.has_value() && of_node == static_cast<int64_t>(RemainderPolicy::kPad))
      of_node = static_cast<int64_t>(*policy);
  }));
}

Dataset AsReader(const Dataset& dataset) {
  return DatasetOf(Changed(NodeOf(dataset), [](Attrs&) {}));
}

}  // namespace penstock::replica
