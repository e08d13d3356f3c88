// SPDX-License-Identifier: Apache-2.0
// Converts requests and answers about datasets, jobs and status. streams_proto.cc converts the
// messages of the streams.
#include "control/proto/messages_proto.h"

#include "control/proto/status_fields.h"

namespace penstock::control {

template <>
inline constexpr JobPhase kLast<JobPhase> = JobPhase::kCancelled;
template <>
inline constexpr StatusPart kLast<StatusPart> = StatusPart::kWork;

// The time until removal; an infinite time is absent in the message.
#define WIRE_GOES_IN()                                                 \
  if constexpr (Coder::kEncodes) {                                     \
    if (value.goes_in < absl::InfiniteDuration())                      \
      message.set_goes_in_ns(absl::ToInt64Nanoseconds(value.goes_in)); \
  } else if (message.has_goes_in_ns()) {                               \
    value.goes_in = absl::Nanoseconds(message.goes_in_ns());           \
  }                                                                    \
  static_assert(true)

WIRE_STRUCT(RegisterDatasetRequest, wire::RegisterDatasetRequest, request, dataset_id, replace,
            name_space, definition, summary);
WIRE_STRUCT(DatasetPart, wire::DatasetPart, bytes, sha256);
WIRE_STRUCT(GetDatasetAnswer, wire::GetDatasetAnswer, dataset_id, definition, summary, parts,
            piece);
WIRE_PAIR(DatasetStatus, wire::DatasetStatus) {
  WIRE_FIELDS(dataset_id, fingerprint, spec_text, cardinality, definition_bytes, jobs, owner);
  WIRE_GOES_IN();
}
WIRE_STRUCT(PartitionStatus, wire::PartitionStatus, partition, placement, worker, ended, elements,
            splits_given, received, committed, waits_for);
WIRE_STRUCT(IterationStatus, wire::IterationStatus, iteration, repetition, closed, finished,
            readers, partitions, num_partitions, received, committed, owed, waits_for);
WIRE_STRUCT(JobFeed, wire::JobFeed, wanted_per_s, worker_per_s, busy, workers);
WIRE_PAIR(JobStatus, wire::JobStatus) {
  WIRE_FIELDS(job, name, run_id, dataset_id, terms, seed, phase, iterations, earlier_iterations,
              earlier_elements, slowed_by, feed, owner);
  WIRE_NANOSECONDS(unread_for);
  WIRE_GOES_IN();
}
WIRE_PAIR(WorkerStatus, wire::WorkerStatus) {
  WIRE_FIELDS(worker, address, permits, partitions, draining, connected, refuses);
  WIRE_NANOSECONDS_AS(silent_for, silent_ns);
}
WIRE_STRUCT(LinkStatus, wire::LinkStatus, client, iteration, job, worker, counts, elements_per_s,
            bytes_per_s, reads);
WIRE_STRUCT(WorkStatus, wire::WorkStatus, worker, address, work);
WIRE_STRUCT(PeerRelease, wire::PeerRelease, workers, release, version, count);
WIRE_PAIR(DispatcherStatus, wire::DispatcherStatus) {
  WIRE_FIELDS(term, version, release, journal, journal_sequence, format, newest_format, peers);
  WIRE_FIELDS(datasets, jobs, workers, links, work, wanted_workers, next_page_token, num_workers,
              num_jobs, num_links, num_datasets);
}
WIRE_PAIR(StatusRequest, wire::StatusRequest) {
  WIRE_FIELDS(name_space, page_size, page_token, parts, job);
  coder.Require(value.page_size >= 0, "page_size is negative");
}

WIRE_CONVERTERS(VersionRange);
WIRE_CONVERTERS(RegisterDatasetRequest);
WIRE_CONVERTERS(RegisterDatasetAnswer);
WIRE_CONVERTERS(GetDatasetAnswer);
WIRE_CONVERTERS(GetOrCreateJobRequest);
WIRE_CONVERTERS(JobAnswer);
WIRE_CONVERTERS(StatusRequest);
WIRE_CONVERTERS(DispatcherStatus);

}  // namespace penstock::control
