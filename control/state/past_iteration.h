// SPDX-License-Identifier: Apache-2.0
// The data that are kept about a finished iteration to which no client is connected. Such an
// iteration is not read again. A process that connects to it later gets the end, or an error if its
// state is not the one that was committed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "control/protocol/iteration_record.h"
#include "control/protocol/job_terms.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/shard.h"

namespace penstock::control {

struct IterationState;

struct PastIteration {
  struct Reader {
    ClientId client;
    Incarnation incarnation;
    protocol::CommittedMark mark;
    int32_t consumer = -1;
    protocol::ReaderStatus status = protocol::ReaderStatus::kActive;
  };
  // The optional part, which few iterations have.
  struct More {
    Division division;
    protocol::RoundsRecord rounds;
    // All readers, if states record the elements of each reader, or if each element belongs to a
    // consumer from the start. Otherwise only the readers that were declared dead, because these
    // must still be refused.
    std::vector<Reader> readers;
  };

  IterationId id;
  absl::InlinedVector<Index, 1> ends;  // elements by partition
  std::shared_ptr<const More> more;    // null: no optional part; shared by copies
};

// REQUIRES: `iteration` is finished.
PastIteration ToPast(const IterationState& iteration);
// Returns the iteration as it was, but without its splits and without the readers that were
// dropped.
IterationState FromPast(JobId job, const JobTerms& terms, int64_t repetition,
                        const PastIteration& past);

}  // namespace penstock::control
