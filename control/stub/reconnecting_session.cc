// SPDX-License-Identifier: Apache-2.0
// Implements ReconnectingSession. One thread per session opens streams, one after another. Messages
// are passed on by the thread of their stream.
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/worker_messages.h"
#include "control/stub/session.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

using Clock = SteadyClock;

bool IsRefusal(const ClientDown& message) {
  return std::holds_alternative<SessionError>(message);
}
bool IsRefusal(const WorkerDown& message) {
  return std::holds_alternative<WorkerRefused>(message);
}

// Returns the life of the dispatcher that welcomes or refuses the session; the default for other
// messages, and for a refusal that does not say which dispatcher it is from.
Life LifeOf(const ClientDown& message) {
  if (const auto* welcome = std::get_if<Welcome>(&message)) return welcome->life;
  const auto* error = std::get_if<SessionError>(&message);
  return error == nullptr ? Life() : error->life.value_or(Life());
}
Life LifeOf(const WorkerDown& message) {
  if (const auto* welcome = std::get_if<WorkerWelcome>(&message)) return welcome->life;
  const auto* refused = std::get_if<WorkerRefused>(&message);
  return refused == nullptr ? Life() : refused->life.value_or(Life());
}

// Returns the newest life of which the sender of the hello has heard.
Life HeardIn(const ClientUp& message) {
  const auto* hello = std::get_if<ClientHello>(&message);
  return hello == nullptr ? Life() : hello->heard.life;
}
Life HeardIn(const WorkerUp& message) {
  const auto* hello = std::get_if<WorkerHello>(&message);
  return hello == nullptr ? Life() : hello->heard.life;
}

// Returns whether something between this process and the dispatcher may have ended the stream with
// this status.
bool IsBreak(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:  // a proxy may send this code and the next three
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

// `refused`: the dispatcher itself refused the session, not a proxy on the way. For a worker, no
// other status is final, because an unreadable message would reach the next worker too.
template <class Down>
bool IsFinal(const absl::Status& status, bool refused) {
  if (refused) return true;
  if (std::is_same_v<Down, WorkerDown>) return false;
  return !IsBreak(status) && !absl::IsAborted(status);
}

template <class Up, class Down>
class Keeper final : public ReconnectingSession<Up, Down>, SessionEvents<Down> {
 public:
  Keeper(OpenSession<Up, Down> open, Addresses& addresses, ReconnectingEvents<Up, Down>* events,
         ReconnectOptions options)
      : open_(std::move(open)),
        addresses_(addresses),
        events_(events),
        options_(std::move(options)),
        exhausted_(absl::ResourceExhaustedError(absl::StrCat(
            "the session at ", addresses_.text(), ": the process has no memory left for it"))),
        round_(addresses_),
        heard_(Clock::now()),
        backoff_(options_.first_backoff) {}
  ~Keeper() override { Stop(); }

  absl::Status Begin() {
    ASSIGN_OR_RETURN(thread_, StartThread(absl::StrCat("the session at ", addresses_.text()),
                                          [this] { Run(); }));
    return absl::OkStatus();
  }

  void Send(Up message) override {
    MutexLock lock(mu_);
    if (opening_) {
      waiting_.push_back(std::move(message));
    } else if (session_) {
      session_->Send(std::move(message));
    }
  }

  void BreakOff(absl::Status why) override {
    MutexLock lock(mu_);
    if ((session_ == nullptr && !opening_) || closed_.has_value()) return;
    closed_ = std::move(why);
    changed_.NotifyAll();
  }

  void Stop() override {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void OnMessage(Down message, uint64_t sequence) override {
    {
      MutexLock lock(mu_);
      changed_.Wait(lock, [this]() REQUIRES(mu_) { return !opening_; });  // answers need session_
      if (replaced_ || !IsOfLeader(message)) return;
      heard_ = Clock::now();
      refused_ |= IsRefusal(message);
    }
    events_->OnMessage(std::move(message), sequence);
  }

  void OnClosed(const absl::Status& status) override {
    MutexLock lock(mu_);
    if (!replaced_) closed_ = status;
    changed_.NotifyAll();
  }

  // Ends the stream if the message shows that its dispatcher has been replaced.
  bool IsOfLeader(const Down& message) REQUIRES(mu_) {
    const Life life = LifeOf(message);
    if (life.id == 0) return true;
    absl::Status accepted = addresses_.Accept(life);
    replaced_ = !accepted.ok();
    if (replaced_) {
      closed_ = std::move(accepted);
      changed_.NotifyAll();
    } else {
      round_.Answered();
    }
    return !replaced_;
  }

  void Run() {
    absl::Status end;
    try {
      end = Keep();
    } catch (const std::bad_alloc&) {
      end = exhausted_;
      std::unique_ptr<Session<Up>> over;
      {
        MutexLock lock(mu_);
        over = std::move(session_);
      }
      if (over != nullptr) over->Stop();  // outside the lock: an event may be in Send
    }
    if (!end.ok()) events_->OnGivenUp(end);
  }

  // Opens streams one after another. Returns the reason for which no further stream is opened; OK
  // when the session was stopped.
  absl::Status Keep() {
    const absl::Status silent =
        absl::UnavailableError("the connection is open, but the dispatcher is silent");
    absl::Status why = silent;
    bool pauses = true;
    while (true) {
      const Clock::time_point opened = Clock::now();
      OpenOne();
      const std::optional<absl::Status> closed = WaitUntilClosed();
      std::unique_ptr<Session<Up>> over;
      {
        MutexLock lock(mu_);
        if (closed.has_value()) {
          why =
              closed->ok() ? absl::UnavailableError("the stream ended without a reason") : *closed;
          // The address of a stream that broke is tried once more: only the connection may be gone.
          pauses = heard_ > opened || round_.Failed(why);
          if (heard_ <= opened) why = absl::Status(why.code(), round_.Reasons());
        } else if (heard_ > opened) {
          why = silent;  // otherwise the last reason remains valid
        }
        // The pause starts again from `first_backoff` only if the stream broke, or lasted long
        // enough, because the dispatcher may soon end each stream, or each stream may bring an
        // unreadable message.
        const bool lasted = absl::FromChrono(heard_ - opened) >= options_.max_backoff;
        if (heard_ > opened && (IsBreak(why) || lasted)) backoff_ = options_.first_backoff;
        over = std::move(session_);
      }
      over->Stop();  // outside the lock: an event may be in Send
      over.reset();
      MutexLock lock(mu_);
      if (stopping_) return absl::OkStatus();
      if (IsFinal<Down>(why, refused_)) return why;
      if (OutOfReach()) return GivenUp(why);
      lock.unlock();
      events_->OnLost(why);
      if (pauses && !Pause()) return absl::OkStatus();
    }
  }

  // A dispatcher that answers Aborted is up, but cannot begin the session yet.
  absl::Status GivenUp(const absl::Status& why) const {
    const std::string timeout = absl::FormatDuration(options_.timeout);
    return absl::UnavailableError(absl::IsAborted(why)
                                      ? absl::StrCat("the dispatcher at ", addresses_.text(),
                                                     " could not begin the session within ",
                                                     timeout, ": ", why.message())
                                      : absl::StrCat("no dispatcher answers at ", addresses_.text(),
                                                     " within ", timeout, ": ", why.message()));
  }

  // Sends the hello on the new stream, and after it the messages from Send() that came since the
  // hello was asked for. To open the stream may take a second, for which no Send() waits.
  void OpenOne() {
    std::string address;
    {
      MutexLock lock(mu_);
      closed_.reset();
      refused_ = replaced_ = false;
      opening_ = true;
      address = round_.address();
    }
    std::unique_ptr<Session<Up>> session;
    try {
      Up hello = events_->Hello();
      addresses_.Accept(HeardIn(hello)).IgnoreError();  // an older one is not noted
      session = open_(address, this);
      session->Send(std::move(hello));
    } catch (...) {
      Opened(std::move(session), /*greeted=*/false);
      throw;
    }
    Opened(std::move(session), /*greeted=*/true);
  }
  // `greeted`: the hello was sent. An event that waits goes on even if memory runs out here.
  void Opened(std::unique_ptr<Session<Up>> session, bool greeted) {
    MutexLock lock(mu_);
    opening_ = false;
    changed_.NotifyAll();
    session_ = std::move(session);
    for (Up& message : std::exchange(waiting_, {})) {
      if (greeted) session_->Send(std::move(message));
    }
  }

  // Returns the status with which the stream was closed; nullopt if, before that, the session was
  // stopped or the dispatcher was out of reach for the timeout.
  std::optional<absl::Status> WaitUntilClosed() {
    MutexLock lock(mu_);
    while (!stopping_ && !closed_.has_value() && !OutOfReach()) {
      changed_.WaitFor(lock, options_.timeout - Silence());
    }
    return closed_;
  }

  // Returns false if the session was stopped in the meantime.
  bool Pause() {
    MutexLock lock(mu_);
    const absl::Duration step = RandomBetween(0.5, 1.0) * backoff_;
    backoff_ = std::min(2 * backoff_, options_.max_backoff);
    changed_.WaitFor(lock, step, [this]() REQUIRES(mu_) { return stopping_; });
    return !stopping_;
  }

  absl::Duration Silence() const REQUIRES(mu_) { return absl::FromChrono(Clock::now() - heard_); }
  bool OutOfReach() const REQUIRES(mu_) { return Silence() >= options_.timeout; }

  const OpenSession<Up, Down> open_;
  Addresses& addresses_;
  ReconnectingEvents<Up, Down>* const events_;
  const ReconnectOptions options_;
  const absl::Status exhausted_;  // made while there is memory

  Mutex mu_;
  Condition changed_;
  std::unique_ptr<Session<Up>> session_ GUARDED_BY(mu_);
  std::optional<absl::Status> closed_ GUARDED_BY(mu_);  // of session_
  bool opening_ GUARDED_BY(mu_) = false;                // session_ follows soon
  std::vector<Up> waiting_ GUARDED_BY(mu_);             // for session_, while opening_
  bool stopping_ GUARDED_BY(mu_) = false;
  bool refused_ GUARDED_BY(mu_) = false;   // by the dispatcher, on this stream
  bool replaced_ GUARDED_BY(mu_) = false;  // the dispatcher of this stream leads no more
  AddressRound round_ GUARDED_BY(mu_);
  Clock::time_point heard_ GUARDED_BY(mu_);
  absl::Duration backoff_ GUARDED_BY(mu_);
  Thread thread_;
};

}  // namespace

template <class Up, class Down>
absl::StatusOr<std::unique_ptr<ReconnectingSession<Up, Down>>> KeepOpen(
    OpenSession<Up, Down> open, Addresses& addresses, ReconnectingEvents<Up, Down>* events,
    ReconnectOptions options) {
  auto keeper = std::make_unique<Keeper<Up, Down>>(std::move(open), addresses, events, options);
  RETURN_IF_ERROR(keeper->Begin());
  return keeper;
}

template absl::StatusOr<std::unique_ptr<ReconnectingSession<ClientUp, ClientDown>>> KeepOpen(
    OpenSession<ClientUp, ClientDown>, Addresses&, ReconnectingEvents<ClientUp, ClientDown>*,
    ReconnectOptions);
template absl::StatusOr<std::unique_ptr<ReconnectingSession<WorkerUp, WorkerDown>>> KeepOpen(
    OpenSession<WorkerUp, WorkerDown>, Addresses&, ReconnectingEvents<WorkerUp, WorkerDown>*,
    ReconnectOptions);

}  // namespace penstock::control
