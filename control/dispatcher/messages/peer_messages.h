// SPDX-License-Identifier: Apache-2.0
// Makes messages to clients and workers from the state and the decisions of the protocol. Pure
// functions. Their one reason to change: the contents of these messages.
#pragma once

#include "control/protocol/client_messages.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/worker_messages.h"
#include "control/state/state.h"

namespace penstock::control {

PlacedPartition PlacedBy(const State& state, IterationId iteration, PartitionId partition,
                         Placement placement);
// Does not set the token and the session's times.
Welcome WelcomeOf(const State& state, const IterationState& iteration,
                  const protocol::Welcome& welcome);
// Does not set the token.
Assign AssignOf(const State& state, const IterationState& iteration,
                const protocol::Assign& assign);
// `context`: contains the ends of the partitions if the iteration is open and in order
// kDeterministic; otherwise nullptr.
Membership MembershipOf(const State& state, const IterationState& iteration,
                        const protocol::IterationContext* context, uint64_t version);

}  // namespace penstock::control
