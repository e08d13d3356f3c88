// SPDX-License-Identifier: Apache-2.0
// The counters of a dispatcher (control/observe/metrics.h).
#pragma once

#include <cstdint>
#include <string>

#include "control/protocol/job_terms.h"

namespace penstock::control {

void CountHeartbeat();
// Adds elements and bytes that clients received over links of that protocol.
void CountLink(const std::string& protocol, int64_t elements, int64_t bytes);
// Counts a record that was passed to the journal.
void CountRecord(size_t bytes);
// Counts a new job.
void CountJob(const JobTerms& terms);
// Counts a client that began to read an iteration of a job with these terms.
void CountIterator(const JobTerms& terms);
// Sets how many workers would keep all trainers fed; 0: no estimate.
void SetWantedWorkers(int64_t workers);
// Sets how many consumers of all coordinated reads are suspected, and how many were declared dead.
void SetLostConsumers(int64_t suspected, int64_t dead);
// Counts steps for which two consumers reported the same row.
void CountStepsCompared(int64_t steps);
// Counts a logged event of that name: deaths, moves, commits, …
void CountEvent(const std::string& name);

}  // namespace penstock::control
