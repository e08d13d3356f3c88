// SPDX-License-Identifier: Apache-2.0
// What a dispatcher counts of itself (control/observe/metrics.h).
#pragma once

#include <cstdint>
#include <string>

#include "control/protocol/job_terms.h"

namespace penstock::control {

void CountHeartbeat();
// So much more has come to clients over links of that protocol.
void CountLink(const std::string& protocol, int64_t elements, int64_t bytes);
// A record was given to the journal.
void CountRecord(size_t bytes);
// A job was made.
void CountJob(const JobTerms& terms);
// A client began to read an iteration of a job of these terms.
void CountIterator(const JobTerms& terms);
// So many workers would keep all trainers fed; 0: no estimate.
void SetWantedWorkers(int64_t workers);
// Of all coordinated reads: consumers that are not heard, and that were declared dead.
void SetLostConsumers(int64_t suspected, int64_t dead);
// Steps of which two consumers said that they returned the same.
void CountStepsCompared(int64_t steps);
// An event of that name was logged: deaths, moves, commits, …
void CountEvent(const std::string& name);

}  // namespace penstock::control
