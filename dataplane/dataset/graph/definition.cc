// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/definition.h"

#include <algorithm>

#include "dataplane/dataset/graph/graph.h"

namespace penstock {

std::vector<NodeSummary> Summarize(const Dataset& dataset) {
  std::vector<NodeSummary> summary;
  VisitNodes(*NodeOf(dataset), [&](const Dataset::Node& node, int number) {
    summary.push_back({NodeName(node, number), node.fingerprint});
  });
  return summary;
}

bool SurelyEnds(const Dataset& dataset) {
  if (dataset.cardinality() != kUnknown) return dataset.cardinality() != kInfinite;
  bool ends = true;
  VisitNodes(*NodeOf(dataset), [&](const Dataset::Node& node, int) {
    const bool of_user = node.op == "FromGenerator" || node.op.starts_with("Registered");
    ends &= node.cardinality != kInfinite && !(of_user && node.cardinality == kUnknown);
  });
  return ends;
}

std::string FirstDifference(const std::vector<NodeSummary>& a, const std::vector<NodeSummary>& b) {
  const size_t both = std::min(a.size(), b.size());
  for (size_t i = 0; i < both; ++i)
    if (a[i].fingerprint != b[i].fingerprint) return a[i].name;
  if (a.size() == b.size()) return "";
  return a.size() > both ? a[both].name : b[both].name;
}

}  // namespace penstock
