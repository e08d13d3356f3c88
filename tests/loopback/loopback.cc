// SPDX-License-Identifier: Apache-2.0
// The control plane within one process, for builds without gRPC: the listeners of dispatchers by
// port, and the stubs that reach them. Each stream has a thread of its own, on which the core gets
// the peer's messages, and the peer those of the core.
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/server/listener.h"
#include "control/dispatcher/server/upgrade.h"
#include "control/stub/dispatcher_stub.h"
#include "control/stub/retry.h"
#include "control/stub/target.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

absl::Status Refused() {
  return absl::UnavailableError("connection refused");
}

// A stream that a listener ends.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  virtual void Break() = 0;
};

// One dispatcher, from its start to its end. Its core is only called between Enter() and Leave().
class Line {
 public:
  explicit Line(Core* core) : core_(core) {}

  Core* core() const { return core_; }
  // Returns false after Shut().
  bool Enter(Stoppable* stream = nullptr) {
    std::lock_guard lock(mu_);
    if (shut_) return false;
    ++inside_;
    if (stream != nullptr) streams_.insert(stream);
    return true;
  }
  void Leave(Stoppable* stream = nullptr) {
    std::lock_guard lock(mu_);
    streams_.erase(stream);
    --inside_;
    left_.notify_all();
  }
  // Closes the line; returns when no thread is inside.
  void Shut() {
    std::unique_lock lock(mu_);
    shut_ = true;
    for (Stoppable* stream : streams_) stream->Break();
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  Core* const core_;
  std::mutex mu_;
  std::condition_variable left_;
  bool shut_ = false;
  int inside_ = 0;
  std::set<Stoppable*> streams_;
};

// The dispatchers of this process by port.
class Lines {
 public:
  static Lines& OfThisProcess() {
    static Lines& lines = *new Lines;
    return lines;
  }
  // Listens at `port`; 0 chooses one. Returns null if the port is taken.
  std::shared_ptr<Line> Open(int& port, Core* core) {
    std::lock_guard lock(mu_);
    if (port == 0) port = ++last_;
    auto [at, is_new] = by_port_.emplace(port, nullptr);
    if (is_new) at->second = std::make_shared<Line>(core);
    return is_new ? at->second : nullptr;
  }
  void Close(int port) {
    std::lock_guard lock(mu_);
    by_port_.erase(port);
  }
  // Returns null if nobody listens there.
  std::shared_ptr<Line> At(const std::string& address) {
    int port = 0;
    if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) return nullptr;
    std::lock_guard lock(mu_);
    auto at = by_port_.find(port);
    return at == by_port_.end() ? nullptr : at->second;
  }

 private:
  std::mutex mu_;
  int last_ = 50'000;  // avoids ports that tests use as unused ones
  std::map<int, std::shared_ptr<Line>> by_port_;
};

template <class Up, class Down, class Peer>
class Stream final : public StreamWriter<Down>,
                     public Stoppable,
                     public std::enable_shared_from_this<Stream<Up, Down, Peer>> {
 public:
  using Opened = std::shared_ptr<Peer> (Core::*)(std::shared_ptr<StreamWriter<Down>>, Caller);

  Stream(std::shared_ptr<Line> line, SessionEvents<Down>* events)
      : line_(std::move(line)), events_(events) {}
  void Start(Opened open) {
    std::thread([self = this->shared_from_this(), open] { self->Run(open); }).detach();
  }

  // --- The peer's side ---
  void Send(Up message) {
    std::lock_guard lock(mu_);
    up_.push_back(std::move(message));
    changed_.notify_all();
  }
  void Stop() {
    std::unique_lock lock(mu_);
    stopped_ = true;
    changed_.notify_all();
    if (event_thread_ == std::this_thread::get_id()) return;
    changed_.wait(lock, [this] { return over_ && event_thread_ == std::thread::id(); });
  }

  // --- The core's side ---
  void Send(Down message, uint64_t sequence) override {
    std::lock_guard lock(mu_);
    if (!finished_) down_.emplace_back(std::move(message), sequence);
    changed_.notify_all();
  }
  void Finish(const absl::Status& status) override {
    std::lock_guard lock(mu_);
    if (!finished_) finished_ = status;
    changed_.notify_all();
  }
  void Break() override { Finish(absl::UnavailableError("the dispatcher stops")); }

 private:
  void Run(Opened open) {
    const bool entered = line_ != nullptr && line_->Enter(this);
    absl::Status status = Refused();
    if (entered) {
      std::shared_ptr<Peer> peer = (line_->core()->*open)(this->shared_from_this(), Caller());
      status = Pump(peer);
      line_->core()->OnClosed(peer);
      line_->Leave(this);
    }
    Deliver([&] { events_->OnClosed(status); });
    std::lock_guard lock(mu_);
    over_ = true;
    changed_.notify_all();
  }

  // Passes messages on until either side ends the stream.
  absl::Status Pump(const std::shared_ptr<Peer>& peer) {
    std::unique_lock lock(mu_);
    while (true) {
      changed_.wait(lock,
                    [this] { return stopped_ || finished_ || !up_.empty() || !down_.empty(); });
      if (stopped_) return absl::CancelledError("stopped");
      if (!down_.empty()) {
        std::pair<Down, uint64_t> next = std::move(down_.front());
        down_.pop_front();
        lock.unlock();
        Deliver([&] { events_->OnMessage(std::move(next.first), next.second); });
        lock.lock();
      } else if (finished_) {
        return *finished_;
      } else {
        Up message = std::move(up_.front());
        up_.pop_front();
        lock.unlock();
        line_->core()->OnMessage(peer, std::move(message));
        lock.lock();
      }
    }
  }

  template <class Event>
  void Deliver(Event event) {
    {
      std::lock_guard lock(mu_);
      if (stopped_) return;
      event_thread_ = std::this_thread::get_id();
    }
    event();
    std::lock_guard lock(mu_);
    event_thread_ = std::thread::id();
    changed_.notify_all();
  }

  const std::shared_ptr<Line> line_;  // null: nobody listens
  SessionEvents<Down>* const events_;

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Up> up_;
  std::deque<std::pair<Down, uint64_t>> down_;
  std::optional<absl::Status> finished_;  // set by the core
  bool stopped_ = false;                  // set by the peer
  bool over_ = false;
  std::thread::id event_thread_;  // the thread that runs an event now
};

// The peer's end of a stream.
template <class Up, class Down, class Peer>
class LoopbackSession final : public Session<Up> {
 public:
  using Its = Stream<Up, Down, Peer>;
  LoopbackSession(const std::string& address, SessionEvents<Down>* events,
                  typename Its::Opened open)
      : stream_(std::make_shared<Its>(Lines::OfThisProcess().At(address), events)) {
    stream_->Start(open);
  }
  ~LoopbackSession() override { stream_->Stop(); }
  void Send(Up message) override { stream_->Send(std::move(message)); }
  void Stop() override { stream_->Stop(); }

 private:
  const std::shared_ptr<Its> stream_;
};

// An answer that one thread waits for.
template <class Answer>
class Awaited {
 public:
  void Set(Answer answer) {
    std::lock_guard lock(mu_);
    answer_ = std::move(answer);
    changed_.notify_all();
  }
  // Returns nothing at the deadline, or when stopped.
  std::optional<Answer> Wait(absl::Time deadline, std::stop_token stop) {
    std::unique_lock lock(mu_);
    changed_.wait_until(lock, std::move(stop), absl::ToChronoTime(deadline),
                        [this] { return answer_.has_value(); });
    return std::move(answer_);
  }

 private:
  std::mutex mu_;
  std::condition_variable_any changed_;
  std::optional<Answer> answer_;
};

class LoopbackStub final : public DispatcherStub {
 public:
  explicit LoopbackStub(std::vector<std::string> addresses)
      : DispatcherStub(std::move(addresses)) {}
  ~LoopbackStub() override { Stop(); }

  void Stop() override { stop_.request_stop(); }

  absl::StatusOr<VersionRange> GetVersion(CallOptions) override { return VersionRange(); }
  absl::StatusOr<RegisterDatasetAnswer> GetOrRegisterDataset(const RegisterDatasetRequest& request,
                                                             CallOptions options) override {
    return Call<absl::StatusOr<RegisterDatasetAnswer>>(
        options, [&](Core& core, auto done) { core.RegisterDataset(request, done); });
  }
  absl::StatusOr<GetDatasetAnswer> GetDataset(std::string_view id, uint64_t edition,
                                              CallOptions options) override {
    using Found = std::shared_ptr<const DatasetRecord>;
    ASSIGN_OR_RETURN(const Found found,
                     Call<absl::StatusOr<Found>>(options, [&](Core& core, auto done) {
                       core.GetDataset(std::string(id), edition, done);
                     }));
    return GetDatasetAnswer{found->id, found->definition, found->summary};
  }
  absl::Status UnregisterDataset(std::string_view id, CallOptions options) override {
    return Call<absl::Status>(
        options, [&](Core& core, auto done) { core.UnregisterDataset(std::string(id), done); });
  }
  absl::StatusOr<JobAnswer> GetOrCreateJob(const GetOrCreateJobRequest& request,
                                           CallOptions options) override {
    return Call<absl::StatusOr<JobAnswer>>(
        options, [&](Core& core, auto done) { core.GetOrCreateJob(request, done); });
  }
  absl::StatusOr<JobAnswer> RestoreJob(const RestoreJobRequest& request,
                                       CallOptions options) override {
    return Call<absl::StatusOr<JobAnswer>>(
        options, [&](Core& core, auto done) { core.RestoreJob(request, done); });
  }
  absl::StatusOr<SavedRepetition> GetReading(const GetReadingRequest& request,
                                             CallOptions options) override {
    return Call<absl::StatusOr<SavedRepetition>>(
        options, [&](Core& core, auto done) { core.GetReading(request, done); });
  }
  absl::Status CancelJob(std::string_view job, CallOptions options) override {
    return Call<absl::Status>(
        options, [&](Core& core, auto done) { core.CancelJob(std::string(job), done); });
  }
  absl::Status RemoveJob(std::string_view job, CallOptions options) override {
    return Call<absl::Status>(
        options, [&](Core& core, auto done) { core.RemoveJob(std::string(job), done); });
  }
  absl::StatusOr<DispatcherStatus> GetStatusPage(const StatusRequest& request,
                                                 CallOptions options) override {
    return Call<absl::StatusOr<DispatcherStatus>>(
        options, [&](Core& core, auto done) { core.GetStatus(request, done); });
  }
  absl::Status FinaliseUpgrade(CallOptions options) override {
    return Call<absl::Status>(
        options, [&](Core& core, auto done) { control::FinaliseUpgrade(core, done, Caller()); });
  }
  std::unique_ptr<ClientSession> OpenClientSession(const std::string& address,
                                                   ClientSessionEvents* events) override {
    return std::make_unique<LoopbackSession<ClientUp, ClientDown, ClientPeer>>(address, events,
                                                                               &Core::OpenClient);
  }
  std::unique_ptr<WorkerSession> OpenWorkerSession(const std::string& address,
                                                   WorkerSessionEvents* events) override {
    return std::make_unique<LoopbackSession<WorkerUp, WorkerDown, WorkerPeer>>(address, events,
                                                                               &Core::OpenWorker);
  }

 private:
  // `ask(core, done)` asks once.
  template <class Answer, class Ask>
  Answer Call(const CallOptions& options, Ask ask) {
    std::optional<Answer> answer;
    const absl::Status status =
        Retry(addresses(), options, stop_.get_token(),
              [&](const std::string& its, absl::Duration left,
                  const std::stop_token& stop) -> absl::Status {
                const std::shared_ptr<Line> line = Lines::OfThisProcess().At(its);
                if (line == nullptr || !line->Enter()) return Refused();
                auto awaited = std::make_shared<Awaited<Answer>>();
                ask(*line->core(), [awaited](Answer its) { awaited->Set(std::move(its)); });
                line->Leave();
                answer = awaited->Wait(absl::Now() + left, stop);
                if (!answer) return absl::CancelledError("nobody waits for the answer");
                if constexpr (std::is_same_v<Answer, absl::Status>) {
                  return *answer;
                } else {
                  return answer->status();
                }
              });
    if (!status.ok()) return status;
    return *std::move(answer);
  }

  std::stop_source stop_;
};

class LoopbackListener final : public Listener {
 public:
  explicit LoopbackListener(int port) : port_(port) {}
  ~LoopbackListener() override {
    if (line_ == nullptr) return;
    Lines::OfThisProcess().Close(port_);
    Shutdown();
  }
  absl::Status Serve(Core* core) override {
    line_ = Lines::OfThisProcess().Open(port_, core);
    if (line_ != nullptr) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot listen on ", port_, ": it is in use"));
  }
  int port() const override { return port_; }
  void Shutdown() override { line_->Shut(); }

 private:
  int port_;
  std::shared_ptr<Line> line_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(const DispatcherConfig& config,
                                                         const PortLimits& /*limits*/) {
  return std::make_unique<LoopbackListener>(config.port);
}

absl::StatusOr<std::unique_ptr<DispatcherStub>> DispatcherStub::Make(std::string_view service,
                                                                     const TlsConfig& /*tls*/) {
  ASSIGN_OR_RETURN(Target target, ParseTarget(service));
  return std::make_unique<LoopbackStub>(std::move(target.addresses));
}

}  // namespace penstock::control
