// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/position_versions.h"

#include <map>
#include <string>

#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"

namespace penstock {
namespace {

// The name under which the bytes around the nodes' positions are listed. No operation has it.
constexpr char kAroundNodes[] = "position";
// Numbers these versions from 1, like those of operations.
constexpr uint32_t NumberOf(uint32_t position) {
  return position - kFirstPosition + 1;
}

}  // namespace

std::vector<control::PositionVersion> PositionVersionsOf(const Dataset& dataset) {
  std::map<std::string, uint32_t> versions = {{kAroundNodes, NumberOf(kPositionVersion)}};
  VisitNodes(*NodeOf(dataset), [&](const Dataset::Node& node, int) {
    if (const NodeKind* kind = FindNodeKind(node.op))
      versions[node.op] = static_cast<uint32_t>(kind->position_version);
  });
  std::vector<control::PositionVersion> later;
  for (const auto& [operation, version] : versions) {
    if (version > 1) later.push_back({operation, version});
  }
  return later;
}

std::vector<control::PositionVersions> ReadablePositions() {
  std::vector<control::PositionVersions> readable = {
      {kAroundNodes, NumberOf(kOldestPosition), NumberOf(kPositionVersion)}};
  for (const NodeKind* kind : NodeKinds()) {
    readable.push_back({kind->op, static_cast<uint32_t>(kind->oldest_position),
                        static_cast<uint32_t>(kind->position_version)});
  }
  std::erase_if(readable, [](const control::PositionVersions& its) {
    return its.lowest == 1 && its.highest == 1;
  });
  return readable;
}

}  // namespace penstock
