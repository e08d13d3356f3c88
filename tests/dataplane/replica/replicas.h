// SPDX-License-Identifier: Apache-2.0
// Groups of replicas for tests, and reading by their replicas.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/penstock.h"

namespace penstock {

// Returns a group with all replicas in this process.
inline ReplicaGroup Mirrored(int replicas) {
  std::vector<std::string> devices;
  for (int i = 0; i < replicas; ++i) devices.push_back(absl::StrCat("CPU:", i));
  return *ReplicaGroup::Mirrored(devices);
}

inline ReplicaGroup TwoGpus() {
  return *ReplicaGroup::Mirrored({"GPU:0", "GPU:1"});
}

// Returns the group that process number `process` of several would have.
inline ReplicaGroup Process(int process, std::vector<int> replicas_of_process) {
  std::vector<std::string> devices(static_cast<size_t>(replicas_of_process[process]), "CPU:0");
  return *ReplicaGroup::Create(
      {.devices = devices, .replicas_of_process = replicas_of_process, .process = process});
}

// The int64 rows of one replica in one step.
using Rows = std::vector<int64_t>;

inline Rows RowsOf(const Element& element) {
  const auto values = element.tensor(0).data<int64_t>();
  return {values.begin(), values.end()};
}

// Returns the rows by step and local replica. An error fails the test.
inline std::vector<std::vector<Rows>> ReadSteps(DistributedIterator& it, int64_t most = INT64_MAX) {
  std::vector<std::vector<Rows>> steps;
  while (static_cast<int64_t>(steps.size()) < most) {
    absl::StatusOr<std::optional<DistributedValues>> values = it.Next();
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok() || !values->has_value()) break;
    std::vector<Rows>& step = steps.emplace_back();
    for (size_t i = 0; i < (*values)->size(); ++i) step.push_back(RowsOf((**values)[i]));
  }
  return steps;
}

inline std::vector<std::vector<Rows>> ReadSteps(const absl::StatusOr<DistributedDataset>& dataset,
                                                int64_t most = INT64_MAX) {
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  if (!dataset.ok()) return {};
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  EXPECT_TRUE(it.ok()) << it.status();
  return it.ok() ? ReadSteps(*it, most) : std::vector<std::vector<Rows>>();
}

// Returns "STEPS ROWS WEIGHT STATUS" of a whole pass of this process's first replica.
inline std::string CountsOfPass(const ReplicaGroup& group, const Dataset& dataset,
                                const InputOptions& options) {
  absl::StatusOr<DistributedDataset> distributed = DistributeDataset(group, dataset, options);
  if (!distributed.ok()) return absl::StrCat("- - - ", distributed.status().ToString());
  int64_t steps = 0, rows = 0;
  double weight = 0;
  absl::Status status;
  for (absl::StatusOr<DistributedValues>& values : distributed->Elements()) {
    status = values.status();
    if (!status.ok()) break;
    ++steps;
    const int64_t here = (*values)[0].tensor(0).dim(0);
    rows += here;
    for (int64_t row = 0; row < here; ++row)
      weight += values->weights(0).empty() ? 1 : values->weights(0)[row];
  }
  return absl::StrCat(steps, " ", rows, " ", weight, " ", status.ToString());
}

}  // namespace penstock
