// SPDX-License-Identifier: Apache-2.0
// Lists one page of the status, from the state and the parts of the core. The core's lock guards
// it. Long texts are made afterwards, without the lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/dispatcher/consumer_monitor.h"
#include "control/dispatcher/dataset_registry.h"
#include "control/dispatcher/job_registry.h"
#include "control/dispatcher/link_monitor.h"
#include "control/dispatcher/liveness.h"
#include "control/dispatcher/monitoring/status_summary.h"
#include "control/dispatcher/partition_placer.h"
#include "control/dispatcher/shared_state.h"
#include "control/policy/scaling.h"

namespace penstock::control {

// The data for the texts of one iteration.
struct TextSource {
  size_t job = 0;        // where it is listed
  size_t iteration = 0;  // in the job
  IterationSummary summary;
  bool goes_on = false;
  bool has_workers = false;
  std::string room;  // what its partitions wait for that could be placed
};

// Writes `owed` and `waits_for` of the iterations in `to`.
void WriteTexts(const std::vector<TextSource>& sources, DispatcherStatus& to);

// The place of an item in the order of pages: the part, and the ids of the item, or the id of the
// dataset.
struct StatusPlace {
  StatusPart part = StatusPart::kWorkers;
  std::vector<uint64_t> ids;
  std::string dataset;
  uint64_t Id(size_t at) const { return at < ids.size() ? ids[at] : 0; }
  // Returns whether the first ids are these.
  bool IsIn(std::initializer_list<uint64_t> its) const {
    return ids.size() > its.size() && std::equal(its.begin(), its.end(), ids.begin());
  }
};

// The parts of the core that know something for the status. The core's lock is held.
struct StatusSources {
  const SharedState& shared;
  const Scaling& scaling;
  const Liveness& liveness;
  const LinkMonitor& links;
  const ConsumerMonitor& consumers;
  const PartitionPlacer& placer;
  const DatasetRegistry& datasets;
  const JobRegistry& jobs;
  IterationSummaries& summaries;
  absl::Time now;
};

// Lists the items of one page that the caller may see.
class StatusLister {
 public:
  StatusLister(const StatusSources& from, const StatusRequest& request, const Caller& caller,
               DispatcherStatus& to);
  // InvalidArgument for a page_token that no answer contained.
  absl::Status List();
  std::vector<TextSource> TakeTexts() { return std::move(texts_); }

 private:
  bool Asks(StatusPart part) const;
  // Takes room for one item. If there is none, the next page begins with this item.
  template <class... Ids>
  bool Take(const char* part, const Ids&... ids);
  template <class Record>
  bool Shows(const Record& record, const std::string& name) const;
  bool ShowsJob(const JobRecord& job) const;
  bool SeesAll() const;  // whether the caller may see what belongs to others
  bool ShowsWork(const DatasetWork& work) const;

  void CountAll();
  // Returns what partitions of the job wait for that have no worker although they could be placed.
  std::string RoomFor(const JobRecord& job) const;
  void ListWorkers(const StatusPlace& first);
  void ListJobs(const StatusPlace& first);
  void ListLinks(const StatusPlace& first);
  // Returns whether there was room for all links of the session.
  bool ListLinksOf(const JobRecord& job, int64_t repetition, const SessionKey& session,
                   const StatusPlace& first);
  void ListDatasets(const StatusPlace& first);
  void ListWork(const StatusPlace& first);

  JobStatus StatusOfJob(const JobRecord& job) const;
  // Lists the job's iterations in to_.jobs.back(), from the place on if it is in this job. If there
  // is no room for all partitions, the token of the next page is set.
  void ListIterations(const JobRecord& job, const StatusPlace& first);
  void ListPast(const JobRecord& job, int64_t repetition, const StatusPlace& first);
  void ListPresent(const JobRecord& job, const IterationState& iteration, const StatusPlace& first);
  // Lists the partitions as `status_of(p)`.
  template <class StatusOf>
  void ListPartitions(const JobRecord& job, IterationStatus& to, const StatusPlace& first,
                      const StatusOf& status_of);
  // Returns the quota that holds the job back, as text; empty if there is none.
  std::string SlowedBy(const JobRecord& job) const;
  int64_t PermitsOfAll() const;  // of all workers

  const StatusSources& from_;
  const SharedState& shared_ = from_.shared;
  const State& state_ = from_.shared.state;
  const StatusRequest& request_;
  const Caller& caller_;
  DispatcherStatus& to_;
  JobId job_;         // the number that is asked for
  int64_t room_ = 0;  // on the page
  std::vector<TextSource> texts_;
  mutable std::optional<int64_t> permits_;  // PermitsOfAll(), once it was needed
};

}  // namespace penstock::control
