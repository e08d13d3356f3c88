// SPDX-License-Identifier: Apache-2.0
// Pairs the reports of clients and workers, and the dispatcher's status, with their Protobuf
// messages. For *_proto.cc files only.
#pragma once

#include "control/proto/convert.h"

namespace penstock::control {

WIRE_STRUCT(FilledElements, wire::FilledElements, in_place, no_slot, for_another, elsewhere);
WIRE_PAIR(LinkCounts, wire::LinkCounts) {
  WIRE_FIELDS(worker, protocol, reason, open, elements, bytes, credits, waits, down);
  WIRE_NANOSECONDS(waited_until_received, waited_after_received);
  WIRE_FIELD_IF(value.filled != FilledElements(), filled);
}
WIRE_PAIR(StepCounts, wire::StepCounts) {
  WIRE_FIELDS(elements);
  WIRE_NANOSECONDS(own, waited);
}
WIRE_PAIR(IterationWork, wire::IterationWork) {
  WIRE_FIELDS(iteration, elements, partitions);
  WIRE_NANOSECONDS(busy);
}
WIRE_PAIR(NodeStats, wire::NodeWork) {
  WIRE_FIELDS(node, elements, bytes, parallelism, ahead);
  WIRE_NANOSECONDS(busy, waiting);
}
WIRE_PAIR(DatasetWork, wire::DatasetWork) {
  WIRE_FIELDS(dataset_id);
  WIRE_FIELD_AS(stats.nodes, nodes);
}

}  // namespace penstock::control
