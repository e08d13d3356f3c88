// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/job_reader.h"

#include <algorithm>
#include <future>
#include <limits>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "control/protocol/restore.h"
#include "control/protocol/scoped_name.h"
#include "control/sync/boot_time.h"
#include "control/sync/mutex.h"
#include "dataplane/client/advice.h"
#include "dataplane/client/client_settings.h"
#include "dataplane/client/distribute_options.h"
#include "dataplane/client/registration.h"
#include "dataplane/client/status_server.h"
#include "dataplane/memory/catch_exhausted.h"
#include "dataplane/transfer/library.h"
#include "dataplane/transfer/ucx/settings.h"
#include "dataplane/transfer/ucx/transport.h"
#include "penstock/status.h"

namespace penstock::client {
namespace {

// How many saved states are kept that are neither committed nor superseded. Older states can no
// longer be committed.
constexpr size_t kMostSaves = 1024;
constexpr std::chrono::milliseconds kJoinPolls(10);  // how often a join checks for cancellation
// How often a dataset is registered, at most, for one join.
constexpr int kMostRegistrations = 3;

// In a position, replaces a ReaderState that is in the node's section.
constexpr uint64_t kInSection = 3;

// The readers of running datasets. All passes of one node find the same reader here.
struct Registry {
  Mutex mu;
  std::map<std::pair<const CommitListeners*, int>, std::weak_ptr<JobReader>> readers GUARDED_BY(mu);
};
Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

// How many repetitions of a named job were begun through a node of a Dataset, by any iterator. Each
// iterator reads another repetition, as tf.data service's iterators do.
struct Repetitions {
  Mutex mu;
  std::map<std::weak_ptr<const Dataset::Node>, int64_t, std::owner_less<>> begun GUARDED_BY(mu);
};
Repetitions& TheRepetitions() {
  static Repetitions& repetitions = *new Repetitions;
  return repetitions;
}

void CountAsBegun(const NodePtr& node, int64_t repetition) {
  Repetitions& repetitions = TheRepetitions();
  MutexLock lock(repetitions.mu);
  std::erase_if(repetitions.begun, [](const auto& entry) { return entry.first.expired(); });
  int64_t& begun = repetitions.begun[node];
  begun = std::max(begun, repetition + 1);
}

int64_t BeginNext(const NodePtr& node) {
  Repetitions& repetitions = TheRepetitions();
  MutexLock lock(repetitions.mu);
  return repetitions.begun[node]++;
}

uint64_t WorkersDataset(const Dataset::Node& node) {
  return node.inputs.empty() ? 0 : node.inputs[0]->fingerprint;
}

absl::StatusOr<JobState> JobStateIn(const StateSections& sections, int node) {
  auto section = sections.find(node);
  if (section == sections.end()) return JobState();  // it was not read yet
  StateReader reader(section->second.bytes);
  ASSIGN_OR_RETURN(JobState state, ReadJobState(reader));
  RETURN_IF_ERROR(reader.ExpectEnd());
  return state;
}

}  // namespace

std::shared_ptr<JobReader> JobReader::Of(const BuildSite& site) {
  CommitListeners* commits = site.run().commits;
  // In the body of a function each opening has its own reader, as each iterator has.
  if (commits == nullptr || site.in_body()) return std::shared_ptr<JobReader>(new JobReader(site));
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  std::erase_if(registry.readers, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<JobReader>& known = registry.readers[{commits, site.number()}];
  if (std::shared_ptr<JobReader> reader = known.lock()) return reader;
  std::shared_ptr<JobReader> reader(new JobReader(site));
  known = reader;
  // The listener keeps the reader between two passes, as long as the dataset runs.
  commits->Add([reader](uint64_t save) { return reader->Commit(save); });
  commits->AddStop([reader](absl::Duration bound) { reader->Stop(bound); });
  return reader;
}

JobReader::JobReader(const BuildSite& site)
    : node_(site.node_ptr()),
      number_(site.number()),
      options_(OfMember(FromAttrs(site.node().attrs))),
      states_(site.in_body() ? nullptr : site.run().states),
      // False where a state records the deliveries, and where the consumers of a round get it
      // together. Also false in the body of a function: its reading ends before the elements that
      // it helps to make are given.
      delivers_later_(
          !site.in_body() && TermsOf(options_).keep == Keep::kTaken &&
          !options_.cross_trainer_cache.has_value() &&
          (!options_.num_consumers.has_value() || options_.order == MergeOrder::kDeterministic)),
      cancelled_(site.run().cancelled),
      pool_(site.pool()),
      client_(RandomId()),
      incarnation_(RandomId()) {}

JobReader::~JobReader() {
  sessions_.clear();  // before the stub they use
}

absl::StatusOr<std::optional<Element>> JobReader::Next(int64_t pass) {
  RETURN_IF_ERROR(EnsureJoined());
  int64_t repetition;
  std::vector<std::shared_ptr<Session>> over;  // destroyed outside the lock
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mu_);
    repetition = RepetitionOf(pass);
    ASSIGN_OR_RETURN(session, SessionOf(repetition));
    // Under keep = kTaken a repetition that was read to its end is not needed any more.
    for (auto other = sessions_.begin(); other != sessions_.end() && !CommitsStates();) {
      const bool done = other->first != repetition && other->second->ended();
      if (done) over.push_back(std::move(other->second));
      other = done ? sessions_.erase(other) : std::next(other);
    }
  }
  absl::StatusOr<std::optional<Element>> next = session->Next();
  if (next.ok() && !std::exchange(advised_, true) && !next->has_value()) {
    if (const int64_t elements = session->others_took_all(); elements > 0)
      AdviseOfNothingLeft(options_.job_name, repetition, elements, *StderrEventLog());
  }
  return next;
}

bool JobReader::Ready(int64_t pass) {
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mu_);
    session = SessionIn(pass);
  }
  return session != nullptr && session->Ready();
}

bool JobReader::OthersTookAll(int64_t pass) {
  MutexLock lock(mu_);
  const std::shared_ptr<Session> session = SessionIn(pass);
  return session != nullptr && session->others_took_all() > 0;
}

std::shared_ptr<Session> JobReader::SessionIn(int64_t pass) const {
  if (!present_.has_value() || present_->pass != pass) return nullptr;
  const auto found = sessions_.find(present_->repetition);
  return found == sessions_.end() ? nullptr : found->second;
}

bool JobReader::CountsRepetitions() const {
  return !options_.job_name.empty() && !options_.cross_trainer_cache.has_value();
}

int64_t JobReader::RepetitionOf(int64_t pass) {
  if (present_.has_value() && present_->pass == pass) return present_->repetition;
  int64_t repetition = pass;
  if (CountsRepetitions()) {
    repetition = BeginNext(node_);
  } else if (present_.has_value()) {
    repetition = present_->repetition + pass - present_->pass;
  }
  present_ = {pass, repetition};
  return repetition;
}

absl::Status JobReader::EnsureJoined() {
  if (joined_) return absl::OkStatus();
  MutexLock joining_lock(joining_mu_);  // Next() and Commit() may both join
  {
    MutexLock lock(mu_);
    if (job_.has_value()) return absl::OkStatus();
  }
  if (stub_ == nullptr) {
    ASSIGN_OR_RETURN(const ClientSettings settings, ReadClientSettings(ProcessEnvironment()));
    RETURN_IF_ERROR(transfer::ucx::SetLanes(settings.ucx_lanes));
    RETURN_IF_ERROR(transfer::LoadTransports(settings.transports));
    transport_preference_ = MakeTransportPreference(options_, settings);
    // Otherwise it is opened when a worker is found that offers nothing better.
    if (transfer::ucx::IsNamed(transport_preference_.protocol, transport_preference_.fallback))
      transfer::ucx::OpenEarly();
    tls_ = settings.tls;
    tcp_ = settings.tcp;
    StartStatusServer(settings.metrics_port, settings.metrics_token);
    ASSIGN_OR_RETURN(stub_, control::DispatcherStub::Make(options_.service, tls_));
  }
  std::stop_source stop;
  std::future<absl::StatusOr<control::JobAnswer>> joining;
  RETURN_IF_ERROR(CatchExhausted("joining the job", [&] {
    joining = std::async(std::launch::async, [&] { return Join(stop.get_token()); });
    return absl::OkStatus();
  }));
  while (joining.wait_for(kJoinPolls) == std::future_status::timeout) {
    if (cancelled_ != nullptr && cancelled_->load()) stop.request_stop();
  }
  ASSIGN_OR_RETURN(control::JobAnswer job, joining.get());
  MutexLock lock(mu_);
  if (restored_.has_value() &&
      (restored_->reader.job != job.job ||
       (restored_->job_mark != 0 && restored_->job_mark != MarkOfJob(job.token)))) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the state is of ", ToString(restored_->reader.job), " '", restored_->reader.job_name,
        "', but the dispatcher at ", stub_->address(), " has another job (", ToString(job.job),
        ") under that name: it has lost its journal, or the job was removed; to go on there, "
        "Restore() the states of all ranks"));
  }
  job_ = std::move(job);
  merged_states_.reset();
  if (restored_.has_value()) {
    // Earlier repetitions begin too: they claim what was delivered of them and is not committed,
    // and ask for nothing more.
    for (const ReaderState::Repetition& its : restored_->reader.repetitions) {
      const absl::Status begun = SessionOf(its.number).status();
      if (!begun.ok()) job_.reset();  // the next call joins again
      RETURN_IF_ERROR(begun);
    }
    restored_.reset();
  }
  joined_ = true;
  return absl::OkStatus();
}

absl::StatusOr<control::JobAnswer> JobReader::Join(std::stop_token stop) {
  const control::CallOptions call{.timeout = options_.timeout, .stop = stop};
  control::GetOrCreateJobRequest request;
  request.request = NewRequest();
  request.name_space = options_.name_space;
  std::string name = options_.job_name;
  if (node_->inputs.empty() && !name.empty()) {
    // With the id in the name, datasets that were registered apart may be read under one name.
    name = absl::StrCat("dataset_id=/", Get<std::string>(node_->attrs, "dataset_id"), "/", name);
  }
  if (!name.empty()) {
    request.name = control::ScopedName(options_.name_space, name);
  }
  AdviseIfEachRankReadsAll(Dataset(node_), options_, *StderrEventLog());
  {
    MutexLock lock(mu_);
    request.run_id = options_.run_id;
    request.seed = options_.seed;
    if (restored_.has_value()) request.name = restored_->reader.job_name;
    if (merged_states_.has_value()) {
      if (request.name.empty()) request.name = merged_states_->job_name;
      if (!merged_states_->run_id.empty()) request.run_id = merged_states_->run_id;
      request.seed = merged_states_->seed;
    }
  }
  request.terms = TermsOf(options_);
  std::optional<control::Restoration> restoration;
  {
    MutexLock lock(mu_);
    if (merged_states_.has_value()) restoration = merged_states_->restoration;
  }
  const auto join = [&] {
    return restoration.has_value() ? stub_->RestoreJob({request, *restoration}, call)
                                   : stub_->GetOrCreateJob(request, call);
  };
  if (node_->inputs.empty()) {
    request.dataset_id = Get<std::string>(node_->attrs, "dataset_id");
    return join();
  }
  ASSIGN_OR_RETURN(control::RegisterDatasetRequest dataset,
                   RegistrationOf(Dataset(node_->inputs[0]), options_.name_space, cancelled_));
  request.dataset_fingerprint = dataset.summary.fingerprint;
  for (int attempt = 1;; ++attempt) {
    ASSIGN_OR_RETURN(control::RegisterDatasetAnswer answer,
                     stub_->GetOrRegisterDataset(dataset, call));
    request.dataset_id = answer.dataset_id;
    absl::StatusOr<control::JobAnswer> job = join();
    // Another dispatcher may have begun in between that does not know the dataset.
    if (!absl::IsNotFound(job.status()) || attempt == kMostRegistrations) return job;
    dataset.request = NewRequest();
    request.request = NewRequest();
  }
}

absl::StatusOr<std::shared_ptr<Session>> JobReader::SessionOf(int64_t repetition) {
  const auto found = sessions_.find(repetition);
  if (found != sessions_.end()) return found->second;
  SessionOptions options{
      .distribute = options_,
      .transport_preference = transport_preference_,
      .tls = tls_,
      .tcp = tcp_,
      .spec = node_->spec,
      .job = *job_,
      .repetition = repetition,
      .client = client_,
      .incarnation = incarnation_,
      .state = took_up_ ? std::optional<IndicesByPartition>(IndicesByPartition()) : std::nullopt,
      .delivers_later = delivers_later_,
      .pool = &pool_,
      .cancelled = cancelled_};
  if (restored_.has_value()) {
    const std::vector<ReaderState::Repetition>& repetitions = restored_->reader.repetitions;
    for (const ReaderState::Repetition& its : repetitions) {
      if (its.number == repetition) options.state = its.delivered;
    }
    options.claims_only = repetition < repetitions.back().number;
    options.heard = restored_->heard;
  }
  if (CountsRepetitions()) CountAsBegun(node_, repetition);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Begin(std::move(options), *stub_);
  if (!session.ok()) return OfReading(session.status());
  return sessions_.emplace(repetition, *std::move(session)).first->second;
}

bool JobReader::CommitsStates() const {
  return TermsOf(options_).keep == Keep::kCommitted;
}

ReaderState JobReader::StateNow(int64_t repetition) {
  if (restored_.has_value()) return restored_->reader;  // nothing has happened since
  ReaderState state;
  if (!job_.has_value()) return state;
  state.job = job_->job;
  state.job_name = job_->name;
  state.client = client_;
  for (const auto& [number, session] : sessions_) {
    if (number != repetition) state.repetitions.push_back({number, session->delivered()});
  }
  auto present = sessions_.find(repetition);
  state.repetitions.push_back({repetition, present == sessions_.end()
                                               ? IndicesByPartition()
                                               : present->second->delivered()});
  return state;
}

absl::Status JobReader::Save(int64_t pass, StateWriter& writer) {
  if (!CommitsStates()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Distribute of job '", options_.job_name,
        "' commits what it delivers (keep = kTaken): no state of it can be "
        "restored, since what comes after it is committed too; ask for keep = kCommitted"));
  }
  // The restored states of all ranks can be saved only after they have become a job.
  bool merged = false;
  {
    MutexLock lock(mu_);
    merged = merged_states_.has_value();
  }
  if (merged) RETURN_IF_ERROR(EnsureJoined());
  // A position that a node above keeps, to read again from in that very job, needs the job too. If
  // the job cannot be joined, Next() returns the error.
  if (writer.save_number() == 0 && states_ != nullptr) EnsureJoined().IgnoreError();
  MutexLock lock(mu_);
  JobState state{.reader = StateNow(job_.has_value() ? RepetitionOf(pass) : 0),
                 .terms = TermsOf(options_)};
  if (states_ == nullptr) {
    Write(state.reader, writer);
    return absl::OkStatus();
  }
  if (restored_.has_value()) {
    ReaderState reader = std::move(state.reader);
    state = *restored_;
    state.reader = std::move(reader);
  } else if (job_.has_value()) {
    state.job_mark = MarkOfJob(job_->token);
    for (const auto& [number, session] : sessions_) {
      const control::Heard heard = session->heard();
      if (heard.sequence >= state.heard.sequence) state.heard = heard;
    }
    state.seed = job_->seed;
    state.dataset = WorkersDataset(*node_);
  }
  read_ahead_ |= writer.save_number() == 0;  // a node above keeps the position for later
  lock.unlock();
  writer.WriteUnsigned(kInSection);
  return Put(std::move(state), writer);
}

absl::Status JobReader::Put(JobState state, StateWriter& writer) {
  if (writer.save_number() == 0) {
    writer.Attach([this, state = std::move(state)](StateWriter& whole) {
      if (state.reader.job && whole.save_number() != 0 && !ComesAgainInOrder()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "a node behind Distribute of job '", state.reader.job_name,
            "' has read ahead of what it gave, and what it read would come again in another "
            "order: ask for order kDeterministic, or put that node before Distribute. Where "
            "DistributeDataset() put it there: save behind a step with which a batch of the job "
            "ends, give PrefetchToDevice(0), or read a coordinated job (num_consumers)"));
      }
      return Put(state, whole);
    });
    return absl::OkStatus();
  }
  state.reader.save = writer.save_number();
  states_->Put(number_,
               state.reader.repetitions.empty() ? 0 : state.reader.repetitions.back().number,
               [this, state] { return SectionOf(state); });
  MutexLock lock(mu_);
  newest_save_ = std::max(newest_save_, state.reader.save);
  saves_[state.reader.save] = std::move(state.reader);
  if (saves_.size() > kMostSaves) saves_.erase(saves_.begin());
  return absl::OkStatus();
}

bool JobReader::ComesAgainInOrder() const {
  return options_.order == MergeOrder::kDeterministic || options_.num_consumers.has_value();
}

absl::StatusOr<std::string> JobReader::SectionOf(JobState state) {
  // A state that was restored and not read from since already has `saved`. The deliveries are
  // recorded before the dispatcher is asked, so that its answer has all their splits.
  if (state.reader.job && state.saved.empty()) {
    for (const ReaderState::Repetition& its : state.reader.repetitions) {
      ASSIGN_OR_RETURN(control::SavedRepetition saved,
                       stub_->GetReading({state.reader.job, its.number, state.heard},
                                         {.timeout = options_.timeout, .stop = {}}));
      state.saved.push_back(std::move(saved));
    }
  }
  StateWriter writer;
  Write(state, writer);
  return std::move(writer).Take();
}

absl::Status JobReader::Restore(int64_t pass, StateReader& reader) {
  StateReader ahead = reader;
  ASSIGN_OR_RETURN(const uint64_t version, ahead.ReadUnsigned());
  if (version != kInSection) {
    JobState state;
    ASSIGN_OR_RETURN(state.reader, ReadReaderState(reader));
    return TakeUp(pass, std::move(state));
  }
  reader = ahead;
  if (states_ == nullptr || states_->taken_up().of.empty()) {
    return absl::DataLossError("the state of Distribute lacks its section");
  }
  const StateExchange::TakenUp& taken_up = states_->taken_up();
  if (taken_up.all_ranks) return TakeUpAll(pass, taken_up);
  ASSIGN_OR_RETURN(JobState state, JobStateIn(taken_up.of.front(), number_));
  return TakeUp(pass, std::move(state));
}

void JobReader::BeginAnew() {
  for (auto& [number, session] : sessions_) session->Abandon();
  sessions_.clear();
  saves_.clear();
  newest_save_ = committed_save_ = 0;
  read_ahead_ = false;
  joined_ = false;
  job_.reset();
  restored_.reset();
  merged_states_.reset();
  took_up_ = false;
  client_ = ClientId(RandomId());
  // To the dispatcher this is a process that starts again.
  incarnation_ = Incarnation(RandomId());
}

absl::Status JobReader::TakeUp(int64_t pass, JobState state) {
  std::map<int64_t, std::shared_ptr<Session>> replaced;  // destroyed outside the lock
  MutexLock joining_lock(joining_mu_);
  MutexLock lock(mu_);
  replaced = sessions_;
  BeginAnew();
  const ReaderState& reader = state.reader;
  if (reader.save != 0) saves_[reader.save] = reader;
  newest_save_ = reader.save;
  if (!reader.job) return absl::OkStatus();
  took_up_ = true;
  present_ = {pass, reader.repetitions.back().number};
  if (present_->repetition < pass) {
    return absl::DataLossError(absl::StrCat("the state of Distribute is of repetition ",
                                            reader.repetitions.back().number,
                                            ", its place in the dataset of pass ", pass));
  }
  client_ = reader.client;
  restored_ = std::move(state);
  return absl::OkStatus();
}

absl::Status JobReader::TakeUpAll(int64_t pass, const StateExchange::TakenUp& taken_up) {
  std::vector<control::RankState> ranks;
  MergedStates merged{.run_id = taken_up.run_id};
  int64_t least = std::numeric_limits<int64_t>::max();
  bool edited = false;  // the dataset that the workers run
  const control::JobTerms terms = TermsOf(options_);
  for (const StateSections& sections : taken_up.of) {
    ASSIGN_OR_RETURN(const JobState state, JobStateIn(sections, number_));
    if (!state.reader.job) continue;  // it had not begun
    if (state.terms.mode != terms.mode || state.terms.keep != terms.keep ||
        state.terms.deterministic != terms.deterministic ||
        state.terms.partitions != terms.partitions || state.terms.group_size != terms.group_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("the states are of job '", state.reader.job_name,
                       "', which was read with another processing_mode, keep, order, number of "
                       "partitions or size of a consumer_group than this Distribute"));
    }
    merged.job_name = state.reader.job_name;
    merged.seed = state.seed;
    edited |= state.dataset != WorkersDataset(*node_);
    least = std::min(least, state.reader.repetitions.back().number);
    ranks.push_back(ToRankState(state));
  }
  if (!ranks.empty()) {
    ASSIGN_OR_RETURN(merged.restoration, control::MergeRankStates(ranks, taken_up.name));
  }
  // Bookmarks belong to the dataset that they were saved from. The edited dataset is read from its
  // first splits.
  if (edited) RETURN_IF_ERROR(control::ForgetBookmarks(merged.restoration));
  std::map<int64_t, std::shared_ptr<Session>> replaced;  // destroyed outside the lock
  MutexLock joining_lock(joining_mu_);
  MutexLock lock(mu_);
  replaced = sessions_;
  BeginAnew();
  if (ranks.empty()) return absl::OkStatus();
  present_ = {pass, std::max(least, pass)};
  merged_states_ = std::move(merged);
  return absl::OkStatus();
}

void JobReader::Stop(absl::Duration bound) {
  const absl::Time deadline = BootTime() + bound;
  std::map<int64_t, std::shared_ptr<Session>> sessions;
  {
    MutexLock lock(mu_);
    sessions = sessions_;
  }
  for (auto& [repetition, session] : sessions) session->Leave(deadline - BootTime());
}

absl::StatusOr<std::optional<control::Commit>> JobReader::CommitOf(uint64_t save) {
  MutexLock lock(mu_);
  if (save <= committed_save_) return std::nullopt;
  if (!CommitsStates()) return std::nullopt;
  auto saved = saves_.find(save);
  if (saved == saves_.end() && save > newest_save_ && !restored_.has_value() && AllEnded()) {
    // The state was saved while this node was not read, as one of several inputs that take turns.
    if (sessions_.empty()) return std::nullopt;
    // After the end, all elements that this node gave are in that state, unless a node above holds
    // some back.
    if (!read_ahead_) return CommitOf(save, StateNow(sessions_.rbegin()->first));
  }
  if (saved == saves_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("state number ", save, " cannot be committed: it is none of the last ",
                     kMostSaves, " that Save() gave since this iterator was made or restored, ",
                     "or elements were read ahead of it; save again and commit that state"));
  }
  return CommitOf(save, saved->second);
}

std::optional<control::Commit> JobReader::CommitOf(uint64_t save, const ReaderState& state) {
  control::Commit commit{.number = static_cast<int64_t>(save)};
  for (const ReaderState::Repetition& its : state.repetitions) {
    commit.repetitions.push_back({its.number, ToMessage(its.delivered)});
  }
  if (commit.repetitions.empty()) return std::nullopt;  // reading had not begun
  return commit;
}

bool JobReader::AllEnded() const {
  return std::all_of(sessions_.begin(), sessions_.end(),
                     [](const auto& session) { return session.second->ended(); });
}

absl::Status JobReader::Commit(uint64_t save) {
  ASSIGN_OR_RETURN(std::optional<control::Commit> commit, CommitOf(save));
  if (!commit.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(EnsureJoined());  // a restored state may not have joined yet
  const int64_t last = commit->repetitions.back().repetition;
  // The latest session commits. A session that has left has nothing of its own to commit.
  std::vector<std::shared_ptr<Session>> sessions;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(SessionOf(last).status());
    for (const control::Commit::OfRepetition& its : commit->repetitions) {
      const auto found = sessions_.find(its.repetition);
      if (found != sessions_.end()) sessions.push_back(found->second);
    }
  }
  for (bool said = false; !said && !sessions.empty(); sessions.pop_back()) {
    ASSIGN_OR_RETURN(said, sessions.back()->Commit(*commit));
  }
  std::vector<std::shared_ptr<Session>> kept;  // destroyed outside the lock
  MutexLock lock(mu_);
  saves_.erase(saves_.begin(), saves_.upper_bound(save));
  committed_save_ = std::max(committed_save_, save);
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    if (session->first < last && session->second->ended()) {
      kept.push_back(std::move(session->second));
      session = sessions_.erase(session);
    } else {
      ++session;
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::client
