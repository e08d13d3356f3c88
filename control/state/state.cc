// SPDX-License-Identifier: Apache-2.0
#include "control/state/state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/protocol/invariant.h"
#include "control/protocol/scoped_name.h"

namespace penstock::control {

namespace {

template <class Map, class Key>
auto* FindIn(Map& map, const Key& key) {
  auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// Drops the marks of bookmarks that the record no longer has.
void ForgetMarks(const protocol::PartitionRecord& partition, PartitionSplits& splits) {
  std::erase_if(splits.marks, [&](const MarkedBookmark& marked) {
    return std::none_of(partition.bookmarks.begin(), partition.bookmarks.end(),
                        [&](const auto& b) { return b.index == marked.index; });
  });
}

// Drops the splits that only older bookmarks needed. No replay begins before the first bookmark any
// more.
void RetireSplits(const protocol::PartitionRecord& partition, PartitionSplits& splits) {
  if (partition.bookmarks.empty() || splits.marks.empty() ||
      splits.marks.front().index != partition.bookmarks.front().index) {
    return;
  }
  for (const SplitMark& mark : splits.marks.front().marks) {
    GivenSplits& given = splits.given;
    const ProviderKey now{mark.provider, mark.repetition};
    given.erase(given.lower_bound({mark.provider, INT64_MIN}), given.lower_bound(now));
    int64_t& retired = splits.retired[mark.provider];
    retired = std::max(retired, mark.repetition);
    const auto found = given.find(now);
    if (found == given.end()) continue;
    SplitRun& run = found->second;
    const int64_t end = run.first_ordinal + static_cast<int64_t>(run.numbers.size());
    const int64_t needed = std::min(mark.ordinal, end);
    if (needed <= run.first_ordinal) continue;
    run.numbers.erase(run.numbers.begin(), run.numbers.begin() + (needed - run.first_ordinal));
    run.first_ordinal = needed;
  }
}

// Drops the count of given splits for each pass that is over. A pass is over when all its splits
// have been given out and no partition has any of them. A partition that reaches such a pass later
// gets no splits. If a pass was abandoned before all its splits were given out, its count stays,
// and so do the counts of later passes.
void RetirePasses(const JobRecord& job, IterationState& iteration) {
  const bool own_splits = iteration.division.count > 0 || job.terms.deterministic;
  for (size_t p = 0; p < job.dataset->summary.plan.size(); ++p) {
    const auto provider = static_cast<int32_t>(p);
    while (true) {
      const ProviderKey pass{provider, iteration.PassesOverOf(provider)};
      const auto handed = iteration.handed_out.find(pass);
      if (handed == iteration.handed_out.end()) break;
      // If each partition has its own splits, there may be fewer partitions than shards, so that
      // some splits are never given out.
      if (!own_splits && handed->second < job.dataset->summary.plan[p].count) break;
      if (std::ranges::any_of(iteration.splits,
                              [&](const auto& splits) { return splits.given.contains(pass); }))
        break;
      iteration.handed_out.erase(handed);
      ++iteration.passes_over[provider];
    }
  }
}

// Drops the data that only a replay needs. The number of splits given out stays.
void ForgetReplays(IterationState& iteration) {
  for (protocol::PartitionRecord& partition : iteration.record.partitions) {
    partition.bookmarks = decltype(partition.bookmarks)();  // frees its memory too
  }
  for (PartitionSplits& splits : iteration.splits) {
    splits.marks = decltype(splits.marks)();
    for (auto& [key, run] : splits.given) {
      run.first_ordinal += static_cast<int64_t>(run.numbers.size());
      run.numbers = decltype(run.numbers)();
    }
  }
}

// Returns the client that may begin to read, or cease to, by the change; an empty id if there is
// none.
ClientId ReaderAlteredBy(const protocol::IterationChange& change) {
  if (const auto* joined = std::get_if<protocol::ReaderJoined>(&change)) return joined->client;
  if (const auto* replaced = std::get_if<protocol::ReaderReplaced>(&change))
    return replaced->client;
  if (const auto* gone = std::get_if<protocol::ReaderGone>(&change)) return gone->client;
  return {};
}

bool IsActive(const protocol::IterationRecord& record, ClientId client) {
  const auto found = record.FindReader(client);
  return found && record.readers[*found].status == protocol::ReaderStatus::kActive;
}

}  // namespace

IterationState NewIteration(const IterationCreated& c, const JobTerms& terms) {
  IterationState created{.id = c.iteration,
                         .job = c.job,
                         .repetition = c.repetition,
                         .division = c.division,
                         .leads = c.leads,
                         .passes_over = c.passes_over};
  created.record.at_least_once = terms.visitation == Visitation::kAtLeastOnce;
  if (terms.coordinated()) {
    created.record.rounds.consumers = terms.num_consumers;
    created.record.rounds.remainder_policy = terms.remainder_policy;
  } else {
    created.record.order_consumers = terms.num_consumers;
  }
  created.record.commit_policy = terms.cross_trainer_cache ? protocol::CommitPolicy::kNever
                                 : terms.ack_mode == AckMode::kOnDelivery
                                     ? protocol::CommitPolicy::kOnDelivery
                                     : protocol::CommitPolicy::kExplicit;
  return created;
}

struct Applying {
  State& state;

  // Takes the iteration's partitions out of `placed`, before the iteration ends.
  void TakeFromWorkers(const IterationState& iteration) const {
    if (!state.GoesOn(iteration)) return;
    for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
      const WorkerId worker = iteration.record.partitions[p].worker;
      if (worker) state.placed.Remove(worker, {iteration.id, PartitionId(p + 1)});
    }
  }

  // Updates `placed`, before the change.
  void UpdatePlaced(const IterationState& iteration,
                    const protocol::IterationChange& change) const {
    if (!state.GoesOn(iteration)) return;
    if (std::holds_alternative<protocol::IterationClosed>(change)) TakeFromWorkers(iteration);
    if (const auto* raised = std::get_if<protocol::PlacementRaised>(&change)) {
      const WorkerId worker = iteration.record.partition(raised->partition).worker;
      if (worker) state.placed.Remove(worker, {iteration.id, raised->partition});
    }
    if (const auto* assigned = std::get_if<protocol::PartitionAssigned>(&change))
      state.placed.Add(assigned->worker, {iteration.id, assigned->partition});
  }

  void operator()(const LifeBegun& c) const {
    state.lives.push_back(c.begun);
    if (state.lives.size() > kLivesKept) state.lives.erase(state.lives.begin());
  }

  // Updates the job's part of `uses`, after the change.
  void UpdateUse(JobId id) const {
    const JobRecord& job = state.jobs.at(id);
    state.uses.SetJob(job, state.UseOf(job));
  }

  void operator()(const DatasetRegistered& c) const {
    std::shared_ptr<const DatasetRecord>& registered = state.datasets[c.dataset->id];
    if (registered != nullptr) state.uses.DropReference(*registered);
    state.uses.AddReference(*c.dataset);
    registered = c.dataset;
    // Each number is used only once, over all namespaces.
    const std::string_view name = NameIn(c.dataset->id);
    while (name == absl::StrCat(state.next_dataset) ||
           state.datasets.count(absl::StrCat(state.next_dataset)) > 0) {
      ++state.next_dataset;
    }
  }
  void operator()(const DatasetUnregistered& c) const {
    const auto dataset = state.datasets.find(c.id);
    state.uses.DropReference(*dataset->second);
    state.datasets.erase(dataset);
  }

  void operator()(const JobCreated& c) const {
    state.next_job = std::max(state.next_job, c.job.id.value() + 1);
    state.job_names[c.job.name] = c.job.id;
    state.jobs.insert_or_assign(c.job.id, c.job);
    state.uses.AddReference(*c.job.dataset);
    UpdateUse(c.job.id);
  }
  void operator()(const JobCancelled& c) const {
    for (IterationId iteration : state.IterationsOf(c.job))
      TakeFromWorkers(state.iterations.at(iteration));
    state.jobs.at(c.job).cancelled = true;
    for (IterationId iteration : state.IterationsOf(c.job)) {
      ForgetReplays(state.iterations.at(iteration));
    }
    UpdateUse(c.job);
  }
  void operator()(const JobRemoved& c) const {
    for (IterationId iteration : state.IterationsOf(c.job)) {
      TakeFromWorkers(state.iterations.at(iteration));
      state.repetitions.erase({c.job, state.iterations.at(iteration).repetition});
      state.iterations.erase(iteration);
    }
    state.past.erase(state.past.lower_bound({c.job, INT64_MIN}),
                     state.past.upper_bound({c.job, INT64_MAX}));
    const JobRecord& job = state.jobs.at(c.job);
    auto name = state.job_names.find(job.name);
    if (name != state.job_names.end() && name->second == c.job) state.job_names.erase(name);
    state.uses.SetJob(job, {});
    state.uses.DropReference(*job.dataset);
    state.jobs.erase(c.job);
  }

  void operator()(const IterationCreated& c) const {
    state.next_iteration = std::max(state.next_iteration, c.iteration.value() + 1);
    state.repetitions[{c.job, c.repetition}] = c.iteration;
    state.iterations.insert_or_assign(c.iteration, NewIteration(c, state.jobs.at(c.job).terms));
    UpdateUse(c.job);
  }
  void operator()(const IterationRetired& c) const {
    const IterationState& iteration = state.iterations.at(c.iteration);
    TakeFromWorkers(iteration);
    const std::pair key(iteration.job, iteration.repetition);
    state.past.insert_or_assign(key, ToPast(iteration));
    state.repetitions.erase(key);
    state.iterations.erase(c.iteration);
  }
  void operator()(const FormatFinalised& c) const { state.format = c.format; }
  void operator()(const IterationRecalled& c) const {
    IterationState recalled = *state.FindPast(c.job, c.repetition);
    state.past.erase({c.job, c.repetition});
    state.repetitions[{c.job, c.repetition}] = recalled.id;
    state.iterations.insert_or_assign(recalled.id, std::move(recalled));
  }
  void operator()(const IterationAltered& c) const {
    IterationState& iteration = state.iterations.at(c.iteration);
    const ClientId client = ReaderAlteredBy(c.change);
    const bool was_active = client && IsActive(iteration.record, client);
    UpdatePlaced(iteration, c.change);
    protocol::Apply(iteration.record, c.change);
    iteration.splits.resize(iteration.record.partitions.size());
    if (const auto* bookmark_added = std::get_if<protocol::BookmarkAdded>(&c.change)) {
      const size_t at = bookmark_added->partition.value() - 1;
      ForgetMarks(iteration.record.partitions[at], iteration.splits[at]);
    }
    if (const auto* retired = std::get_if<protocol::BookmarksRetired>(&c.change)) {
      const size_t at = retired->partition.value() - 1;
      ForgetMarks(iteration.record.partitions[at], iteration.splits[at]);
      RetireSplits(iteration.record.partitions[at], iteration.splits[at]);
      RetirePasses(state.jobs.at(iteration.job), iteration);
    }
    if (std::holds_alternative<protocol::IterationFinished>(c.change)) {
      ForgetReplays(iteration);
      protocol::ForgetHistories(iteration.record);
    }
    if (client && state.GoesOn(iteration))
      state.uses.AddReads(state.jobs.at(iteration.job), client,
                          int{IsActive(iteration.record, client)} - int{was_active});
    if (std::holds_alternative<protocol::IterationFinished>(c.change)) UpdateUse(iteration.job);
  }
  void operator()(const IterationFailed& c) const {
    IterationState& iteration = state.iterations.at(c.iteration);
    TakeFromWorkers(iteration);
    iteration.failure = c.status;
    ForgetReplays(iteration);
    UpdateUse(iteration.job);
  }

  void operator()(const SplitsGiven& c) const {
    IterationState& iteration = state.iterations.at(c.partition.iteration);
    const ProviderKey key{c.run.provider, c.run.repetition};
    GivenSplits& given = iteration.splits[c.partition.partition.value() - 1].given;
    int64_t& handed_out = iteration.handed_out[key];
    if (!given.contains(key)) {  // a restored partition's earlier splits are retired
      given[key].first_ordinal = c.run.first_ordinal;
      handed_out += c.run.first_ordinal;
    }
    SplitRun& run = given[key];
    run.provider = key.provider;
    run.repetition = key.repetition;
    run.numbers.insert(run.numbers.end(), c.run.numbers.begin(), c.run.numbers.end());
    run.no_more = c.run.no_more;
    handed_out += static_cast<int64_t>(c.run.numbers.size());
  }
  void operator()(const BookmarkMarked& c) const {
    IterationState& iteration = state.iterations.at(c.partition.iteration);
    iteration.splits[c.partition.partition.value() - 1].marks.push_back(c.bookmark);
  }

  void operator()(const WorkerRegistered& c) const {
    std::erase_if(state.former_workers,
                  [&](const FormerWorker& former) { return former.id == c.worker.id; });
    state.workers[c.worker.id] = c.worker;
  }
  void operator()(const WorkerDraining& c) const { state.workers.at(c.worker).draining = true; }
  void operator()(const WorkerGone& c) const {
    const auto worker = state.workers.find(c.worker);
    std::vector<FormerWorker>& former = state.former_workers;
    if (!worker->second.owner.empty()) {
      if (former.size() == kFormerWorkersKept) former.erase(former.begin());
      former.push_back({c.worker, worker->second.owner});
    }
    state.workers.erase(worker);
  }

  void operator()(const Answered& c) const { state.answers.Add(c.answer); }
};

void State::Apply(const Change& change) {
  if (const absl::Status fits = Fits(*this, change); !fits.ok()) {
    protocol::OnInvariantBroken(__FILE__, __LINE__, std::string(fits.message()).c_str());
  }
  // All or nothing: an exception here ends the process, because a partly changed state is not
  // valid.
  [&]() noexcept { std::visit(Applying{*this}, change); }();
}

// --- Fitting ---------------------------------------------------------------------

namespace {

absl::Status Wrong(const std::string& what) {
  return absl::FailedPreconditionError(what);
}

struct Fitting {
  const State& state;

  absl::Status operator()(const LifeBegun& c) const {
    const Life& life = c.begun.life;
    if (life.term <= state.term())
      return Wrong(absl::StrCat("a new term is not above the last one: ", life.term.value()));
    const uint64_t journal = state.lives.empty() ? 0 : state.lives.back().life.journal;
    if (journal == 0 || life.journal == journal) return absl::OkStatus();
    return Wrong(absl::StrCat("a life belongs to journal ", absl::Hex(life.journal),
                              ", but this is journal ", absl::Hex(journal)));
  }
  absl::Status operator()(const DatasetRegistered& c) const {
    if (c.dataset != nullptr && !c.dataset->id.empty()) return absl::OkStatus();
    return Wrong("a dataset has no id");
  }
  absl::Status operator()(const DatasetUnregistered& c) const {
    if (state.datasets.count(c.id) > 0) return absl::OkStatus();
    return Wrong(absl::StrCat("unknown dataset ", c.id));
  }
  absl::Status operator()(const JobCreated& c) const {
    if (c.job.id && c.job.dataset != nullptr && state.FindJob(c.job.id) == nullptr) {
      return absl::OkStatus();
    }
    return Wrong(absl::StrCat("a job is created twice or without a dataset: ", c.job.name));
  }
  absl::Status operator()(const JobCancelled& c) const { return HasJob(c.job); }
  absl::Status operator()(const JobRemoved& c) const { return HasJob(c.job); }
  absl::Status operator()(const IterationCreated& c) const {
    if (absl::Status job = HasJob(c.job); !job.ok()) return job;
    const Division& division = c.division;
    const bool shards_are_there =
        std::all_of(division.shards.begin(), division.shards.end(),
                    [&](int64_t shard) { return shard >= 0 && shard < division.count; });
    if (division.count < 0 || !shards_are_there ||
        (division.count > 0) == division.shards.empty()) {
      return Wrong(absl::StrCat(ToString(c.iteration), " has shards outside its ", division.count,
                                " shards"));
    }
    if (c.iteration && state.FindIteration(c.iteration) == nullptr &&
        state.FindIteration(c.job, c.repetition) == nullptr &&
        !state.past.contains({c.job, c.repetition})) {
      return absl::OkStatus();
    }
    return Wrong(absl::StrCat(ToString(c.iteration), " is created twice"));
  }
  absl::Status operator()(const IterationAltered& c) const {
    const IterationState* iteration = state.FindIteration(c.iteration);
    const bool one_too_many =
        iteration != nullptr && iteration->division.count > 0 &&
        std::holds_alternative<protocol::PartitionOpened>(c.change) &&
        iteration->record.partitions.size() == iteration->division.shards.size();
    if (iteration != nullptr && !one_too_many && protocol::Fits(iteration->record, c.change)) {
      return absl::OkStatus();
    }
    return Wrong(
        absl::StrCat("change number ", c.change.index(), " does not fit ", ToString(c.iteration)));
  }
  absl::Status operator()(const IterationFailed& c) const {
    if (state.FindIteration(c.iteration) != nullptr && !c.status.ok()) return absl::OkStatus();
    return Wrong(absl::StrCat("unknown ", ToString(c.iteration)));
  }
  absl::Status operator()(const SplitsGiven& c) const {
    const PartitionSplits* splits = Splits(c.partition);
    if (splits == nullptr) return Wrong(absl::StrCat("unknown ", ToString(c.partition.partition)));
    auto given = splits->given.find({c.run.provider, c.run.repetition});
    int64_t end = std::max<int64_t>(c.run.first_ordinal, 0);
    if (given != splits->given.end()) {
      if (given->second.no_more) return Wrong("splits are given after the last one");
      end = given->second.first_ordinal + static_cast<int64_t>(given->second.numbers.size());
    }
    if (c.run.first_ordinal == end) return absl::OkStatus();
    return Wrong(
        absl::StrCat("splits are given from ordinal ", c.run.first_ordinal, ", expected ", end));
  }
  absl::Status operator()(const BookmarkMarked& c) const {
    if (Splits(c.partition) != nullptr) return absl::OkStatus();
    return Wrong(absl::StrCat("unknown ", ToString(c.partition.partition)));
  }
  absl::Status operator()(const WorkerRegistered& c) const {
    return c.worker.id ? absl::OkStatus() : Wrong("a worker has no id");
  }
  absl::Status operator()(const WorkerDraining& c) const { return HasWorker(c.worker); }
  absl::Status operator()(const WorkerGone& c) const { return HasWorker(c.worker); }
  absl::Status operator()(const Answered&) const { return absl::OkStatus(); }
  absl::Status operator()(const FormatFinalised& c) const {
    if (c.format > state.format) return absl::OkStatus();
    return Wrong(absl::StrCat("format ", c.format, " is finalised after format ", state.format));
  }
  absl::Status operator()(const IterationRetired& c) const {
    const IterationState* iteration = state.FindIteration(c.iteration);
    if (iteration != nullptr && iteration->record.finished && !iteration->failure)
      return absl::OkStatus();
    return Wrong(
        absl::StrCat(ToString(c.iteration), " does not exist, is not finished, or has failed"));
  }
  absl::Status operator()(const IterationRecalled& c) const {
    if (state.past.contains({c.job, c.repetition})) return absl::OkStatus();
    return Wrong(absl::StrCat("unknown past repetition ", c.repetition, " of ", ToString(c.job)));
  }

  absl::Status HasJob(JobId job) const {
    return state.FindJob(job) != nullptr ? absl::OkStatus()
                                         : Wrong(absl::StrCat("unknown ", ToString(job)));
  }
  absl::Status HasWorker(WorkerId worker) const {
    return state.FindWorker(worker) != nullptr ? absl::OkStatus()
                                               : Wrong(absl::StrCat("unknown ", ToString(worker)));
  }
  const PartitionSplits* Splits(const PartitionKey& key) const {
    const IterationState* iteration = state.FindIteration(key.iteration);
    if (iteration == nullptr || !iteration->record.Has(key.partition)) return nullptr;
    return &iteration->splits[key.partition.value() - 1];
  }
};

}  // namespace

IterationId IterationOf(const Change& change) {
  return std::visit(
      [](const auto& c) {
        if constexpr (requires { IterationId(c.iteration); }) {
          return IterationId(c.iteration);
        } else if constexpr (requires { IterationId(c.partition.iteration); }) {
          return IterationId(c.partition.iteration);
        } else {
          return IterationId();
        }
      },
      change);
}

absl::Status Fits(const State& state, const Change& change) {
  return std::visit(Fitting{state}, change);
}

// --- Questions -------------------------------------------------------------------

ShardOf IterationState::ShardOfPartition(PartitionId partition) const {
  if (division.count == 0) return {};
  return {division.mode, division.count, division.shards[partition.value() - 1]};
}

int64_t IterationState::PassesOverOf(int32_t provider) const {
  const auto found = passes_over.find(provider);
  return found == passes_over.end() ? 0 : found->second;
}

std::shared_ptr<const DatasetRecord> State::FindDataset(const std::string& id) const {
  auto found = datasets.find(id);
  return found == datasets.end() ? nullptr : found->second;
}

std::shared_ptr<const DatasetRecord> State::FindDataset(const std::string& id,
                                                        uint64_t edition) const {
  std::shared_ptr<const DatasetRecord> now = FindDataset(id);
  if (edition == 0 || (now != nullptr && now->edition == edition)) return now;
  for (const auto& [job_id, job] : jobs) {
    if (job.dataset->id == id && job.dataset->edition == edition) return job.dataset;
  }
  return nullptr;
}

const JobRecord* State::FindJob(JobId id) const {
  return FindIn(jobs, id);
}

const JobRecord* State::FindJobByName(const std::string& name) const {
  const JobId* id = FindIn(job_names, name);
  return id == nullptr ? nullptr : FindJob(*id);
}

const IterationState* State::FindIteration(IterationId id) const {
  return FindIn(iterations, id);
}

const IterationState* State::FindIteration(JobId job, int64_t repetition) const {
  const IterationId* id = FindIn(repetitions, std::pair(job, repetition));
  return id == nullptr ? nullptr : FindIteration(*id);
}

std::optional<IterationState> State::FindPast(JobId job, int64_t repetition) const {
  const auto found = past.find({job, repetition});
  if (found == past.end()) return std::nullopt;
  return FromPast(job, jobs.at(job).terms, repetition, found->second);
}

std::vector<int64_t> State::PastOf(JobId job) const {
  std::vector<int64_t> found;
  for (auto i = past.lower_bound({job, INT64_MIN}); i != past.end() && i->first.first == job; ++i)
    found.push_back(i->first.second);
  return found;
}

const WorkerRecord* State::FindWorker(WorkerId id) const {
  return FindIn(workers, id);
}

std::string State::OwnerOf(WorkerId id) const {
  if (const WorkerRecord* worker = FindWorker(id); worker != nullptr) return worker->owner;
  const auto former = std::ranges::find(former_workers, id, &FormerWorker::id);
  return former == former_workers.end() ? "" : former->owner;
}

uint64_t State::NeededKey() const {
  const bool needed =
      std::ranges::any_of(jobs, [](const auto& entry) { return entry.second.needs_key(); });
  return needed && !lives.empty() ? lives.back().key_id : 0;
}

std::vector<IterationId> State::IterationsOf(JobId job) const {
  std::vector<IterationId> found;
  for (auto i = repetitions.lower_bound({job, INT64_MIN});
       i != repetitions.end() && i->first.first == job; ++i) {
    found.push_back(i->second);
  }
  return found;
}

bool State::IsOver(const JobRecord& job) const {
  if (job.cancelled) return true;
  const std::vector<IterationId> of_job = IterationsOf(job.id);
  const auto past_of_job = past.lower_bound({job.id, INT64_MIN});
  bool all_finished =
      !of_job.empty() || (past_of_job != past.end() && past_of_job->first.first == job.id);
  for (IterationId id : of_job) {
    const IterationState& iteration = iterations.at(id);
    if (iteration.failure.has_value()) return true;
    all_finished &= iteration.record.finished;
  }
  return all_finished;
}

PlacedPartitions State::ComputePlaced() const {
  PlacedPartitions computed;
  for (const auto& [id, iteration] : iterations) {
    if (!GoesOn(iteration)) continue;
    for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
      const WorkerId worker = iteration.record.partitions[p].worker;
      if (worker) computed.Add(worker, {id, PartitionId(p + 1)});
    }
  }
  return computed;
}

}  // namespace penstock::control
