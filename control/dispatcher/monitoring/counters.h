// SPDX-License-Identifier: Apache-2.0
// The counters of a dispatcher (control/observe/metrics.h).
#pragma once

#include <cstdint>
#include <string>

#include "control/protocol/job_terms.h"

namespace penstock::control {

void CountHeartbeat();
// Adds elements and bytes that clients received over links of the transport `protocol`.
void CountLink(const std::string& protocol, int64_t elements, int64_t bytes);
// Counts a record that was passed to the journal.
void CountRecord(size_t bytes);
// Counts a new job.
void CountJob(const JobTerms& terms);
// Counts a client that began to read an iteration of a job with these terms.
void CountIterator(const JobTerms& terms);
// Sets the estimated number of workers that would keep all trainers fed; 0: no estimate.
void SetWantedWorkers(int64_t workers);
// Sets the numbers of suspected and of dead consumers, over all coordinated reads.
void SetLostConsumers(int64_t suspected, int64_t dead);
// Counts steps for which two consumers reported the same row.
void CountStepsCompared(int64_t steps);
// Counts a logged event with this name: a death, a move, a commit, …
void CountEvent(const std::string& name);

}  // namespace penstock::control
