// SPDX-License-Identifier: Apache-2.0
// The dispatcher's report about its datasets, jobs, workers and links, as plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/protocol/heartbeat_counts.h"
#include "control/protocol/job_terms.h"
#include "control/protocol/lives.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/requests.h"
#include "penstock/ids.h"
#include "penstock/iterator.h"

namespace penstock::control {

struct DatasetStatus {
  std::string dataset_id;
  uint64_t fingerprint = 0;
  std::string spec_text;
  Cardinality cardinality = kUnknown;
  int64_t definition_bytes = 0;
  int64_t jobs = 0;                                   // jobs that read the dataset
  absl::Duration goes_in = absl::InfiniteDuration();  // until removal, unless a job reads it
  std::string owner = {};                             // a principal; empty: none
};

struct PartitionStatus {
  PartitionId partition;
  Placement placement;
  WorkerId worker;  // none while it moves or waits for a worker
  bool ended = false;
  int64_t elements = -1;  // its last index + 1, once the partition ended
  int64_t splits_given = 0;
  int64_t received = 0;   // reported as received, over all clients
  int64_t committed = 0;  // permanently in histories
  std::string waits_for;  // why the partition is not placed; empty if it is placed
};

struct IterationStatus {
  IterationId iteration;
  int64_t repetition = 0;
  bool closed = false;    // clients see the end
  bool finished = false;  // all elements are committed
  std::vector<Reader> readers;
  std::vector<PartitionStatus> partitions;  // of the page
  // Of all partitions.
  int64_t num_partitions = 0;
  int64_t received = 0;
  int64_t committed = 0;
  std::string owed;  // the elements that no client has, at most a hundred runs; empty: none
  // The consumers for which the rounds of a coordinated read, or the readers of order
  // kDeterministic, wait; empty: none.
  std::string waits_for;
};

// An estimate of how many workers keep a job's trainers fed. All rates are in elements of the job.
struct JobFeed {
  double wanted_per_s = 0;  // by all trainers of the job if they never waited; 0: unknown
  double worker_per_s = 0;  // made by a worker that serves only this job; 0: unknown
  double busy = 0;          // the share of time in which its trainers did not wait (AU)
  double workers = 0;       // needed if this were the only job; 0: no estimate
  friend bool operator==(const JobFeed&, const JobFeed&) = default;
};

enum class JobPhase : uint8_t { kActive = 0, kFinished = 1, kCancelled = 2 };

struct JobStatus {
  JobId job;
  std::string name;
  std::string run_id;
  std::string dataset_id;
  JobTerms terms;
  uint64_t seed = 0;
  JobPhase phase = JobPhase::kActive;
  std::vector<IterationStatus> iterations;  // without the earlier iterations
  // The number of finished iterations to which nobody is connected any more and that are not
  // listed, and the number of their elements. With partitions, the last hundred are listed; without
  // them, the last one, unless a later iteration is listed.
  int64_t earlier_iterations = 0;
  int64_t earlier_elements = 0;
  std::string slowed_by;  // the quota that slows the job down; empty: none
  JobFeed feed;
  absl::Duration unread_for;                          // zero: a client reads the job
  absl::Duration goes_in = absl::InfiniteDuration();  // until removal, unless a client reads the
                                                      // job
  std::string owner = {};                             // a principal; empty: none
};

struct WorkerStatus {
  WorkerId worker;
  std::string address;
  int32_t permits = 0;
  int32_t partitions = 0;
  bool draining = false;
  bool connected = false;
  absl::Duration silent_for;              // since its last heartbeat
  std::vector<std::string> refuses = {};  // datasets of which it gets no partitions, and why
};

// One link, as of the client's last heartbeat.
struct LinkStatus {
  ClientId client;
  IterationId iteration;
  std::string job;     // its name
  std::string worker;  // its address; empty if the worker is gone
  LinkCounts counts;
  double elements_per_s = 0;  // since the previous heartbeat; 0 at the first
  double bytes_per_s = 0;
  // How many of the iteration's workers the client reads, and why: "all 12", or "66 of 1000
  // (max_links 64)".
  std::string reads = {};
};

// A worker's work for a dataset, as of its last heartbeat.
struct WorkStatus {
  WorkerId worker;
  std::string address;
  DatasetWork work;
};

// How many connected workers, or clients, are of one release.
struct PeerRelease {
  bool workers = false;  // otherwise clients
  std::string release;   // empty: a release that does not say it
  uint32_t version = 0;  // of the control protocol, which it and the dispatcher use
  int64_t count = 0;
  friend bool operator==(const PeerRelease&, const PeerRelease&) = default;
};

struct DispatcherStatus {
  Term term;
  VersionRange version;
  std::string release;         // "0.1.0"
  std::string journal;         // "memory", "sqlite:<path>"
  uint32_t format = 0;         // of the journal, as finalised
  uint32_t newest_format = 0;  // that the dispatcher's release can write
  uint64_t journal_sequence = 0;
  std::vector<DatasetStatus> datasets;
  std::vector<JobStatus> jobs;
  std::vector<WorkerStatus> workers;
  std::vector<LinkStatus> links;  // of the sessions that are connected
  std::vector<WorkStatus> work;   // of the workers that are connected
  int64_t wanted_workers = 0;     // to keep the trainers of all jobs fed; 0: no estimate
  std::string next_page_token;    // for the next StatusRequest; empty: this is the last page
  // On all pages together. Only the first page has these numbers, and only of the parts that were
  // asked for.
  int64_t num_workers = 0;
  int64_t num_jobs = 0;
  int64_t num_links = 0;
  int64_t num_datasets = 0;
  // The releases of the connected workers and clients. Only the first page has them, if workers
  // were asked for, and not for a trainer.
  std::vector<PeerRelease> peers = {};
};

// --- Asking for it ---

struct StatusQuery {
  std::string name_space = {};         // as in StatusRequest
  std::vector<StatusPart> parts = {};  // as in StatusRequest
  std::string job = {};                // as in StatusRequest
  int64_t rows = 0;                    // the maximum number of items of each part; 0: all
};

// All parts.
inline constexpr StatusPart kStatusParts[] = {StatusPart::kWorkers,    StatusPart::kJobs,
                                              StatusPart::kPartitions, StatusPart::kLinks,
                                              StatusPart::kDatasets,   StatusPart::kWork};

// Calls `ask` for each page. With `rows`, asks for one page of each part. The dispatcher may change
// between two pages. Errors are those of `ask`. The answer's next_page_token is empty.
absl::StatusOr<DispatcherStatus> CollectStatus(
    const StatusQuery& query,
    absl::FunctionRef<absl::StatusOr<DispatcherStatus>(const StatusRequest&)> ask);

}  // namespace penstock::control
