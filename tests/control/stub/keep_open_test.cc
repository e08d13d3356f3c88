// SPDX-License-Identifier: Apache-2.0
// Streams that come back, without a network.
#include <condition_variable>
#include <deque>
#include <mutex>

#include "control/protocol/session_messages.h"
#include "control/stub/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

// Opens streams that the test breaks by hand.
class HandNetwork {
 public:
  class Stream : public Session<ClientUp> {
   public:
    Stream(HandNetwork& network, SessionEvents<ClientDown>* events)
        : network_(network), events_(events) {}
    void Send(ClientUp message) override { network_.Sent(std::move(message)); }
    void Stop() override {}
    SessionEvents<ClientDown>* events() { return events_; }

   private:
    HandNetwork& network_;
    SessionEvents<ClientDown>* events_;
  };

  OpenSession<ClientUp, ClientDown> Opener() {
    return [this](SessionEvents<ClientDown>* events) {
      auto stream = std::make_unique<Stream>(*this, events);
      std::lock_guard lock(mu_);
      streams_.push_back(events);
      changed_.notify_all();
      return stream;
    };
  }
  // The events of the stream number `n`, from 1, when it is opened.
  SessionEvents<ClientDown>* WaitForStream(size_t n) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return streams_.size() >= n; });
    return streams_[n - 1];
  }
  ClientUp NextSent() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return !sent_.empty(); });
    ClientUp first = std::move(sent_.front());
    sent_.pop_front();
    return first;
  }

 private:
  void Sent(ClientUp message) {
    std::lock_guard lock(mu_);
    sent_.push_back(std::move(message));
    changed_.notify_all();
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<SessionEvents<ClientDown>*> streams_;  // guarded by mu_
  std::deque<ClientUp> sent_;                        // guarded by mu_
};

class Recorded : public ReconnectingEvents<ClientUp, ClientDown> {
 public:
  ClientUp Hello() override { return ClientHeartbeat{++hellos_}; }
  void OnMessage(ClientDown, uint64_t) override { Note("message"); }
  void OnLost(const absl::Status& status) override {
    Note("lost: " + std::string(status.message()));
  }
  void OnGivenUp(const absl::Status& status) override {
    Note("given up: " + std::string(status.message()));
  }
  std::string Wait(size_t n) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return notes_.size() >= n; });
    return notes_[n - 1];
  }

 private:
  void Note(std::string what) {
    std::lock_guard lock(mu_);
    notes_.push_back(std::move(what));
    changed_.notify_all();
  }
  uint64_t hellos_ = 0;
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::string> notes_;  // guarded by mu_
};

constexpr absl::Duration kQuick = absl::Milliseconds(1);

TEST(KeepOpen, SaysHelloAnewOnEachStream) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  SessionEvents<ClientDown>* first = network.WaitForStream(1);
  EXPECT_EQ(network.NextSent(), ClientUp(ClientHeartbeat{1}));
  first->OnMessage(End{}, 0);
  session->Send(ClientHeartbeat{100});
  EXPECT_EQ(network.NextSent(), ClientUp(ClientHeartbeat{100}));
  first->OnClosed(absl::UnavailableError("broke"));
  network.WaitForStream(2);
  EXPECT_EQ(network.NextSent(), ClientUp(ClientHeartbeat{2}));
  session->Stop();
  EXPECT_EQ(events.Wait(1), "message");
  EXPECT_EQ(events.Wait(2), "lost: broke");
}

TEST(KeepOpen, ARefusalIsFinal) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), &events);
  network.WaitForStream(1)->OnClosed(absl::FailedPreconditionError("declared dead"));
  EXPECT_EQ(events.Wait(1), "given up: declared dead");
  session->Send(ClientHeartbeat{1});  // goes nowhere
}

TEST(KeepOpen, WhatOnlyAProxyCanHaveSaidIsNot) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  network.WaitForStream(1)->OnClosed(absl::PermissionDeniedError("403 Forbidden"));
  EXPECT_EQ(events.Wait(1), "lost: 403 Forbidden");
  network.WaitForStream(2)->OnClosed(absl::UnimplementedError("404"));
  SessionEvents<ClientDown>* third = network.WaitForStream(3);
  third->OnMessage(SessionError{absl::PermissionDeniedError("no such job for you")}, 0);
  third->OnClosed(absl::PermissionDeniedError("no such job for you"));
  EXPECT_EQ(events.Wait(4), "given up: no such job for you");
}

TEST(KeepOpen, OutOfReachForTooLongIsGivenUpWithTheReason) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(
      network.Opener(), &events, {.address = "head:5050", .timeout = absl::Nanoseconds(1)});
  network.WaitForStream(1)->OnClosed(absl::UnavailableError("connection refused"));
  EXPECT_THAT(events.Wait(1), HasSubstr("no dispatcher answers at head:5050 within 1ns"));
}

TEST(KeepOpen, OneThatIsThereButNotReadyIsNotSaidToBeOutOfReach) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(
      network.Opener(), &events, {.address = "head:5050", .timeout = absl::Seconds(1)});
  network.WaitForStream(1)->OnClosed(absl::AbortedError("the job waits for its first worker"));
  EXPECT_THAT(events.Wait(2), HasSubstr("the dispatcher at head:5050 could not begin within 1s: "
                                        "the job waits for its first worker"));
}

TEST(KeepOpen, StoppingNeedNotWaitForAPause) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(
      network.Opener(), &events,
      {.timeout = absl::Hours(2), .first_backoff = absl::Hours(1), .max_backoff = absl::Hours(1)});
  network.WaitForStream(1)->OnClosed(absl::UnavailableError("broke"));
  EXPECT_EQ(events.Wait(1), "lost: broke");
  session->Stop();
}

}  // namespace
}  // namespace penstock::control
