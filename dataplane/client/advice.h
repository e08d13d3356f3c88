// SPDX-License-Identifier: Apache-2.0
// What a reader's job is unlikely to be meant to do: said once, as an event, with the way out.
#pragma once

#include <cstdint>
#include <string>

#include "control/observe/event_log.h"
#include "penstock/dataset.h"
#include "penstock/distribute.h"

namespace penstock::client {

// A launcher started several processes, and this one reads by a job of its own, which nothing
// divides among them: each gets all elements.
void AdviseIfEachRankReadsAll(const Dataset& distributed, const DistributeOptions& options,
                              EventLog& events);

// A named job's repetition ended before this reader got anything: others, or an earlier run, had
// all `elements`.
void AdviseOfNothingLeft(const std::string& job, int64_t repetition, int64_t elements,
                         EventLog& events);

}  // namespace penstock::client
