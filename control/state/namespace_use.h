// SPDX-License-Identifier: Apache-2.0
// Counts what each namespace holds, without a search through all jobs and datasets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "control/protocol/requests.h"
#include "penstock/ids.h"

namespace penstock::control {

struct DatasetRecord;
struct JobRecord;

struct NamespaceUse {
  int64_t jobs = 0;           // that are not over
  int64_t clients = 0;        // of each job, those that read an iteration that is not finished
  int64_t dataset_bytes = 0;  // of the definitions that are registered, or that a job keeps
  friend bool operator==(const NamespaceUse&, const NamespaceUse&) = default;
};

// The use of all namespaces. A value without locks.
class NamespaceUses {
 public:
  // The part of one job.
  struct OfJob {
    bool unfinished = false;
    // The number of iterations that each client reads, of those that go on and are not finished.
    // None is 0.
    absl::flat_hash_map<ClientId, int> reads;
    friend bool operator==(const OfJob&, const OfJob&) = default;
  };

  NamespaceUse Of(std::string_view name_space) const;
  // Returns whether the definition has one reference.
  bool HasOneReference(const DatasetRecord& dataset) const;

  // Sets the part of the job; an empty part: the job is removed.
  void SetJob(const JobRecord& job, OfJob use);
  // Adds `more` to the number of the job's iterations that the client reads. Takes constant time.
  void AddReads(const JobRecord& job, ClientId client, int more);
  // Note that a registered id, or a job, refers to the definition, or does so no more.
  void AddReference(const DatasetRecord& dataset);
  void DropReference(const DatasetRecord& dataset);

  // Compares what the namespaces and the jobs hold.
  friend bool operator==(const NamespaceUses& a, const NamespaceUses& b) {
    return a.of_ == b.of_ && a.jobs_ == b.jobs_;
  }

 private:
  void Add(std::string_view name_space, const NamespaceUse& more);

  std::map<std::string, NamespaceUse, std::less<>> of_;  // none is empty
  absl::flat_hash_map<JobId, OfJob> jobs_;               // none is empty
  absl::flat_hash_map<const DatasetRecord*, int64_t> references_;
};

// Returns the bytes that a dataset takes, and counts for in its namespace: the definition, and the
// file names and nodes of the summary.
int64_t BytesOf(std::string_view definition, const DatasetSummary& summary);

}  // namespace penstock::control
