// SPDX-License-Identifier: Apache-2.0
#include "dataplane/python/process_host.h"

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/observe/event_log.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::python_host {
namespace {

constexpr int kTries = 2;

absl::Status Stopped() {
  return absl::CancelledError("the Python processes were stopped");
}

// A place for a process. If the process ends, a new process takes the place.
struct Place {
  // Used by the thread that has taken the place. The pointer is changed only under the host's lock.
  std::unique_ptr<Process> process;
  uint64_t life = 0;   // number of the process; 0: none so far
  bool taken = false;  // guarded by the host's lock, like the fields below
  int sessions = 0;
  std::vector<uint64_t> to_close;  // sessions whose readers are gone
};

class Host final : public PythonHost, public std::enable_shared_from_this<Host> {
 public:
  explicit Host(HostOptions options)
      : options_(std::move(options)), places_(std::max(1, options_.processes)) {}

  absl::Status StartAll();

  absl::Status Admit(const PythonFunction& function) const override;
  absl::Status Call(const std::shared_ptr<const PythonFunction>& function,
                    absl::Span<const Tensor> inputs, absl::Span<const TensorSpec> outputs,
                    ElementOutputs& out) override {
    return CallUntil({}, *function, inputs, outputs, out);
  }
  absl::StatusOr<std::unique_ptr<SourceReader>> Open(std::shared_ptr<const PythonFunction> function,
                                                     Spec spec) override {
    return OpenUntil({}, std::move(function), std::move(spec));
  }
  std::shared_ptr<PythonHost> Until(const std::stop_token& stop) override;
  int CallsAtOnce() const override { return static_cast<int>(places_.size()); }
  void Stop() override;

  absl::Status CallUntil(const std::stop_token& stop, const PythonFunction& function,
                         absl::Span<const Tensor> inputs, absl::Span<const TensorSpec> outputs,
                         ElementOutputs& out);
  absl::StatusOr<std::unique_ptr<SourceReader>> OpenUntil(
      const std::stop_token& stop, std::shared_ptr<const PythonFunction> function, Spec spec);
  // Uses a running process. `life` is the number of the process, which shows whether this is the
  // process of an earlier call.
  using Use = absl::FunctionRef<absl::Status(Process& process, uint64_t life)>;
  // Calls `use` with the process in `place` (nullptr: in any free place), and again with a new
  // process if the first process ended. Returns Cancelled once a stop is requested.
  absl::Status Do(const PythonFunction& function, Place* place, const std::stop_token& stop,
                  Use use);
  // TakeSession() takes a place for a generator, and LeaveSession() returns the place.
  Place* TakeSession();
  void LeaveSession(Place* place, uint64_t life, uint64_t session);
  uint64_t NewSession() { return ++last_session_; }

 private:
  absl::Status CheckRuns(const std::stop_token& stop);  // Cancelled after a stop or Stop()
  absl::StatusOr<Place*> Take(Place* wanted, const std::stop_token& stop);
  Place* FreePlace(Place* wanted) REQUIRES(mu_);
  void Give(Place* place);
  // Makes sure that the place has a process, and sends that process the sessions to close.
  absl::Status Ready(Place& place);
  std::unique_ptr<Process> Remove(Place& place);

  const HostOptions options_;
  std::atomic<uint64_t> last_session_{0};
  Mutex mu_;
  Condition freed_;
  std::vector<Place> places_;
  uint64_t lives_ GUARDED_BY(mu_) = 0;
  bool stopped_ GUARDED_BY(mu_) = false;
};

// --- Generators ----------------------------------------------------------------------

class GeneratorReader final : public SourceReader {
 public:
  GeneratorReader(std::shared_ptr<Host> host, std::stop_token stop,
                  std::shared_ptr<const PythonFunction> generator, Spec spec)
      : host_(std::move(host)),
        stop_(std::move(stop)),
        generator_(std::move(generator)),
        spec_(std::move(spec)),
        place_(host_->TakeSession()) {}
  ~GeneratorReader() override { host_->LeaveSession(place_, life_, session_); }

  absl::Status Open(int64_t) override {
    given_ = 0;
    broken_ = false;
    return host_->Do(*generator_, place_, stop_,
                     [this](Process& process, uint64_t life) { return Begin(process, life); });
  }

  absl::StatusOr<bool> Next(ElementOutputs& out) override {
    if (broken_) return false;
    absl::StatusOr<bool> more = false;
    const absl::Status done =
        host_->Do(*generator_, place_, stop_, [&](Process& process, uint64_t life) {
          if (life != life_) RETURN_IF_ERROR(Begin(process, life));
          more = process.Next(session_, stands_ ? 0 : given_, *generator_, spec_.leaves(), out);
          stands_ = true;
          return absl::OkStatus();
        });
    if (absl::IsCancelled(done)) return done;
    // A new session would have to skip this element, but the element's code has just failed twice.
    if (!done.ok()) {
      broken_ = true;
      more = done;
    }
    if (!more.ok() || *more) ++given_;
    return more;
  }

  absl::StatusOr<std::string> Save() override { return absl::StrCat(given_); }
  absl::Status Restore(std::string_view position) override {
    stands_ = broken_ = false;
    if (absl::SimpleAtoi(absl::string_view(position.data(), position.size()), &given_))
      return absl::OkStatus();
    return absl::DataLossError("a saved position in a generator is not a number");
  }

 private:
  absl::Status Begin(Process& process, uint64_t life) {
    if (life == life_) process.Close(session_);
    session_ = host_->NewSession();
    stands_ = false;
    life_ = life;
    return process.Open(session_, *generator_);
  }

  const std::shared_ptr<Host> host_;
  const std::stop_token stop_;
  const std::shared_ptr<const PythonFunction> generator_;
  const Spec spec_;
  Place* const place_;
  uint64_t session_ = 0;
  uint64_t life_ = 0;    // the process that has the session; 0: none yet
  uint64_t given_ = 0;   // elements returned, and errors in an element's place
  bool stands_ = false;  // the session's position is after these elements
  bool broken_ = false;  // the session ended with an error, which has been returned
};

// --- For one run -----------------------------------------------------------------------

class HostUntil final : public PythonHost {
 public:
  HostUntil(std::shared_ptr<Host> host, std::stop_token stop)
      : host_(std::move(host)), stop_(std::move(stop)) {}

  absl::Status Admit(const PythonFunction& function) const override {
    return host_->Admit(function);
  }
  absl::Status Call(const std::shared_ptr<const PythonFunction>& function,
                    absl::Span<const Tensor> inputs, absl::Span<const TensorSpec> outputs,
                    ElementOutputs& out) override {
    return host_->CallUntil(stop_, *function, inputs, outputs, out);
  }
  absl::StatusOr<std::unique_ptr<SourceReader>> Open(std::shared_ptr<const PythonFunction> function,
                                                     Spec spec) override {
    return host_->OpenUntil(stop_, std::move(function), std::move(spec));
  }
  int CallsAtOnce() const override { return host_->CallsAtOnce(); }
  void Stop() override { host_->Stop(); }

 private:
  const std::shared_ptr<Host> host_;
  const std::stop_token stop_;
};

// --- The host --------------------------------------------------------------------------

absl::Status Host::StartAll() {
  for (Place& place : places_) {
    ASSIGN_OR_RETURN(std::unique_ptr<Process> process, Process::Start(options_.command));
    MutexLock lock(mu_);
    place.process = std::move(process);
    place.life = ++lives_;
  }
  for (Place& place : places_) RETURN_IF_ERROR(place.process->AwaitReady());
  return absl::OkStatus();
}

absl::Status Host::Admit(const PythonFunction& function) const {
  if (options_.allowed.empty()) return absl::OkStatus();
  const std::string module = function.name.substr(0, function.name.find(':'));
  const bool allowed =
      function.pickle.empty() &&
      std::any_of(options_.allowed.begin(), options_.allowed.end(), [&](const std::string& may) {
        return module == may || absl::StartsWith(module, absl::StrCat(may, "."));
      });
  if (allowed) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      function.pickle.empty() ? "it is not allowed here" : "it is sent by value",
      ": the worker's setting python-allow allows only functions sent by import path from ",
      absl::StrJoin(options_.allowed, ", ")));
}

absl::Status Host::CallUntil(const std::stop_token& stop, const PythonFunction& function,
                             absl::Span<const Tensor> inputs, absl::Span<const TensorSpec> outputs,
                             ElementOutputs& out) {
  return Do(function, nullptr, stop, [&](Process& process, uint64_t) {
    return process.Call(function, inputs, outputs, out);
  });
}

absl::StatusOr<std::unique_ptr<SourceReader>> Host::OpenUntil(
    const std::stop_token& stop, std::shared_ptr<const PythonFunction> function, Spec spec) {
  RETURN_IF_ERROR(Admit(*function));
  return std::make_unique<GeneratorReader>(shared_from_this(), stop, std::move(function),
                                           std::move(spec));
}

std::shared_ptr<PythonHost> Host::Until(const std::stop_token& stop) {
  if (!stop.stop_possible()) return nullptr;
  return std::make_shared<HostUntil>(shared_from_this(), stop);
}

absl::Status Host::Do(const PythonFunction& function, Place* wanted, const std::stop_token& stop,
                      Use use) {
  std::string how;
  absl::Status ready;
  for (int i = 0; i < kTries; ++i) {
    ASSIGN_OR_RETURN(Place* const place, Take(wanted, stop));
    ready = Ready(*place);
    absl::Status status = ready;
    if (ready.ok()) {
      place->process->Until(stop);
      status = use(*place->process, place->life);
      place->process->Until({});
    }
    std::unique_ptr<Process> ended;
    if (place->process != nullptr && place->process->ended()) ended = Remove(*place);
    Give(place);
    if (ended == nullptr) return status;
    RETURN_IF_ERROR(CheckRuns(stop));  // a stop or Stop() may have ended the process
    how = ended->HowItEnded();
    // Repeats the request in this place, whose next process is new. Processes in other places may
    // have died together with this process.
    wanted = place;
    StderrEventLog()->Write({"python_ended", {{"function", function.name}, {"how", how}}});
  }
  RETURN_IF_ERROR(ready);
  return absl::InternalError(
      absl::StrCat("function '", function.name,
                   "': its Python process ended, and so did the next one, which ", how));
}

absl::Status Host::CheckRuns(const std::stop_token& stop) {
  MutexLock lock(mu_);
  if (stop.stop_requested()) return absl::CancelledError("reading was stopped");
  return stopped_ ? Stopped() : absl::OkStatus();
}

absl::StatusOr<Place*> Host::Take(Place* wanted, const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    MutexLock lock(mu_);
    freed_.NotifyAll();
  });
  MutexLock lock(mu_);
  Place* place = nullptr;
  freed_.Wait(lock, [&]() REQUIRES(mu_) {
    return stopped_ || (place = FreePlace(wanted)) != nullptr || stop.stop_requested();
  });
  if (stopped_) return Stopped();
  if (place == nullptr) return absl::CancelledError("reading was stopped");
  place->taken = true;
  return place;
}

Place* Host::FreePlace(Place* wanted) {
  if (wanted != nullptr) return wanted->taken ? nullptr : wanted;
  Place* found = nullptr;
  for (Place& place : places_) {
    if (place.taken) continue;
    if (place.process != nullptr) return &place;
    if (found == nullptr) found = &place;
  }
  return found;
}

void Host::Give(Place* place) {
  {
    MutexLock lock(mu_);
    place->taken = false;
  }
  freed_.NotifyAll();
}

absl::Status Host::Ready(Place& place) {
  if (place.process != nullptr && place.process->HasGone()) {  // died between calls
    const std::unique_ptr<Process> gone = Remove(place);
    StderrEventLog()->Write({"python_ended", {{"function", "none"}, {"how", gone->HowItEnded()}}});
  }
  if (place.process == nullptr) {
    absl::StatusOr<std::unique_ptr<Process>> started = Process::Start(options_.command);
    // Whatever its code, the error is one of the machine, not of the element.
    if (!started.ok()) return absl::FailedPreconditionError(started.status().message());
    std::unique_ptr<Process> process = *std::move(started);
    {
      MutexLock lock(mu_);
      if (stopped_) return Stopped();
      place.process = std::move(process);
      place.life = ++lives_;
      place.to_close.clear();
    }
    absl::Status ready = place.process->AwaitReady();
    if (!ready.ok() && !place.process->ended()) Remove(place);
    return ready;
  }
  std::vector<uint64_t> to_close;
  {
    MutexLock lock(mu_);
    to_close.swap(place.to_close);
  }
  for (const uint64_t session : to_close) place.process->Close(session);
  return absl::OkStatus();
}

std::unique_ptr<Process> Host::Remove(Place& place) {
  MutexLock lock(mu_);  // Stop() reads place.process
  return std::move(place.process);
}

Place* Host::TakeSession() {
  MutexLock lock(mu_);
  auto place = std::min_element(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return a.sessions < b.sessions;
  });
  ++place->sessions;
  return &*place;
}

void Host::LeaveSession(Place* place, uint64_t life, uint64_t session) {
  {
    MutexLock lock(mu_);
    --place->sessions;
    if (place->process == nullptr || place->life != life) return;
    if (place->taken || stopped_) {
      place->to_close.push_back(session);
      return;
    }
    place->taken = true;
  }
  place->process->Close(session);
  Give(place);
}

void Host::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
    for (Place& place : places_)
      if (place.process != nullptr) place.process->Interrupt();
  }
  freed_.NotifyAll();
}

}  // namespace

std::shared_ptr<PythonHost> ProcessHost::Create(HostOptions options) {
  return std::make_shared<Host>(std::move(options));
}

absl::StatusOr<std::shared_ptr<PythonHost>> ProcessHost::Start(HostOptions options) {
  auto host = std::make_shared<Host>(std::move(options));
  RETURN_IF_ERROR(host->StartAll());
  return host;
}

}  // namespace penstock::python_host
