// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/split.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// More splits would fill the journal for little gain: 1,024 parts of equal size keep a hundred
// workers within 10 % of each other at the end.
constexpr int64_t kMaxSplits = 1024;

// Appends the plans of this tree's sources, in the order of their numbers. `number` is the number
// of the tree's last node.
absl::Status AddPlans(const Dataset::Node& node, int number, Files& files,
                      std::vector<SplitProviderPlan>& plans) {
  const NodeKind& kind = *FindNodeKind(node.op);
  if (kind.plan != nullptr) {
    ASSIGN_OR_RETURN(SplitProviderPlan plan, kind.plan(node, files));
    plan.node = NodeName(node, number);
    plans.push_back(std::move(plan));
    return absl::OkStatus();
  }
  if (kind.elsewhere) return absl::OkStatus();
  int input_number = number - node.size;
  for (size_t i = 0; i + kind.bodies + kind.undivided < node.inputs.size(); ++i) {
    input_number += node.inputs[i]->size;
    RETURN_IF_ERROR(AddPlans(*node.inputs[i], input_number, files, plans));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SplitPlan> PlanSplits(const Dataset& dataset, Files& files) {
  RETURN_IF_ERROR(CheckStandsAlone(dataset));
  SplitPlan plan;
  RETURN_IF_ERROR(AddPlans(*NodeOf(dataset), NodeOf(dataset)->size - 1, files, plan.providers));
  return plan;
}

Span64 SplitOf(int64_t count, int64_t splits, int64_t n) {
  const int64_t size = count / splits;
  const int64_t larger = count % splits;  // the first `larger` splits have one more element
  const int64_t begin = n * size + std::min(n, larger);
  return {begin, begin + size + (n < larger ? 1 : 0)};
}

int64_t SplitCountFor(int64_t count) {
  return std::min(count, kMaxSplits);
}

}  // namespace penstock
