// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/state_sections.h"

#include <limits>

#include "include/status_macros.h"

namespace penstock {

void Write(const StateSections& sections, StateWriter& writer) {
  writer.WriteUnsigned(sections.size());
  for (const auto& [node, section] : sections) {
    writer.WriteInt(node);
    writer.WriteInt(section.at);
    writer.WriteString(section.bytes);
  }
}

absl::StatusOr<StateSections> ReadStateSections(StateReader& reader) {
  StateSections sections;
  ASSIGN_OR_RETURN(const uint64_t count, reader.ReadUnsigned());
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const int64_t node,
                     reader.ReadIntIn(0, std::numeric_limits<int>::max(), "a node number"));
    StateSection& section = sections[static_cast<int>(node)];
    ASSIGN_OR_RETURN(section.at, reader.ReadInt());
    ASSIGN_OR_RETURN(const std::string_view bytes, reader.ReadString());
    section.bytes = bytes;
  }
  return sections;
}

}  // namespace penstock
