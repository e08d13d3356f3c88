// SPDX-License-Identifier: Apache-2.0
// Checks the rounds of a coordinated read (docs/exactly_once.md, "Rounds"): each consumer gets its
// element of each round, in order and once; the elements of a round are one row of one partition,
// except in the last rounds, which are made of remainders; all consumers get equally many rounds;
// together they have each element of the dataset once; only the last round has copies.
#pragma once

#include <cstdint>

#include "tools/simulator/check/exactly_once.h"
#include "tools/simulator/check/history.h"

namespace penstock::simulator {

// `histories`: of one job, whose consumers have ended. Histories that did not reach the end belong
// to a job that was begun again, and are left out.
Findings CheckRounds(const Histories& histories, int64_t consumers,
                     const ExpectedElements& expected);

}  // namespace penstock::simulator
