// SPDX-License-Identifier: Apache-2.0
// The lives of the world's dispatcher: refusals, as in Lives::Check and
// WorkerManager::OnHello; how it begins again, and a second one beside it.
#include <utility>
#include <vector>

#include "tests/control/protocol/world.h"
#include "tests/control/protocol/world_bytes.h"

namespace penstock::protocol {
namespace {

constexpr uint64_t kJournal = 1;
constexpr uint64_t kForked = 10;  // the first record that the newer of two lives does not share

control::Life Begun(uint64_t term) {
  return {.journal = kJournal, .id = term, .term = Term(term)};
}

// Returns the position that a process heard last.
control::Heard HeardOf(uint8_t life) {
  if (life & Wire::kNewer) return {Begun(2), kForked + 1};
  return {Begun(1), life & Wire::kBeyond ? kForked : kForked - 1};
}

}  // namespace

// --- Refusals ----------------------------------------------------------------------

// Requires that `life` is not foreign.
control::Origin World::OriginOf(uint8_t life) const {
  std::vector<control::BegunLife> lives = {{.life = Begun(1), .begins = 1, .lease = {}}};
  if (!acts_old_) lives.push_back({.life = Begun(2), .begins = kForked, .lease = {}});
  return control::OriginOf(HeardOf(life), lives);
}

bool World::IsForeign(uint8_t life) const {
  const bool old = acts_old_ && IsOfTwoJobs();
  return ((life & Wire::kOther) != 0) != old;
}

// True if this is the older dispatcher and the process heard the newer one.
bool World::HearsNewer(uint8_t life) const {
  return acts_old_ && !IsForeign(life) && (life & Wire::kNewer) != 0;
}

void World::FailJob() {
  if (IsFrozen()) {
    hung_ = true;
  } else {
    failed_ = true;
  }
}

bool World::IsClientRefused(int c, const Wire& wire) {
  const bool is_here = clients_[c].with_old == acts_old_;  // and has not turned since
  const bool foreign = IsForeign(wire.life) && scene_->broken != Broken::kAnyToken;
  const bool beyond = !foreign && OriginOf(wire.life) == control::Origin::kBeyond &&
                      scene_->broken != (acts_old_ ? Broken::kHearNewerLife : Broken::kHearAnyLife);
  if (beyond) FailJob();
  if ((foreign || failed_) && is_here) clients_[c].in.push_back({.kind = Wire::kRefused});
  if (!foreign && !beyond && !failed_) served_by_old_ |= is_here && HearsNewer(wire.life);
  return foreign || beyond || failed_;
}

bool World::IsWorkerRefused(int w, const Wire& wire) {
  if (IsForeign(wire.life) || OriginOf(wire.life) != control::Origin::kBeyond ||
      scene_->broken == (acts_old_ ? Broken::kHearNewerLife : Broken::kHearAnyLife))
    return false;
  FailJob();
  Worker& worker = workers_[w];
  if (worker.with_old != acts_old_) return true;  // it has turned since, and does not hear of it
  worker.lost = true;
  worker.in.clear();
  for (Worker& next : workers_) {  // it ends, and another process starts in its place
    if (std::exchange(next.joined, true)) continue;
    next.registered = true;
    next.with_old = acts_old_;
    break;
  }
  Settle(OnWorkerGone(record_, context_, WorkerName(w)));
  return true;
}

// --- Restarts ------------------------------------------------------------------------

void World::BeginFromCopy() {
  record_ = std::move(copy_->record);
  retired_ = copy_->retired;
  copy_.reset();
  changed_ = false;
  RestartDispatcher();
  for (int w = 0; w < kMaxWorkers; ++w)  // their leases run out
    if (workers_[w].lost) Settle(OnWorkerGone(record_, context_, WorkerName(w)));
}

void World::BeginEmpty() {
  copy_.reset();
  changed_ = false;
  retired_ = excused_ = {};
  OpenRecord();
  for (Client& client : clients_) {
    if (client.process == Process::kAbsent) continue;
    client.other = true;
    if (client.process != Process::kRunning) client.process = Process::kGone;
  }
  for (Worker& worker : workers_) {
    worker.other = worker.beyond = false;
    for (const std::optional<Sender>& sender : worker.senders) worker.other |= sender.has_value();
  }
  RestartDispatcher();
}

void World::RestartDispatcher() {
  context_ = MakeIterationContext(record_, scene_->broken);
  Settle(OnDispatcherStarts(record_, context_));
  for (int c = 0; c < kMaxClients; ++c) {
    Client& client = clients_[c];
    client.in.clear();
    client.out.clear();
    ReopenStream(c);
  }
  for (int w = 0; w < kMaxWorkers; ++w) {
    Worker& worker = workers_[w];
    worker.registered = false;
    worker.in.clear();
    worker.out.clear();
    if (worker.joined && !worker.lost) Register(w);
  }
}

// Opens a new stream.
void World::ReopenStream(int c) {
  Client& client = clients_[c];
  if (client.process != Process::kRunning && client.process != Process::kLeaving) return;
  OpenStream(c);
  if (client.commit_pending)
    client.out.push_back({.kind = Wire::kCommit, .a = client.incarnation, .m = client.committed});
  if (client.process == Process::kLeaving)
    client.out.push_back({.kind = Wire::kLeave, .a = client.incarnation, .m = client.written});
}

void World::Register(int w) {
  Worker& worker = workers_[w];
  Wire registers{.kind = Wire::kRegisters, .life = LifeOf(worker)};
  for (int p = 0; p < scene_->partitions; ++p) {
    if (worker.senders[p]) registers.m[p] = Byte(worker.senders[p]->placement());
    worker.sent_end[p] = false;
    worker.sent_bookmark[p] = 0;
  }
  worker.out.push_back(registers);
}

// --- Two dispatchers -----------------------------------------------------------------

World::Older::Older(World& world, bool old) : world_(old ? &world : nullptr) {
  if (world_) world_->Exchange();
}

World::Older::~Older() {
  if (world_) world_->Exchange();
}

void World::Exchange() {
  acts_old_ = !acts_old_;
  std::swap(record_, older_->record);
  std::swap(context_, older_->context);
  std::swap(excused_, older_->excused);
  std::swap(retired_, older_->retired);
  std::swap(changed_, older_->changed);
  std::swap(failed_, older_->failed);
}

// All processes are with the older dispatcher, and turn to the newer one sooner or later.
void World::BeginBeside() {
  older_ = Dispatcher{record_, context_, excused_, retired_, changed_, failed_};
  for (Client& client : clients_) client.with_old = client.process != Process::kAbsent;
  for (Worker& worker : workers_) worker.with_old = worker.joined;
  changed_ = false;
  if (copy_) {
    record_ = std::move(copy_->record);
    retired_ = copy_->retired;
    copy_.reset();
  }
  if (IsOfTwoJobs()) {
    for (Client& client : clients_) client.other = client.with_old;
    for (Worker& worker : workers_) worker.other = worker.with_old;
    retired_ = excused_ = {};
    OpenRecord();
  }
  context_ = MakeIterationContext(record_, scene_->broken);
  Settle(OnDispatcherStarts(record_, context_));
}

void World::Turn(int c) {
  Client& client = clients_[c];
  client.with_old = !client.with_old;
  client.in.clear();
  client.left = client.out;
  client.out.clear();
  ReopenStream(c);
}

void World::TurnWorker(int w) {
  Worker& worker = workers_[w];
  worker.with_old = !worker.with_old;
  worker.registered = false;
  worker.in.clear();
  worker.left = worker.out;
  worker.out.clear();
  Register(w);
}

void World::AddStepsOfTwo(Steps& steps) const {
  if (!older_) return;
  auto add = [&](Step::Kind kind, int w, int c, int p, bool old) {
    steps.push_back({kind, Byte(w), Byte(c), Byte(p), 0, old});
  };
  const bool two_jobs = IsOfTwoJobs();
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (!client.left.empty()) add(Step::kLeftClient, 0, c, 0, !client.with_old);
    const bool alive = client.process == Process::kRunning || client.process == Process::kLeaving;
    if (alive && client.with_old) add(Step::kTurn, 0, c, 0, false);
    if (alive && !client.with_old && left_.returns && !OlderIsDone())
      add(Step::kReturn, 0, c, 0, true);
    for (const bool old : {false, true}) {
      if (old && OlderIsDone()) continue;
      const IterationRecord& record = old ? older_->record : record_;
      const auto reader = record.FindReader(ClientName(c));
      if (!reader || record.readers[*reader].status != ReaderStatus::kActive || record.finished ||
          record.closed)
        continue;
      if (client.process == Process::kGone) {
        if (!old || two_jobs) add(Step::kDeclareDead, 0, c, 0, old);
      } else if (alive && client.with_old != old && client.other == (old && two_jobs)) {
        if (scene_->beside == Beside::kTakenOver ? !old : left_.split_deaths > 0)
          add(Step::kDeclareSplit, 0, c, 0, old);
      }
    }
  }
  for (int w = 0; w < kMaxWorkers; ++w) {
    const Worker& worker = workers_[w];
    if (!worker.joined) continue;
    if (!worker.left.empty()) add(Step::kLeftWorker, w, 0, 0, !worker.with_old);
    if (!worker.lost && worker.with_old) add(Step::kTurnWorker, w, 0, 0, false);
    if (!worker.lost && !worker.with_old && left_.returns && !OlderIsDone())
      add(Step::kReturnWorker, w, 0, 0, true);
    for (const bool old : {false, true}) {
      if ((!worker.lost && worker.with_old == old) || (old && OlderIsDone())) continue;
      for (const PartitionRecord& partition : (old ? older_->record : record_).partitions)
        if (partition.worker == WorkerName(w)) add(Step::kLoseWorker, w, 0, 0, old);
    }
  }
  if (OlderIsDone()) return;
  for (PartitionId partition : Assignable(older_->record, older_->context))
    for (int w = 0; w < kMaxWorkers; ++w)
      if (workers_[w].registered && !workers_[w].lost && workers_[w].with_old)
        add(Step::kAssign, w, 0, At(partition), true);
}

bool World::IsOf(const Client& client) const {
  return client.other == (acts_old_ && IsOfTwoJobs());
}

}  // namespace penstock::protocol
