// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/job_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "dataplane/client/advice.h"
#include "dataplane/client/distribute_options.h"
#include "dataplane/dataset/engine/kept_across_passes.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"

namespace penstock::client {
namespace {

// This value in a saved position means that the ReaderState is in the node's section.
constexpr uint64_t kInSection = 3;

uint64_t WorkersDataset(const Dataset::Node& node) {
  return node.inputs.empty() ? 0 : node.inputs[0]->fingerprint;
}

absl::StatusOr<JobState> JobStateIn(const StateSections& sections, int node) {
  auto section = sections.find(node);
  if (section == sections.end()) return JobState();  // nothing has been read yet
  StateReader reader(section->second.bytes);
  ASSIGN_OR_RETURN(JobState state, ReadJobState(reader));
  RETURN_IF_ERROR(reader.ExpectEnd());
  return state;
}

}  // namespace

std::shared_ptr<JobReader> JobReader::Of(const BuildSite& site) {
  const RunContext& run = site.run();
  // A reader is not shared inside the body of a function, or if the run has no commits: each
  // iterator that is opened then gets its own reader.
  if (run.commits == nullptr || site.in_body())
    return std::shared_ptr<JobReader>(new JobReader(site));
  std::shared_ptr<void>& kept = run.kept->Of(site.number());
  if (kept == nullptr) {
    std::shared_ptr<JobReader> reader(new JobReader(site));
    run.commits->Add([reader](uint64_t save) { return reader->Commit(save); });
    run.commits->AddEnd([reader] { return reader->AwaitEnd(); });
    run.commits->AddStop([reader](absl::Duration bound) { reader->Stop(bound); });
    kept = reader;
  }
  return std::static_pointer_cast<JobReader>(kept);
}

JobReader::JobReader(const BuildSite& site)
    : node_(site.node_ptr()),
      number_(site.number()),
      options_(*FromAttrs(site.node().attrs)),  // valid: checked when the node was made
      delivery_(OfMember(FieldsOf(options_))),
      commits_states_(TermsOf(options_).ack_mode == AckMode::kOnCommit),
      states_(site.in_body() ? nullptr : site.run().states),
      // False in these cases: a state records the deliveries; all consumers get a round together;
      // the node is in the body of a function, whose dataset has been read to its end before the
      // elements made from that dataset are returned.
      delivers_later_(
          !site.in_body() && !commits_states_ && !delivery_.cross_trainer_cache.has_value() &&
          (!delivery_.num_consumers.has_value() || delivery_.order == MergeOrder::kDeterministic)),
      stop_(site.run().stop),
      pool_(site.pool()),
      connection_(node_, options_, stop_),
      sessions_(node_, !options_.job_name.empty() && !delivery_.cross_trainer_cache.has_value()) {}

absl::StatusOr<std::optional<Element>> JobReader::Next(int64_t pass) {
  RETURN_IF_ERROR(EnsureJoined());
  int64_t repetition;
  JobSessions::Sessions over;  // destroyed outside the lock
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mu_);
    repetition = sessions_.RepetitionOf(pass);
    ASSIGN_OR_RETURN(session, SessionOf(repetition));
    // Under ack_mode = kOnDelivery, a repetition that has been read to its end is no longer needed.
    if (!commits_states_) over = sessions_.TakeEndedExcept(repetition);
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
    session = sessions_.In(pass);
  }
  return session != nullptr && session->Ready();
}

bool JobReader::OthersTookAll(int64_t pass) {
  MutexLock lock(mu_);
  const std::shared_ptr<Session> session = sessions_.In(pass);
  return session != nullptr && session->others_took_all() > 0;
}

absl::Status JobReader::EnsureJoined() {
  if (joined_) return absl::OkStatus();
  MutexLock joining_lock(joining_mu_);  // Next() and Commit() may both join
  std::optional<std::string> job_name;
  std::optional<MergedStates> merged;
  {
    MutexLock lock(mu_);
    if (job_.has_value()) return absl::OkStatus();
    if (restored_.has_value()) job_name = restored_->reader.job_name;
    merged = merged_states_;
  }
  RETURN_IF_ERROR(connection_.Open());
  ASSIGN_OR_RETURN(control::JobAnswer job, connection_.Join(job_name, merged));
  MutexLock lock(mu_);
  if (restored_.has_value() &&
      (restored_->reader.job != job.job ||
       (restored_->job_mark != 0 && restored_->job_mark != MarkOfJob(job.token)))) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the state belongs to ", ToString(restored_->reader.job), " '", restored_->reader.job_name,
        "', but the dispatcher at ", connection_.stub().address(), " has a different job (",
        ToString(job.job),
        ") under that name: the dispatcher has lost its journal, or the job was removed; to "
        "continue with this dispatcher, Restore() the states of all ranks"));
  }
  job_ = std::move(job);
  merged_states_.reset();
  if (restored_.has_value()) {
    // Sessions of earlier repetitions begin too. Such a session claims the uncommitted deliveries
    // of its repetition, and asks for no elements.
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

absl::StatusOr<std::shared_ptr<Session>> JobReader::SessionOf(int64_t repetition) {
  if (std::shared_ptr<Session> begun = sessions_.On(repetition)) return begun;
  SessionOptions options{
      .distribute = options_,
      .delivery = delivery_,
      .transport_preference = connection_.transport_preference(),
      .tls = connection_.tls(),
      .tcp = connection_.tcp(),
      .spec = node_->spec,
      .job = *job_,
      .repetition = repetition,
      .client = process_.client,
      .incarnation = process_.incarnation,
      .state = process_.state,  // replaced below if the restored state names the repetition
      .delivers_later = delivers_later_,
      .pool = &pool_,
      .stop = stop_};
  if (restored_.has_value()) {
    const std::vector<ReaderState::Repetition>& repetitions = restored_->reader.repetitions;
    for (const ReaderState::Repetition& its : repetitions) {
      if (its.number == repetition) {
        options.state = its.delivered;
      } else {
        options.other_repetitions.emplace_back(its.number, its.delivered);
      }
    }
    options.claims_only = repetition < repetitions.back().number;
    options.heard = restored_->heard;
  }
  sessions_.Claim(repetition);
  absl::StatusOr<std::unique_ptr<Session>> session =
      Session::Begin(std::move(options), connection_.stub());
  if (!session.ok()) return OfReading(session.status());
  return sessions_.Add(repetition, *std::move(session));
}

ReaderState JobReader::StateNow(int64_t repetition) {
  if (restored_.has_value()) return restored_->reader;  // nothing has been read since the restore
  ReaderState state;
  if (!job_.has_value()) return state;
  state.job = job_->job;
  state.job_name = job_->name;
  state.client = process_.client;
  state.repetitions = sessions_.Delivered(repetition);
  return state;
}

absl::Status JobReader::Save(int64_t pass, StateWriter& writer) {
  if (!commits_states_) {
    return absl::FailedPreconditionError(
        absl::StrCat("Distribute of job '", options_.job_name,
                     "' commits elements as soon as it delivers them (ack_mode = kOnDelivery), so "
                     "no saved state of it can be restored: the elements delivered after the save "
                     "are committed too; set ack_mode = kOnCommit"));
  }
  // The restored states of all ranks can be saved only after a job has been made from them.
  bool merged = false;
  {
    MutexLock lock(mu_);
    merged = merged_states_.has_value();
  }
  if (merged) RETURN_IF_ERROR(EnsureJoined());
  // This call saves only a position, from which a node above may read again in the same job. The
  // job must therefore be joined now. If it cannot be joined, Next() returns the error.
  if (writer.save_number() == 0 && states_ != nullptr) EnsureJoined().IgnoreError();
  MutexLock lock(mu_);
  JobState state{.reader = StateNow(job_.has_value() ? sessions_.RepetitionOf(pass) : 0),
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
    state.heard = sessions_.Heard();
    state.seed = job_->seed;
    state.dataset = WorkersDataset(*node_);
  }
  if (writer.save_number() == 0) saves_.NoteReadAhead();  // the node above keeps the position
  lock.unlock();
  writer.WriteUnsigned(kInSection);
  return Put(std::move(state), writer);
}

absl::Status JobReader::Put(JobState state, StateWriter& writer) {
  if (writer.save_number() == 0) {
    writer.Attach([this, state = std::move(state)](StateWriter& whole) {
      if (state.reader.job && whole.save_number() != 0 && !ComesAgainInOrder()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "a node after Distribute of job '", state.reader.job_name,
            "' has read ahead, and the elements that it holds would be delivered again in a "
            "different order: set order = kDeterministic, or move that node before Distribute. If "
            "DistributeDataset() added that node: save after a step that ends a batch of the job, "
            "use PrefetchToDevice(0), or read a coordinated job (num_consumers)"));
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
  saves_.Add(std::move(state.reader));
  return absl::OkStatus();
}

bool JobReader::ComesAgainInOrder() const {
  return delivery_.order == MergeOrder::kDeterministic || delivery_.num_consumers.has_value();
}

absl::StatusOr<std::string> JobReader::SectionOf(JobState state) {
  // If nothing has been read since the restore, the state already has `saved`. The deliveries were
  // recorded before this request to the dispatcher, so that the dispatcher's answer has the splits
  // of all deliveries.
  if (state.reader.job && state.saved.empty()) {
    for (const ReaderState::Repetition& its : state.reader.repetitions) {
      ASSIGN_OR_RETURN(control::SavedRepetition saved,
                       connection_.stub().GetReading({state.reader.job, its.number, state.heard},
                                                     {.timeout = options_.timeout, .stop = stop_}));
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

JobSessions::Sessions JobReader::BeginAnew() {
  saves_ = SavedStates();
  joined_ = false;
  job_.reset();
  restored_.reset();
  merged_states_.reset();
  process_ = Process();  // the dispatcher takes this for a restarted process
  return sessions_.Abandon();
}

absl::Status JobReader::TakeUp(int64_t pass, JobState state) {
  JobSessions::Sessions replaced;  // destroyed outside the lock
  MutexLock joining_lock(joining_mu_);
  MutexLock lock(mu_);
  replaced = BeginAnew();
  const ReaderState& reader = state.reader;
  if (reader.save != 0) saves_.Add(reader);
  if (!reader.job) return absl::OkStatus();
  process_.state.emplace();
  const int64_t repetition = reader.repetitions.back().number;
  sessions_.Continue(pass, repetition);
  if (repetition < pass) {
    return absl::DataLossError(absl::StrCat("the state of Distribute is from repetition ",
                                            repetition,
                                            ", but the state of the dataset is from pass ", pass));
  }
  process_.client = reader.client;
  restored_ = std::move(state);
  return absl::OkStatus();
}

absl::Status JobReader::TakeUpAll(int64_t pass, const StateExchange::TakenUp& taken_up) {
  std::vector<JobState> ranks;
  for (const StateSections& sections : taken_up.of) {
    ASSIGN_OR_RETURN(ranks.emplace_back(), JobStateIn(sections, number_));
  }
  ASSIGN_OR_RETURN(std::optional<MergedStates> merged,
                   MergeStates(ranks, TermsOf(options_), WorkersDataset(*node_), taken_up.name));
  if (merged.has_value()) merged->run_id = taken_up.run_id;
  JobSessions::Sessions replaced;  // destroyed outside the lock
  MutexLock joining_lock(joining_mu_);
  MutexLock lock(mu_);
  replaced = BeginAnew();
  if (!merged.has_value()) return absl::OkStatus();
  sessions_.Continue(pass, std::max(merged->repetition, pass));
  merged_states_ = std::move(merged);
  return absl::OkStatus();
}

JobSessions::Sessions JobReader::Sessions() {
  MutexLock lock(mu_);
  return sessions_.All();
}

void JobReader::Stop(absl::Duration bound) {
  const absl::Time deadline = BootTime() + bound;
  for (const std::shared_ptr<Session>& session : Sessions()) session->Leave(deadline - BootTime());
}

absl::Status JobReader::AwaitEnd() {
  for (const std::shared_ptr<Session>& session : Sessions()) RETURN_IF_ERROR(session->AwaitEnd());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<control::Commit>> JobReader::CommitOf(uint64_t save) {
  MutexLock lock(mu_);
  if (saves_.IsCommitted(save) || !commits_states_) return std::nullopt;
  const ReaderState* saved = saves_.Find(save);
  if (saved == nullptr && save > saves_.newest() && !restored_.has_value() &&
      sessions_.AllEnded()) {
    // The state was saved while this node was not being read, because the node is one of several
    // inputs that take turns.
    if (sessions_.empty()) return std::nullopt;
    // After the end, the state of the latest session has all elements that this node returned,
    // unless a node above holds some of them back.
    if (!saves_.read_ahead()) return CommitOf(save, StateNow(sessions_.latest()));
  }
  if (saved == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "state number ", save, " cannot be committed: it is not one of the last ",
        SavedStates::kMost, " that Save() returned since this iterator was made or restored, ",
        "or a node after Distribute had read ahead when the state was saved; save again and commit "
        "the new state"));
  }
  return CommitOf(save, *saved);
}

std::optional<control::Commit> JobReader::CommitOf(uint64_t save, const ReaderState& state) {
  control::Commit commit{.number = static_cast<int64_t>(save)};
  for (const ReaderState::Repetition& its : state.repetitions) {
    commit.repetitions.push_back({its.number, ToMessage(its.delivered)});
  }
  if (commit.repetitions.empty()) return std::nullopt;  // reading had not begun
  return commit;
}

absl::Status JobReader::Commit(uint64_t save) {
  ASSIGN_OR_RETURN(std::optional<control::Commit> commit, CommitOf(save));
  if (!commit.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(EnsureJoined());  // after a restore, the job may not have been joined yet
  const int64_t last = commit->repetitions.back().repetition;
  // The commit goes through the latest session that has not left, because a session that has left
  // has nothing of its own to commit.
  JobSessions::Sessions sessions;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(SessionOf(last).status());
    for (const control::Commit::OfRepetition& its : commit->repetitions) {
      if (std::shared_ptr<Session> found = sessions_.On(its.repetition))
        sessions.push_back(std::move(found));
    }
  }
  for (bool said = false; !said && !sessions.empty(); sessions.pop_back()) {
    ASSIGN_OR_RETURN(said, sessions.back()->Commit(*commit));
  }
  JobSessions::Sessions over;  // destroyed outside the lock
  MutexLock lock(mu_);
  saves_.OnCommitted(save);
  over = sessions_.TakeEndedBefore(last);
  return absl::OkStatus();
}

}  // namespace penstock::client
