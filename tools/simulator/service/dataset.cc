// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/dataset.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/map.h"
#include "penstock/sharding.h"
#include "penstock/sources.h"

namespace penstock::simulator {
namespace {

constexpr int64_t kRecordBytes = sizeof(int64_t);

// Jobs whose datasets have equally many elements share their files.
std::vector<std::string> FilesOf(const DatasetPlan& plan) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < plan.files; ++i) {
    names.push_back(absl::StrCat("/storage/", plan.elements, "/", i, "-of-", plan.files));
  }
  return names;
}

Dataset SourceOf(const DatasetPlan& plan) {
  if (plan.files == 0) return Dataset::Range(plan.elements);
  return Dataset::FixedLengthRecord(FilesOf(plan), kRecordBytes)
      .Map([](const Expr& record) { return DecodeRaw(record, DType::kInt64, {}); },
           {.num_parallel_calls = 1});
}

}  // namespace

Dataset DatasetOf(const JobPlan& job, bool map) {
  Dataset dataset = SourceOf(job);
  if (job.mode == ShardingPolicy::kHint) dataset = dataset.Shard(kShardHint, 0);
  if (job.shuffle > 0) dataset = dataset.Shuffle(job.shuffle);
  if (job.repeat > 1) dataset = dataset.Repeat(job.repeat);
  if (job.reading == Reading::kCache) dataset = dataset.Repeat();
  if (!map) return dataset;
  return dataset.Map([](const Expr& x) { return x * 3 + 1; }, {.num_parallel_calls = 1});
}

int64_t ElementValue(const Scenario& scenario, int64_t index) {
  return scenario.map ? index * 3 + 1 : index;
}

void StoreFiles(const JobPlan& job, Storage& storage) {
  if (job.files == 0) return;
  std::vector<std::string> contents(static_cast<size_t>(job.files));
  for (int64_t i = 0; i < job.elements; ++i) {
    contents[static_cast<size_t>(job.FileOf(i))].append(reinterpret_cast<const char*>(&i),
                                                        kRecordBytes);
  }
  const std::vector<std::string> names = FilesOf(job);
  for (size_t i = 0; i < names.size(); ++i) storage.Put(names[i], std::move(contents[i]));
}

}  // namespace penstock::simulator
