// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/status_lister.h"

#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "control/policy/audience.h"
#include "control/protocol/scoped_name.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// The number of a job's past iterations that are listed one by one. Earlier iterations are summed
// up.
constexpr size_t kPastShown = 100;

// Describes what a coordinated read waits for.
std::string WaitsFor(const ConsumersLost& lost, const protocol::IterationContext* context) {
  std::vector<std::string> parts;
  for (const ConsumersLost::Consumer& consumer : lost.consumers) {
    parts.push_back(absl::StrCat(
        "consumer ", consumer.consumer, consumer.dead ? ", dead, silent for " : ", silent for ",
        absl::FormatDuration(absl::Trunc(consumer.silent, absl::Milliseconds(100))), " (",
        consumer.why, ")"));
  }
  if (parts.empty() && context != nullptr) return context->rounds.waits_for;
  return absl::StrJoin(parts, ", ");
}

// Describes what an iteration of any job waits for; empty if it does not wait.
std::string WaitsFor(const IterationStatus& status, const TextSource& from) {
  if (status.finished) return "";
  if (status.readers.empty()) return "a reader";
  if (status.closed) return "";
  if (status.num_partitions == 0) return from.has_workers ? "" : "a worker";
  return WaitsText(*from.summary.waiting, from.room);
}

// The names of parts in the tokens of pages. Partitions are at the place of their job.
constexpr std::array<std::pair<const char*, StatusPart>, 5> kPlaces = {
    {{"worker", StatusPart::kWorkers},
     {"job", StatusPart::kJobs},
     {"link", StatusPart::kLinks},
     {"dataset", StatusPart::kDatasets},
     {"work", StatusPart::kWork}}};

absl::StatusOr<StatusPlace> ParsePlace(const std::string& token) {
  if (token.empty()) return StatusPlace();
  const std::pair<std::string, std::string> halves = absl::StrSplit(token, absl::MaxSplits(':', 1));
  for (const auto& [name, part] : kPlaces) {
    if (halves.first != name) continue;
    if (part == StatusPart::kDatasets) return StatusPlace{part, {}, halves.second};
    StatusPlace place{part, {}, {}};
    bool numbers = true;
    for (const absl::string_view id : absl::StrSplit(halves.second, ','))
      numbers &= absl::SimpleAtoi(id, &place.ids.emplace_back());
    if (numbers) return place;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "page_token is '", token, "', but must be next_page_token of an answer of this dispatcher"));
}

}  // namespace

void WriteTexts(const std::vector<TextSource>& sources, DispatcherStatus& to) {
  for (const TextSource& from : sources) {
    IterationStatus& status = to.jobs[from.job].iterations[from.iteration];
    status.owed = OwedText(from.summary);
    if (status.waits_for.empty() && from.goes_on) status.waits_for = WaitsFor(status, from);
  }
}

StatusLister::StatusLister(const StatusSources& from, const StatusRequest& request,
                           const Caller& caller, DispatcherStatus& to)
    : from_(from), request_(request), caller_(caller), to_(to) {
  room_ = request.page_size > 0 ? std::min(request.page_size, kMostOnPage) : kMostOnPage;
  if (uint64_t number = 0; absl::SimpleAtoi(request.job, &number)) job_ = JobId(number);
}

absl::Status StatusLister::List() {
  ASSIGN_OR_RETURN(const StatusPlace first, ParsePlace(request_.page_token));
  if (request_.page_token.empty()) CountAll();
  for (const auto& [name, part] : kPlaces) {
    const bool lists = Asks(part) || (part == StatusPart::kJobs && Asks(StatusPart::kPartitions));
    if (part < first.part || !lists) continue;
    const StatusPlace from = part == first.part ? first : StatusPlace{part, {}, {}};
    if (part == StatusPart::kWorkers) ListWorkers(from);
    if (part == StatusPart::kJobs) ListJobs(from);
    if (part == StatusPart::kLinks) ListLinks(from);
    if (part == StatusPart::kDatasets) ListDatasets(from);
    if (part == StatusPart::kWork) ListWork(from);
    if (!to_.next_page_token.empty()) break;
  }
  return absl::OkStatus();
}

bool StatusLister::Asks(StatusPart part) const {
  return request_.parts.empty() || std::ranges::find(request_.parts, part) != request_.parts.end();
}

template <class... Ids>
bool StatusLister::Take(const char* part, const Ids&... ids) {
  if (room_-- > 0) return true;
  to_.next_page_token = absl::StrCat(part, ":", absl::StrJoin(std::make_tuple(ids...), ","));
  return false;
}

template <class Record>
bool StatusLister::Shows(const Record& record, const std::string& name) const {
  return (request_.name_space.empty() || NamespaceOf(name) == request_.name_space) &&
         Authorize(Action::kGetStatus, caller_, record).ok();
}

bool StatusLister::ShowsJob(const JobRecord& job) const {
  return (request_.job.empty() || job.id == job_ || job.name == request_.job) &&
         Shows(job, job.name);
}

bool StatusLister::SeesAll() const {
  return !caller_.has_value() || caller_->role == Role::kOperator;
}

bool StatusLister::ShowsWork(const DatasetWork& work) const {
  const auto dataset = state_.FindDataset(work.dataset_id);
  if (dataset != nullptr) return Shows(*dataset, dataset->id);
  // Its owner is not known any more.
  const std::string_view name_space = NamespaceOf(work.dataset_id);
  return (request_.name_space.empty() || name_space == request_.name_space) && SeesAll() &&
         Authorize(Action::kGetStatus, caller_, name_space).ok();
}

void StatusLister::CountAll() {
  if (Asks(StatusPart::kWorkers)) to_.num_workers = static_cast<int64_t>(state_.workers.size());
  if (Asks(StatusPart::kJobs)) {
    for (const auto& [id, job] : state_.jobs) to_.num_jobs += ShowsJob(job) ? 1 : 0;
  }
  if (Asks(StatusPart::kDatasets)) {
    for (const auto& [id, dataset] : state_.datasets)
      to_.num_datasets += Shows(*dataset, dataset->id) ? 1 : 0;
  }
  if (!Asks(StatusPart::kLinks)) return;
  IterationId last;
  bool shows = false;
  for (const auto& [session, peer] : shared_.sessions) {
    const IterationState* iteration = state_.FindIteration(session.first);
    if (std::exchange(last, session.first) != session.first)
      shows = iteration != nullptr && ShowsJob(state_.jobs.at(iteration->job));
    if (shows) to_.num_links += static_cast<int64_t>(from_.links.NumOf(session));
  }
}

void StatusLister::ListWorkers(const StatusPlace& first) {
  for (auto i = state_.workers.lower_bound(WorkerId(first.Id(0))); i != state_.workers.end(); ++i) {
    const auto& [id, worker] = *i;
    if (!Take("worker", id.value())) return;
    to_.workers.push_back(
        {.worker = id,
         .address = worker.address,
         .permits = worker.permits,
         .partitions = state_.PartitionsOn(id),
         .draining = worker.draining,
         .connected = shared_.workers.count(id) > 0,
         .silent_for = from_.liveness.SilenceOf(id, from_.now),
         .refuses = SeesAll() ? shared_.refusals.Of(id) : std::vector<std::string>()});
  }
}

void StatusLister::ListWork(const StatusPlace& first) {
  for (auto i = shared_.workers.lower_bound(WorkerId(first.Id(0))); i != shared_.workers.end();
       ++i) {
    const auto& [id, peer] = *i;
    if (peer->work.empty()) continue;
    if (!Take("work", id.value())) return;
    for (const DatasetWork& work : peer->work) {
      if (ShowsWork(work)) to_.work.push_back({id, state_.workers.at(id).address, work});
    }
  }
}

void StatusLister::ListJobs(const StatusPlace& first) {
  for (auto i = state_.jobs.lower_bound(JobId(first.Id(0))); i != state_.jobs.end(); ++i) {
    const JobRecord& job = i->second;
    if (!ShowsJob(job)) continue;
    // A job that continues, or whose partitions are all that is asked for, takes no room.
    const bool counts =
        (Asks(StatusPart::kJobs) || request_.job.empty()) && !first.IsIn({job.id.value()});
    if (counts && !Take("job", job.id.value())) return;
    to_.jobs.push_back(StatusOfJob(job));
    ListIterations(job, first);
    if (!to_.next_page_token.empty()) return;
  }
}

void StatusLister::ListLinks(const StatusPlace& first) {
  for (auto i =
           state_.repetitions.lower_bound({JobId(first.Id(0)), static_cast<int64_t>(first.Id(1))});
       i != state_.repetitions.end(); ++i) {
    const auto& [id, repetition] = i->first;
    const JobRecord& job = state_.jobs.at(id);
    if (!ShowsJob(job)) continue;
    const IterationId of = i->second;
    const bool continues = first.IsIn({id.value(), static_cast<uint64_t>(repetition)});
    for (auto session = shared_.sessions.lower_bound({of, ClientId(continues ? first.Id(2) : 0)});
         session != shared_.sessions.end() && session->first.first == of; ++session) {
      if (!ListLinksOf(job, repetition, session->first, first)) return;
    }
  }
}

bool StatusLister::ListLinksOf(const JobRecord& job, int64_t repetition, const SessionKey& session,
                               const StatusPlace& first) {
  const uint64_t client = session.second.value();
  const bool continues = first.IsIn({job.id.value(), static_cast<uint64_t>(repetition), client});
  std::vector<LinkStatus> links = from_.links.Of(session);
  const auto worker_of = [](const LinkStatus& link) { return link.counts.worker; };
  std::ranges::sort(links, {}, worker_of);
  const IterationState& iteration = state_.iterations.at(session.first);
  const auto reader = iteration.record.FindReader(session.second);
  const std::string reads =
      reader ? DescribeLinks(state_, iteration, *reader, shared_.options.max_links) : "";
  for (LinkStatus& link : links) {
    const WorkerId id = link.counts.worker;
    if (continues && id.value() < first.Id(3)) continue;
    if (!Take("link", job.id.value(), repetition, client, id.value())) return false;
    link.job = job.name;
    link.reads = reads;
    const auto worker = state_.workers.find(id);
    if (worker != state_.workers.end()) link.worker = worker->second.address;
    to_.links.push_back(std::move(link));
  }
  return true;
}

void StatusLister::ListDatasets(const StatusPlace& first) {
  std::map<const DatasetRecord*, int64_t> jobs_of;
  for (const auto& [id, job] : state_.jobs) ++jobs_of[job.dataset.get()];
  for (auto i = state_.datasets.lower_bound(first.dataset); i != state_.datasets.end(); ++i) {
    const DatasetRecord& dataset = *i->second;
    if (!Shows(dataset, dataset.id)) continue;
    if (!Take("dataset", dataset.id)) return;
    to_.datasets.push_back({.dataset_id = dataset.id,
                            .fingerprint = dataset.summary.fingerprint,
                            .spec_text = dataset.summary.spec_text,
                            .cardinality = dataset.summary.cardinality,
                            .definition_bytes = static_cast<int64_t>(dataset.definition.size()),
                            .jobs = jobs_of[&dataset],
                            .goes_in = from_.datasets.GoesIn(dataset.id, from_.now),
                            .owner = dataset.owner});
  }
}

JobStatus StatusLister::StatusOfJob(const JobRecord& job) const {
  JobStatus to = {.job = job.id,
                  .name = job.name,
                  .run_id = job.run_id,
                  .dataset_id = job.dataset->id,
                  .terms = job.terms,
                  .seed = job.seed,
                  .phase = job.cancelled        ? JobPhase::kCancelled
                           : state_.IsOver(job) ? JobPhase::kFinished
                                                : JobPhase::kActive,
                  .slowed_by = SlowedBy(job),
                  .owner = job.owner};
  if (const auto unread_for = from_.jobs.UnreadFor(job.id, from_.now)) {
    to.unread_for = *unread_for;
    to.goes_in = from_.jobs.TimeToLive(job) - to.unread_for;
  }
  const auto& feeds = from_.scaling.latest().jobs;
  if (const auto feed = feeds.find(job.id); feed != feeds.end()) to.feed = feed->second;
  return to;
}

std::string StatusLister::RoomFor(const JobRecord& job) const {
  if (std::string full = from_.placer.room().WhyFull(job); !full.empty()) return full;
  if (shared_.workers.empty()) return "a worker";
  const std::string* refused = nullptr;
  for (const auto& [id, peer] : shared_.workers) {
    refused = shared_.refusals.Find(id, *job.dataset);
    if (refused == nullptr) return "room on a worker";
  }
  return absl::StrCat("a worker that does not refuse the dataset (", *refused, ")");
}

void StatusLister::ListIterations(const JobRecord& job, const StatusPlace& first) {
  const std::vector<int64_t> past = state_.PastOf(job.id);
  const std::vector<IterationId> present = state_.IterationsOf(job.id);
  // The latest pass is always listed.
  const size_t shown = std::min(
      past.size(), Asks(StatusPart::kPartitions) ? kPastShown : size_t{present.empty() ? 1u : 0u});
  JobStatus& to = to_.jobs.back();
  to.earlier_iterations = static_cast<int64_t>(past.size() - shown);
  for (size_t i = 0; i < past.size() - shown; ++i) {
    const auto& ends = state_.past.at({job.id, past[i]}).ends;
    to.earlier_elements += std::accumulate(ends.begin(), ends.end(), Index{0});
  }
  // By repetition, so that an iteration which becomes past between two pages keeps its place.
  std::vector<std::pair<int64_t, const IterationState*>> all;
  for (size_t i = past.size() - shown; i < past.size(); ++i) all.push_back({past[i], nullptr});
  for (IterationId of : present) {
    const IterationState& iteration = state_.iterations.at(of);
    all.push_back({iteration.repetition, &iteration});
  }
  std::ranges::sort(all);
  const bool continues = first.IsIn({job.id.value()});
  for (const auto& [repetition, iteration] : all) {
    if (continues && repetition < static_cast<int64_t>(first.Id(1))) continue;
    if (iteration == nullptr) {
      ListPast(job, repetition, first);
    } else {
      ListPresent(job, *iteration, first);
    }
    if (!to_.next_page_token.empty()) return;
  }
}

template <class StatusOf>
void StatusLister::ListPartitions(const JobRecord& job, IterationStatus& to,
                                  const StatusPlace& first, const StatusOf& status_of) {
  if (!Asks(StatusPart::kPartitions)) return;
  const auto repetition = static_cast<uint64_t>(to.repetition);
  const bool continues = first.IsIn({job.id.value(), repetition});
  for (uint64_t p = continues ? std::max<uint64_t>(1, first.Id(2)) : 1;
       p <= static_cast<uint64_t>(to.num_partitions); ++p) {
    if (!Take("job", job.id.value(), repetition, p)) return;
    to.partitions.push_back(status_of(PartitionId(p)));
  }
}

void StatusLister::ListPast(const JobRecord& job, int64_t repetition, const StatusPlace& first) {
  const PastIteration& past = state_.past.at({job.id, repetition});
  IterationStatus& to = to_.jobs.back().iterations.emplace_back();
  to.iteration = past.id;
  to.repetition = repetition;
  to.closed = to.finished = true;
  to.num_partitions = static_cast<int64_t>(past.ends.size());
  to.received = to.committed = std::accumulate(past.ends.begin(), past.ends.end(), Index{0});
  if (past.more != nullptr) {
    for (const PastIteration::Reader& reader : past.more->readers) {
      if (reader.status == protocol::ReaderStatus::kActive)
        to.readers.push_back({reader.client, reader.incarnation});
    }
  }
  ListPartitions(job, to, first, [&past](PartitionId partition) {
    const Index end = past.ends[partition.value() - 1];
    PartitionStatus status{.partition = partition, .placement = Placement(1), .worker = {}};
    status.ended = true;
    status.elements = status.received = status.committed = end;
    return status;
  });
}

// `room`: what partitions wait for that have no worker although they could be placed.
static PartitionStatus PartitionStatusOf(const SharedState& shared, const IterationState& iteration,
                                         PartitionId id, const WaitingPartitions& waiting,
                                         const std::string& room) {
  const size_t p = id.value() - 1;
  const protocol::PartitionRecord& partition = iteration.record.partitions[p];
  PartitionStatus status{
      .partition = id, .placement = partition.placement, .worker = partition.worker};
  std::optional<Index> end = partition.end;
  const auto context = shared.contexts.find(iteration.id);
  if (!end.has_value() && context != shared.contexts.end())
    end = context->second.partitions[p].ended;
  status.ended = end.has_value();
  status.elements = end.value_or(-1);
  for (const auto& [key, run] : iteration.splits[p].given) {
    status.splits_given += run.first_ordinal + static_cast<int64_t>(run.numbers.size());
  }
  const absl::Span<const ElementCounts::Sets> sets = shared.counts.Of(iteration.id);
  if (p < sets.size()) {
    status.received = sets[p].received.size();
    status.committed = sets[p].committed.size();
  }
  if (!status.worker && !iteration.record.closed)
    status.waits_for = waiting.IsAssignable(id) ? room : kWaitsForReaders;
  return status;
}

void StatusLister::ListPresent(const JobRecord& job, const IterationState& iteration,
                               const StatusPlace& first) {
  const auto found = shared_.contexts.find(iteration.id);
  const protocol::IterationContext* context =
      found == shared_.contexts.end() ? nullptr : &found->second;
  IterationSummary summary = from_.summaries.Of(state_, iteration, context, shared_.counts);
  const std::shared_ptr<const WaitingPartitions> waiting = summary.waiting;
  const std::string room = waiting->for_room.count > 0 ? RoomFor(job) : "";
  const protocol::IterationRecord& record = iteration.record;
  IterationStatus& to = to_.jobs.back().iterations.emplace_back();
  to.iteration = iteration.id;
  to.repetition = iteration.repetition;
  to.closed = record.closed;
  to.finished = record.finished;
  for (const protocol::ReaderRecord& reader : record.readers) {
    if (reader.status == protocol::ReaderStatus::kActive)
      to.readers.push_back({reader.client, reader.incarnation});
  }
  to.num_partitions = static_cast<int64_t>(record.partitions.size());
  to.received = summary.elements.received;
  to.committed = summary.elements.committed;
  if (!to.closed) to.waits_for = WaitsFor(from_.consumers.Lost(iteration.id, from_.now), context);
  texts_.push_back({.job = to_.jobs.size() - 1,
                    .iteration = to_.jobs.back().iterations.size() - 1,
                    .summary = std::move(summary),
                    .goes_on = state_.GoesOn(iteration),
                    .has_workers = !shared_.workers.empty(),
                    .room = room});
  ListPartitions(job, to, first, [&](PartitionId partition) {
    return PartitionStatusOf(shared_, iteration, partition, *waiting, room);
  });
}

int64_t StatusLister::PermitsOfAll() const {
  if (!permits_.has_value()) {
    permits_ = 0;
    for (const auto& [id, worker] : state_.workers) *permits_ += std::max(worker.permits, 1);
  }
  return *permits_;
}

std::string StatusLister::SlowedBy(const JobRecord& job) const {
  const JobQuota& quota = job.terms.quota;
  if (quota.max_permits == 0 && quota.max_bytes_in_flight == 0) return "";
  std::vector<std::string> bounds;
  const int64_t permits = quota.max_permits == 0 ? 0
                          : job.terms.mode == ShardingPolicy::kOff
                              ? static_cast<int64_t>(shared_.workers.size())
                              : PermitsOfAll();
  bool bytes = false, partitions = false;
  for (IterationId of : state_.IterationsOf(job.id)) {
    const IterationState& iteration = state_.iterations.at(of);
    if (!state_.GoesOn(iteration) || iteration.record.closed) continue;
    const auto open = static_cast<int64_t>(iteration.record.partitions.size());
    partitions |= quota.max_permits > 0 && open >= quota.max_permits && permits > open;
    if (quota.max_bytes_in_flight == 0) continue;
    for (auto session = shared_.sessions.lower_bound({of, ClientId()});
         session != shared_.sessions.end() && session->first.first == of; ++session) {
      bytes |= session->second->at_quota;
    }
  }
  if (bytes) bounds.push_back(absl::StrCat("max_bytes_in_flight ", quota.max_bytes_in_flight));
  if (partitions) bounds.push_back(absl::StrCat("max_permits ", quota.max_permits));
  return absl::StrJoin(bounds, ", ");
}

}  // namespace penstock::control
