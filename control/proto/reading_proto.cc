// SPDX-License-Identifier: Apache-2.0
// Converts saved readings and restored jobs to and from their wire form.
#include "control/proto/reading_proto.h"

#include <algorithm>

#include "control/proto/convert.h"

namespace penstock::control {

WIRE_PAIR(SavedRepetition::Position, wire::SavedRepetition::Position) {
  WIRE_FIELDS(index, bytes);
  coder.Require(value.index >= 0, "a saved bookmark has a negative index");
}
WIRE_PAIR(SavedRepetition::Partition, wire::SavedRepetition::Partition) {
  WIRE_FIELDS(committed_below, given, bookmarks);
  coder.Require(value.committed_below >= 0, "committed_below is negative");
}
WIRE_PAIR(SavedRepetition::Reader, wire::SavedRepetition::Reader) {
  WIRE_FIELDS(client, gone, committed_count, committed);
  if constexpr (Coder::kEncodes) {
    message.set_consumer(value.consumer + 1);
  } else {
    value.consumer = std::max<int64_t>(message.consumer(), 0) - 1;
  }
}
WIRE_PAIR(SavedRepetition, wire::SavedRepetition) {
  WIRE_FIELDS(repetition, version, finished, num_consumers, positions, leads, partitions,
              passes_over, readers);
  WIRE_FIELD_IF(value.division.count > 0, division);
}

WIRE_PAIR(Restoration::Partition, wire::Restoration::Partition) {
  WIRE_FIELDS(committed, given, bookmarks, lead);
  coder.Require(value.lead >= 0, "lead is negative");
}
WIRE_PAIR(Restoration::Repetition, wire::Restoration::Repetition) {
  WIRE_FIELDS(number, finished, partitions, passes_over);
  WIRE_FIELD_IF(value.division.count > 0, division);
}
WIRE_STRUCT(Restoration, wire::Restoration, name, repetitions);
WIRE_STRUCT(RestoreJobRequest, wire::RestoreJobRequest, job, restoration);

WIRE_STRUCT(GetReadingRequest, wire::GetReadingRequest, job, repetition, heard);

WIRE_CONVERTERS(GetReadingRequest);
WIRE_CONVERTERS(SavedRepetition);
WIRE_CONVERTERS(RestoreJobRequest);

}  // namespace penstock::control
