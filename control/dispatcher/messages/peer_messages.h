// SPDX-License-Identifier: Apache-2.0
// Makes messages to clients and workers of what the state has and the protocol decided. Changes
// with what these messages contain. Pure.
#pragma once

#include "control/protocol/client_messages.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/worker_messages.h"
#include "control/state/state.h"

namespace penstock::control {

PlacedPartition PlacedBy(const State& state, IterationId iteration, PartitionId partition,
                         Placement placement);
// Without the times of the session.
Welcome WelcomeOf(const State& state, const IterationState& iteration,
                  const protocol::Welcome& welcome);
Assign AssignOf(const State& state, const IterationState& iteration,
                const protocol::Assign& assign);
// `context`: has the ends of the partitions of an open iteration in order kDeterministic; else
// nullptr.
Membership MembershipOf(const State& state, const IterationState& iteration,
                        const protocol::IterationContext* context, uint64_t version);

}  // namespace penstock::control
