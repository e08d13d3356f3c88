// SPDX-License-Identifier: Apache-2.0
// Makes messages to clients and workers from the state and the decisions of the protocol. Pure
// functions. Their one reason to change: the contents of these messages.
#pragma once

#include <optional>
#include <set>

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
// How a Membership describes the worker.
Membership::Worker DescriptionOf(const WorkerRecord& worker);
// Returns the whole Membership for a client, without the partitions that serve others only.
// `reader`: the client's position; a client that never joined has none. `context`: contains the
// ends of the partitions if the iteration is open and in order kDeterministic; otherwise nullptr.
Membership MembershipOf(const State& state, const IterationState& iteration,
                        const protocol::IterationContext* context, uint64_t version,
                        std::optional<size_t> reader);
// Returns a Membership with these partitions and their workers, in time that depends on their
// number alone. Does not set `since`. A partition that does not serve `reader` has
// no worker in it. Without a reader: for any client; REQUIRES: each partition serves all readers.
Membership MembershipChangeOf(const State& state, const IterationState& iteration,
                              const protocol::IterationContext* context, uint64_t version,
                              std::optional<size_t> reader,
                              const std::set<PartitionId>& partitions);

}  // namespace penstock::control
