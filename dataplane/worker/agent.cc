// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/agent.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::worker {
namespace {

// The time for which the worker waits until the dispatcher has read the worker's goodbye. A
// dispatcher that takes longer notices the worker's absence later, by itself.
constexpr absl::Duration kGoodbye = absl::Milliseconds(500);

// Must not be too short, because a stream that is opened again right after a goodbye would undo the
// goodbye.
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Start(control::DispatcherStub* stub,
                                                    std::shared_ptr<WorkerContext> context,
                                                    Tasks* tasks, AgentOptions options) {
  std::unique_ptr<Agent> agent(
      new Agent(stub->address(), std::move(context), tasks, std::move(options)));
  RETURN_IF_ERROR(agent->Begin(*stub));
  return agent;
}

Agent::Agent(std::string dispatcher, std::shared_ptr<WorkerContext> context, Tasks* tasks,
             AgentOptions options)
    : context_(std::move(context)),
      tasks_(tasks),
      options_(std::move(options)),
      dispatcher_(std::move(dispatcher)),
      shortest_interval_(options_.heartbeat_interval),
      interval_(shortest_interval_) {
  context_->SetReporter([this](control::WorkerUp message) { Send(std::move(message)); });
}

// Starts the thread first, so that a worker that gets no thread never introduces itself to the
// dispatcher.
absl::Status Agent::Begin(control::DispatcherStub& stub) {
  ASSIGN_OR_RETURN(heart_, StartThread("the worker's heartbeats", [this] { Beat(); }));
  ASSIGN_OR_RETURN(std::shared_ptr<control::ReconnectingWorkerSession> session,
                   stub.KeepWorkerSession(this, {.timeout = options_.dispatcher_timeout,
                                                 .first_backoff = kFirstBackoff}));
  {
    MutexLock lock(session_mu_);
    session_ = std::move(session);
  }
  tasks_->SayAgain();  // messages were lost if orders arrived before session_ was set
  return absl::OkStatus();
}

Agent::~Agent() {
  Stop();
}

// --- Waiting for the agent -------------------------------------------------------

absl::Status Agent::AwaitWelcome() {
  MutexLock lock(mu_);
  changed_.Wait(lock,
                [&]() REQUIRES(mu_) { return welcomed_ || stopping_ || given_up_.has_value(); });
  if (welcomed_) return absl::OkStatus();
  return given_up_.value_or(absl::CancelledError("the worker was stopped"));
}

void Agent::AwaitOver() {
  MutexLock lock(mu_);
  changed_.Wait(lock, [&]() REQUIRES(mu_) { return stopping_ || given_up_.has_value(); });
}

absl::Status Agent::status() const {
  MutexLock lock(mu_);
  return given_up_.value_or(absl::OkStatus());
}

absl::Status Agent::Drain(absl::Time deadline) {
  {
    MutexLock lock(mu_);
    draining_ = true;
  }
  Send(control::Drain());
  MutexLock lock(mu_);
  const bool done = changed_.WaitUntil(lock, deadline, [&]() REQUIRES(mu_) {
    return drained_ || stopping_ || given_up_.has_value();
  });
  if (drained_) return absl::OkStatus();
  if (!done) {
    return absl::DeadlineExceededError(
        "the dispatcher did not move this worker's partitions in time; it moves them when it "
        "notices that the worker is gone");
  }
  return given_up_.value_or(absl::CancelledError("the worker was stopped"));
}

void Agent::Stop() {
  {
    MutexLock lock(mu_);
    if (std::exchange(stopping_, true)) return;
    changed_.NotifyAll();
  }
  if (heart_.joinable()) heart_.join();
  Send(control::WorkerLeave());
  {
    MutexLock lock(mu_);
    changed_.WaitFor(lock, kGoodbye, [&]() REQUIRES(mu_) { return !connected_; });
  }
  std::shared_ptr<control::ReconnectingWorkerSession> session;
  {
    MutexLock lock(session_mu_);
    session = session_;
  }
  if (session != nullptr) session->Stop();
  context_->SetReporter(nullptr);
}

// --- The session -------------------------------------------------------------------

control::WorkerUp Agent::Hello() {
  control::WorkerHello hello = options_.hello;
  hello.held = tasks_->held();
  MutexLock lock(mu_);
  hello.heard = heard_;
  return hello;
}

void Agent::OnMessage(control::WorkerDown message, uint64_t sequence) {
  using namespace control;  // NOLINT: the messages
  Follow(message, sequence);
  if (const auto* welcome = std::get_if<WorkerWelcome>(&message)) return OnWelcome(*welcome);
  if (const auto* assign = std::get_if<Assign>(&message)) return tasks_->Do(*assign);
  if (const auto* reader = std::get_if<AddReader>(&message)) return tasks_->Do(*reader);
  if (const auto* removed = std::get_if<RemoveReader>(&message)) return tasks_->Do(*removed);
  if (const auto* unassign = std::get_if<Unassign>(&message)) return tasks_->Do(*unassign);
  if (const auto* splits = std::get_if<Splits>(&message)) return tasks_->Do(*splits);
  if (const auto* allow = std::get_if<AllowRows>(&message)) return tasks_->Do(*allow);
  if (const auto* answer = std::get_if<WorkerHeartbeatAnswer>(&message)) return OnAnswer(*answer);
  if (std::holds_alternative<Drained>(message)) {
    MutexLock lock(mu_);
    drained_ = true;
    changed_.NotifyAll();
  }
  // OnGivenUp reports a refusal.
}

void Agent::Follow(const control::WorkerDown& message, uint64_t sequence) {
  control::Life before;
  const auto* welcome = std::get_if<control::WorkerWelcome>(&message);
  {
    MutexLock lock(mu_);
    before = heard_.life;
    if (welcome != nullptr) heard_ = {welcome->life, 0};
    heard_.sequence = std::max(heard_.sequence, sequence);
  }
  if (welcome == nullptr || before.id == 0 || before.journal == welcome->life.journal) return;
  tasks_->Drop(
      absl::UnavailableError("the dispatcher restarted without its journal, and the partitions "
                             "that it had placed on this worker are lost"));
}

void Agent::OnWelcome(const control::WorkerWelcome& welcome) {
  bool again = false, drain = false;
  {
    MutexLock lock(mu_);
    again = std::exchange(welcomed_, true);
    drain = draining_;
    connected_ = true;
    if (welcome.heartbeat_interval > absl::ZeroDuration())
      shortest_interval_ = std::min(options_.heartbeat_interval, welcome.heartbeat_interval);
    interval_ = shortest_interval_;
    changed_.NotifyAll();
  }
  if (again) tasks_->SayAgain();
  if (drain) Send(control::Drain());
}

void Agent::OnAnswer(const control::WorkerHeartbeatAnswer& answer) {
  context_->bookmark_interval_ns = absl::ToInt64Nanoseconds(answer.bookmark_interval);
  MutexLock lock(mu_);
  interval_ = std::max(shortest_interval_, answer.heartbeat_interval);
}

void Agent::OnLost(const absl::Status& status) {
  MutexLock lock(mu_);
  if (std::exchange(connected_, false)) lost_ = BootTime();
  wait_lines_.Waits(BootTime() - lost_, [&] {
    return absl::StrCat("the dispatcher at ", dispatcher_, ": ", status.message(), "; waiting for ",
                        absl::FormatDuration(options_.dispatcher_timeout), " at most");
  });
  changed_.NotifyAll();
}

void Agent::OnGivenUp(const absl::Status& status) {
  MutexLock lock(mu_);
  connected_ = false;
  given_up_ = status;
  changed_.NotifyAll();
}

void Agent::Send(control::WorkerUp message) {
  std::shared_ptr<control::ReconnectingWorkerSession> session;
  {
    MutexLock lock(session_mu_);
    session = session_;
  }
  if (session != nullptr) session->Send(std::move(message));
}

void Agent::Beat() {
  uint64_t counter = 0;
  MutexLock lock(mu_);
  while (!stopping_) {
    const bool connected = connected_;
    lock.unlock();
    tasks_->ForgetIdle();
    if (connected) {
      Send(control::WorkerHeartbeat{++counter, context_->definitions.Work(), tasks_->Work()});
    }
    const absl::Time sent = BootTime();
    lock.lock();
    while (!stopping_ && BootTime() - sent < interval_) {  // a welcome may shorten it
      const absl::Duration waited_for = interval_;
      changed_.WaitFor(lock, waited_for - (BootTime() - sent),
                       [&]() REQUIRES(mu_) { return stopping_ || interval_ < waited_for; });
    }
  }
}

}  // namespace penstock::worker
