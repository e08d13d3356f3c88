// SPDX-License-Identifier: Apache-2.0
// Workers and clients driven by hand over real streams: messages that a test sends, and a queue of
// those received. They wait for messages, never for time.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/stub/dispatcher_stub.h"
#include "gtest/gtest.h"

namespace penstock::control {

// How long a message may take before the test gives up.
inline constexpr auto kPatience = std::chrono::seconds(20);

template <class Up, class Down>
class Peer {
 public:
  ~Peer() {
    if (session_) session_->Stop();
  }

  void Send(Up message) { session_->Send(std::move(message)); }
  void Disconnect() { session_->Stop(); }

  // Returns the next message of that type and drops messages of other types before it.
  template <class Message>
  Message Next() {
    std::unique_lock lock(mu_);
    while (true) {
      const bool came =
          changed_.wait_for(lock, kPatience, [this] { return !queue_.empty() || closed_; });
      if (!came || queue_.empty()) {
        ADD_FAILURE() << "no " << typeid(Message).name()
                      << " came; closed: " << (closed_ ? closed_->ToString() : "no");
        return Message{};
      }
      Down message = std::move(queue_.front());
      queue_.pop_front();
      if (auto* wanted = std::get_if<Message>(&message)) return std::move(*wanted);
    }
  }

  // Returns the next message of that type for which `holds`.
  template <class Message, class Predicate>
  Message NextThat(Predicate holds) {
    while (true) {
      Message message = Next<Message>();
      if (holds(message) || ::testing::Test::HasFailure()) return message;
    }
  }

  absl::Status WaitClosed() {
    std::unique_lock lock(mu_);
    if (!changed_.wait_for(lock, kPatience, [this] { return closed_.has_value(); })) {
      ADD_FAILURE() << "the stream stays open";
      return absl::OkStatus();
    }
    return *closed_;
  }

  // Returns the sequence number of the latest message, even if it was not read from here yet.
  uint64_t sequence() {
    std::lock_guard lock(mu_);
    return sequence_;
  }

 protected:
  // For opening session_.
  SessionEvents<Down>* events() { return &events_; }

  std::unique_ptr<Session<Up>> session_;

 private:
  // Not the peer itself: events come while the peer is being destroyed, until it has stopped the
  // session.
  class Events final : public SessionEvents<Down> {
   public:
    explicit Events(Peer& peer) : peer_(peer) {}
    void OnMessage(Down message, uint64_t sequence) override {
      std::lock_guard lock(peer_.mu_);
      peer_.sequence_ = sequence;
      peer_.queue_.push_back(std::move(message));
      peer_.changed_.notify_all();
    }
    void OnClosed(const absl::Status& status) override {
      std::lock_guard lock(peer_.mu_);
      peer_.closed_ = status;
      peer_.changed_.notify_all();
    }

   private:
    Peer& peer_;
  };

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Down> queue_;              // guarded by mu_
  uint64_t sequence_ = 0;               // guarded by mu_
  std::optional<absl::Status> closed_;  // guarded by mu_
  Events events_{*this};
};

class HandWorker : public Peer<WorkerUp, WorkerDown> {
 public:
  HandWorker(DispatcherStub& stub, uint64_t id, int permits = 1,
             std::vector<PlacedPartition> held = {}, std::string address = "", Heard heard = {}) {
    session_ = stub.OpenWorkerSession(events());
    Send(WorkerHello{.worker = WorkerId(id),
                     .address = address.empty() ? absl::StrCat("worker", id) : address,
                     .permits = permits,
                     .held = std::move(held),
                     .heard = heard});
    if (heard.life.id == 0) welcome = Next<WorkerWelcome>();
  }
  WorkerWelcome welcome;
};

class HandClient : public Peer<ClientUp, ClientDown> {
 public:
  HandClient(DispatcherStub& stub, const JobAnswer& job, uint64_t id, uint64_t incarnation = 1,
             int64_t repetition = 0,
             std::optional<std::vector<PartitionIndices>> state = std::nullopt, Heard heard = {}) {
    session_ = stub.OpenClientSession(events());
    Send(ClientHello{.job = job.job,
                     .repetition = repetition,
                     .client = ClientId(id),
                     .incarnation = Incarnation(incarnation),
                     .state = std::move(state),
                     .token = job.token,
                     .heard = heard});
  }

  void SendReport(PartitionId partition, Placement placement, IndexSet delivered,
                  IndexSet received = {}) {
    Send(Report{{{partition, placement, std::move(delivered), std::move(received)}}});
  }
};

}  // namespace penstock::control
