// SPDX-License-Identifier: Apache-2.0
// What stays of a finished iteration that nobody is connected to. Nothing of it is read again; who
// comes late is told so, or that its state is not what was committed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "control/protocol/iteration_record.h"
#include "control/protocol/session_messages.h"

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
  // Few iterations have any of it.
  struct More {
    Division division;
    protocol::RoundsRecord rounds;
    // All where states tell what each has, or elements are some consumer's from the start; else
    // those alone that were declared dead, and are to hear so.
    std::vector<Reader> readers;
  };

  IterationId id;
  absl::InlinedVector<Index, 1> ends;  // elements by partition
  std::shared_ptr<const More> more;    // null: nothing. Shared by copies
};

// REQUIRES: it is finished.
PastIteration ToPast(const IterationState& iteration);
// As it was, but for splits and the readers that are not kept.
IterationState FromPast(JobId job, const JobTerms& terms, int64_t repetition,
                        const PastIteration& past);

}  // namespace penstock::control
