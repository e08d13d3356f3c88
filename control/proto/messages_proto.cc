// SPDX-License-Identifier: Apache-2.0
// Datasets, jobs and status. The streams are in streams_proto.cc.
#include "control/proto/messages_proto.h"

namespace penstock::control {

void ToWire(const RegisterDatasetRequest& from, wire::RegisterDatasetRequest* to) {
  ToWire(from.request, to->mutable_request());
  to->set_dataset_id(from.dataset_id);
  to->set_replace(from.replace);
  to->set_name_space(from.name_space);
  to->set_definition(from.definition);
  ToWire(from.summary, to->mutable_summary());
}

absl::StatusOr<RegisterDatasetRequest> FromWire(const wire::RegisterDatasetRequest& from) {
  ASSIGN_OR_RETURN(DatasetSummary summary, FromWire(from.summary()));
  return RegisterDatasetRequest{.request = FromWire(from.request()),
                                .dataset_id = from.dataset_id(),
                                .replace = from.replace(),
                                .name_space = from.name_space(),
                                .definition = from.definition(),
                                .summary = std::move(summary)};
}

void ToWire(const GetDatasetAnswer& from, wire::GetDatasetAnswer* to) {
  to->set_dataset_id(from.dataset_id);
  to->set_definition(from.definition);
  ToWire(from.summary, to->mutable_summary());
}

absl::StatusOr<GetDatasetAnswer> FromWire(const wire::GetDatasetAnswer& from) {
  ASSIGN_OR_RETURN(DatasetSummary summary, FromWire(from.summary()));
  return GetDatasetAnswer{from.dataset_id(), from.definition(), std::move(summary)};
}

void ToWire(const GetOrCreateJobRequest& from, wire::GetOrCreateJobRequest* to) {
  ToWire(from.request, to->mutable_request());
  to->set_name(from.name);
  to->set_run_id(from.run_id);
  to->set_dataset_id(from.dataset_id);
  if (from.dataset_fingerprint.has_value()) to->set_dataset_fingerprint(*from.dataset_fingerprint);
  ToWire(from.terms, to->mutable_terms());
  if (from.seed.has_value()) to->set_seed(*from.seed);
  to->set_name_space(from.name_space);
}

absl::StatusOr<GetOrCreateJobRequest> FromWire(const wire::GetOrCreateJobRequest& from) {
  GetOrCreateJobRequest to;
  to.request = FromWire(from.request());
  to.name = from.name();
  to.run_id = from.run_id();
  to.dataset_id = from.dataset_id();
  if (from.has_dataset_fingerprint()) to.dataset_fingerprint = from.dataset_fingerprint();
  ASSIGN_OR_RETURN(to.terms, FromWire(from.terms()));
  if (from.has_seed()) to.seed = from.seed();
  to.name_space = from.name_space();
  return to;
}

static void ToWire(const DatasetStatus& from, wire::DatasetStatus* to) {
  to->set_dataset_id(from.dataset_id);
  to->set_fingerprint(from.fingerprint);
  to->set_spec_text(from.spec_text);
  to->set_cardinality(from.cardinality);
  to->set_definition_bytes(from.definition_bytes);
  to->set_jobs(from.jobs);
  if (from.goes_in < absl::InfiniteDuration())
    to->set_goes_in_ns(absl::ToInt64Nanoseconds(from.goes_in));
}

static DatasetStatus FromWire(const wire::DatasetStatus& from) {
  DatasetStatus to{from.dataset_id(),  from.fingerprint(),      from.spec_text(),
                   from.cardinality(), from.definition_bytes(), from.jobs()};
  if (from.has_goes_in_ns()) to.goes_in = absl::Nanoseconds(from.goes_in_ns());
  return to;
}

static void ToWire(const PartitionStatus& from, wire::PartitionStatus* to) {
  to->set_partition(from.partition.value());
  to->set_placement(from.placement.value());
  to->set_worker(from.worker.value());
  to->set_ended(from.ended);
  to->set_elements(from.elements);
  to->set_splits_given(from.splits_given);
  to->set_received(from.received);
  to->set_committed(from.committed);
  to->set_waits_for(from.waits_for);
}

static PartitionStatus FromWire(const wire::PartitionStatus& from) {
  return {.partition = PartitionId(from.partition()),
          .placement = Placement(from.placement()),
          .worker = WorkerId(from.worker()),
          .ended = from.ended(),
          .elements = from.elements(),
          .splits_given = from.splits_given(),
          .received = from.received(),
          .committed = from.committed(),
          .waits_for = from.waits_for()};
}

static void ToWire(const IterationStatus& from, wire::IterationStatus* to) {
  to->set_iteration(from.iteration.value());
  to->set_repetition(from.repetition);
  to->set_closed(from.closed);
  to->set_finished(from.finished);
  for (const Reader& reader : from.readers) ToWire(reader, to->add_readers());
  for (const PartitionStatus& partition : from.partitions) {
    ToWire(partition, to->add_partitions());
  }
  to->set_owed(from.owed);
  to->set_waits_for(from.waits_for);
}

static IterationStatus FromWire(const wire::IterationStatus& from) {
  IterationStatus to{.iteration = IterationId(from.iteration()),
                     .repetition = from.repetition(),
                     .closed = from.closed(),
                     .finished = from.finished(),
                     .owed = from.owed(),
                     .waits_for = from.waits_for()};
  for (const wire::Reader& reader : from.readers()) to.readers.push_back(FromWire(reader));
  for (const wire::PartitionStatus& partition : from.partitions()) {
    to.partitions.push_back(FromWire(partition));
  }
  return to;
}

static void ToWire(const JobStatus& from, wire::JobStatus* to) {
  to->set_job(from.job.value());
  to->set_name(from.name);
  to->set_run_id(from.run_id);
  to->set_dataset_id(from.dataset_id);
  ToWire(from.terms, to->mutable_terms());
  to->set_seed(from.seed);
  to->set_phase(static_cast<uint32_t>(from.phase));
  for (const IterationStatus& iteration : from.iterations) ToWire(iteration, to->add_iterations());
  to->set_earlier_iterations(from.earlier_iterations);
  to->set_earlier_elements(from.earlier_elements);
  to->set_slowed_by(from.slowed_by);
  ToWire(from.feed, to->mutable_feed());
  to->set_unread_for_ns(absl::ToInt64Nanoseconds(from.unread_for));
  if (from.goes_in < absl::InfiniteDuration())
    to->set_goes_in_ns(absl::ToInt64Nanoseconds(from.goes_in));
}

static absl::StatusOr<JobStatus> FromWire(const wire::JobStatus& from) {
  JobStatus to{.job = JobId(from.job()),
               .name = from.name(),
               .run_id = from.run_id(),
               .dataset_id = from.dataset_id(),
               .seed = from.seed(),
               .earlier_iterations = from.earlier_iterations(),
               .earlier_elements = from.earlier_elements(),
               .slowed_by = from.slowed_by(),
               .feed = FromWire(from.feed()),
               .unread_for = absl::Nanoseconds(from.unread_for_ns())};
  if (from.has_goes_in_ns()) to.goes_in = absl::Nanoseconds(from.goes_in_ns());
  ASSIGN_OR_RETURN(to.terms, FromWire(from.terms()));
  if (from.phase() > static_cast<uint32_t>(JobPhase::kCancelled)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown phase ", from.phase(), " of a job"));
  }
  to.phase = static_cast<JobPhase>(from.phase());
  for (const wire::IterationStatus& iteration : from.iterations()) {
    to.iterations.push_back(FromWire(iteration));
  }
  return to;
}

static void ToWire(const WorkerStatus& from, wire::WorkerStatus* to) {
  to->set_worker(from.worker.value());
  to->set_address(from.address);
  to->set_permits(from.permits);
  to->set_partitions(from.partitions);
  to->set_draining(from.draining);
  to->set_connected(from.connected);
  to->set_silent_ns(absl::ToInt64Nanoseconds(from.silent_for));
}

static WorkerStatus FromWire(const wire::WorkerStatus& from) {
  return {.worker = WorkerId(from.worker()),
          .address = from.address(),
          .permits = from.permits(),
          .partitions = from.partitions(),
          .draining = from.draining(),
          .connected = from.connected(),
          .silent_for = absl::Nanoseconds(from.silent_ns())};
}

static void ToWire(const LinkStatus& from, wire::LinkStatus* to) {
  to->set_client(from.client.value());
  to->set_iteration(from.iteration.value());
  to->set_job(from.job);
  to->set_worker(from.worker);
  ToWire(from.counts, to->mutable_counts());
  to->set_elements_per_s(from.elements_per_s);
  to->set_bytes_per_s(from.bytes_per_s);
}

static LinkStatus FromWire(const wire::LinkStatus& from) {
  return {.client = ClientId(from.client()),
          .iteration = IterationId(from.iteration()),
          .job = from.job(),
          .worker = from.worker(),
          .counts = FromWire(from.counts()),
          .elements_per_s = from.elements_per_s(),
          .bytes_per_s = from.bytes_per_s()};
}

static void ToWire(const WorkStatus& from, wire::WorkStatus* to) {
  to->set_worker(from.worker.value());
  to->set_address(from.address);
  ToWire(from.work, to->mutable_work());
}

static WorkStatus FromWire(const wire::WorkStatus& from) {
  return {
      .worker = WorkerId(from.worker()), .address = from.address(), .work = FromWire(from.work())};
}

void ToWire(const DispatcherStatus& from, wire::DispatcherStatus* to) {
  to->set_term(from.term.value());
  ToWire(from.version, to->mutable_version());
  to->set_release(from.release);
  to->set_journal(from.journal);
  to->set_journal_sequence(from.journal_sequence);
  for (const DatasetStatus& dataset : from.datasets) ToWire(dataset, to->add_datasets());
  for (const JobStatus& job : from.jobs) ToWire(job, to->add_jobs());
  for (const WorkerStatus& worker : from.workers) ToWire(worker, to->add_workers());
  for (const LinkStatus& link : from.links) ToWire(link, to->add_links());
  for (const WorkStatus& work : from.work) ToWire(work, to->add_work());
  to->set_wanted_workers(from.wanted_workers);
}

absl::StatusOr<DispatcherStatus> FromWire(const wire::DispatcherStatus& from) {
  DispatcherStatus to{.term = Term(from.term()),
                      .version = FromWire(from.version()),
                      .release = from.release(),
                      .journal = from.journal(),
                      .journal_sequence = from.journal_sequence(),
                      .wanted_workers = from.wanted_workers()};
  for (const wire::DatasetStatus& dataset : from.datasets()) {
    to.datasets.push_back(FromWire(dataset));
  }
  for (const wire::JobStatus& job : from.jobs()) {
    ASSIGN_OR_RETURN(to.jobs.emplace_back(), FromWire(job));
  }
  for (const wire::WorkerStatus& worker : from.workers()) to.workers.push_back(FromWire(worker));
  for (const wire::LinkStatus& link : from.links()) to.links.push_back(FromWire(link));
  for (const wire::WorkStatus& work : from.work()) to.work.push_back(FromWire(work));
  return to;
}

}  // namespace penstock::control
