// SPDX-License-Identifier: Apache-2.0
// The datasets that trainers read.
#pragma once

#include <cstdint>

#include "penstock/dataset.h"
#include "tools/simulator/scenario.h"
#include "tools/simulator/world/storage.h"

namespace penstock::simulator {

// Returns the dataset of a job, before it is distributed.
Dataset DatasetOf(const JobPlan& job, bool map);
// Returns the value of element number `index` of a dataset.
int64_t ElementValue(const Scenario& scenario, int64_t index);
// Puts the files of the job's dataset into the storage.
void StoreFiles(const JobPlan& job, Storage& storage);

}  // namespace penstock::simulator
