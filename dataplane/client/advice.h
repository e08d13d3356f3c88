// SPDX-License-Identifier: Apache-2.0
// Warnings about jobs that probably do not do what the user wants. Each warning is logged once, as
// an event that contains the remedy.
#pragma once

#include <cstdint>
#include <string>

#include "control/observe/event_log.h"
#include "penstock/dataset.h"
#include "penstock/distribute.h"

namespace penstock::client {

// Logs an event if a launcher started several processes but this process reads a job of its own,
// because each process then gets all elements.
void AdviseIfEachRankReadsAll(const Dataset& distributed, const DistributeOptions& options,
                              EventLog& events);

// Logs an event for a repetition of a named job that ended before this reader got an element,
// because other readers, or an earlier run, got all `elements`.
void AdviseOfNothingLeft(const std::string& job, int64_t repetition, int64_t elements,
                         EventLog& events);

}  // namespace penstock::client
