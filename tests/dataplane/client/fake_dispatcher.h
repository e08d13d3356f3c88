// SPDX-License-Identifier: Apache-2.0
// A dispatcher that sends what a test tells it to, and records what it receives.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/stub/dispatcher_stub.h"
#include "gtest/gtest.h"

namespace penstock::client {

class FakeDispatcher final : public control::DispatcherStub {
 public:
  FakeDispatcher() : DispatcherStub({"fake:1"}), thread_([this] { Run(); }) {}
  ~FakeDispatcher() override {
    {
      std::lock_guard lock(mu_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // --- Functions for tests -----------------------------------------------------

  // Sends the message on the current stream, if there is one.
  void Say(control::ClientDown message) {
    Post([message = std::move(message)](control::ClientSessionEvents& events) {
      events.OnMessage(message, 0);
    });
  }
  // True if a session listens to the stream.
  bool has_stream() {
    std::lock_guard lock(mu_);
    return events_ != nullptr;
  }
  // Breaks the current stream.
  void Break(absl::Status status = absl::UnavailableError("broken on purpose")) {
    Post([status](control::ClientSessionEvents& events) { events.OnClosed(status); });
  }
  // Waits for message number `i` of that type and returns it. The test fails if it does not come.
  template <class Message>
  Message Heard(size_t i = 0) {
    std::unique_lock lock(mu_);
    const Message* found = nullptr;
    changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      size_t seen = 0;
      for (const control::ClientUp& up : heard_) {
        found = std::get_if<Message>(&up);
        if (found != nullptr && seen++ == i) return true;
      }
      found = nullptr;
      return false;
    });
    if (found != nullptr) return *found;
    ADD_FAILURE() << "not heard within a minute";
    return Message();
  }
  // Returns how many messages of that type were received so far.
  template <class Message>
  size_t Count() {
    std::lock_guard lock(mu_);
    return static_cast<size_t>(std::count_if(
        heard_.begin(), heard_.end(),
        [](const control::ClientUp& up) { return std::holds_alternative<Message>(up); }));
  }
  bool answer_heartbeats = true;  // set before a session begins
  bool answer_leaves = true;      // set before a session begins

  // --- DispatcherStub ------------------------------------------------------------

  void Stop() override {}
  absl::StatusOr<control::VersionRange> GetVersion(control::CallOptions) override {
    return control::VersionRange();
  }
  absl::StatusOr<control::RegisterDatasetAnswer> GetOrRegisterDataset(
      const control::RegisterDatasetRequest&, control::CallOptions) override {
    return No();
  }
  absl::StatusOr<control::GetDatasetAnswer> GetDataset(std::string_view, uint64_t,
                                                       control::CallOptions) override {
    return No();
  }
  absl::Status UnregisterDataset(std::string_view, control::CallOptions) override { return No(); }
  absl::StatusOr<control::JobAnswer> GetOrCreateJob(const control::GetOrCreateJobRequest&,
                                                    control::CallOptions) override {
    return No();
  }
  absl::StatusOr<control::JobAnswer> RestoreJob(const control::RestoreJobRequest&,
                                                control::CallOptions) override {
    return No();
  }
  absl::StatusOr<control::SavedRepetition> GetReading(const control::GetReadingRequest&,
                                                      control::CallOptions) override {
    return No();
  }
  absl::Status CancelJob(std::string_view, control::CallOptions) override { return No(); }
  absl::Status RemoveJob(std::string_view, control::CallOptions) override { return No(); }
  absl::StatusOr<control::DispatcherStatus> GetStatusPage(const control::StatusRequest&,
                                                          control::CallOptions) override {
    return No();
  }
  absl::Status FinaliseUpgrade(control::CallOptions) override { return No(); }
  std::unique_ptr<control::ClientSession> OpenClientSession(
      const std::string& /*address*/, control::ClientSessionEvents* events) override {
    std::lock_guard lock(mu_);
    events_ = events;
    return std::make_unique<Stream>(*this, events);
  }
  std::unique_ptr<control::WorkerSession> OpenWorkerSession(
      const std::string& /*address*/, control::WorkerSessionEvents*) override {
    return nullptr;
  }

 private:
  using Action = std::function<void(control::ClientSessionEvents&)>;

  class Stream final : public control::ClientSession {
   public:
    Stream(FakeDispatcher& fake, control::ClientSessionEvents* events)
        : fake_(fake), events_(events) {}
    ~Stream() override { Stop(); }
    void Send(control::ClientUp message) override { fake_.Hear(std::move(message)); }
    void Stop() override { fake_.Forget(events_); }

   private:
    FakeDispatcher& fake_;
    control::ClientSessionEvents* const events_;
  };

  static absl::Status No() { return absl::UnimplementedError("not faked"); }

  void Post(Action action) {
    {
      std::lock_guard lock(mu_);
      actions_.push_back(std::move(action));
    }
    changed_.notify_all();
  }

  void Hear(control::ClientUp message) {
    {
      std::lock_guard lock(mu_);
      if (auto* beat = std::get_if<control::ClientHeartbeat>(&message);
          beat != nullptr && answer_heartbeats) {
        actions_.push_back([counter = beat->counter](control::ClientSessionEvents& events) {
          events.OnMessage(control::ClientHeartbeatAnswer{counter}, 0);
        });
      }
      if (std::holds_alternative<control::Leave>(message) && answer_leaves) {
        actions_.push_back(
            [](control::ClientSessionEvents& events) { events.OnMessage(control::Left(), 0); });
      }
      heard_.push_back(std::move(message));
    }
    changed_.notify_all();
  }

  void Forget(control::ClientSessionEvents* events) {
    std::unique_lock lock(mu_);
    if (events_ == events) events_ = nullptr;
    changed_.wait(lock, [&] { return running_ != events; });
  }

  void Run() {
    std::unique_lock lock(mu_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || (!actions_.empty() && events_ != nullptr); });
      if (stopping_) return;
      Action action = std::move(actions_.front());
      actions_.pop_front();
      running_ = events_;
      lock.unlock();
      action(*running_);
      lock.lock();
      running_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;
  control::ClientSessionEvents* events_ = nullptr;   // of the current stream
  control::ClientSessionEvents* running_ = nullptr;  // inside an event
  std::deque<Action> actions_;
  std::vector<control::ClientUp> heard_;
  std::thread thread_;  // last, because it uses all members above
};

}  // namespace penstock::client
