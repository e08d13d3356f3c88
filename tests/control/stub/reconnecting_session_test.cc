// SPDX-License-Identifier: Apache-2.0
// Streams that are opened again after a break, without a network.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/worker_messages.h"
#include "control/stub/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

// Opens streams that the test breaks by hand.
template <class Up, class Down>
class HandNetworkOf {
 public:
  // The events of a stream. Once the stream is stopped, none is passed on.
  class Events final : public SessionEvents<Down> {
   public:
    explicit Events(SessionEvents<Down>* to) : to_(to) {}
    void OnMessage(Down message, uint64_t sequence) override {
      std::lock_guard lock(mu_);
      if (to_ != nullptr) to_->OnMessage(std::move(message), sequence);
    }
    void OnClosed(const absl::Status& status) override {
      std::lock_guard lock(mu_);
      if (to_ != nullptr) to_->OnClosed(status);
    }
    void Stop() {
      std::lock_guard lock(mu_);
      to_ = nullptr;
    }

   private:
    std::mutex mu_;
    SessionEvents<Down>* to_;  // guarded by mu_; null once the stream is stopped
  };

  class Stream : public Session<Up> {
   public:
    Stream(HandNetworkOf& network, std::shared_ptr<Events> events)
        : network_(network), events_(std::move(events)) {}
    ~Stream() override { Stop(); }
    void Send(Up message) override { network_.Sent(std::move(message)); }
    void Stop() override { events_->Stop(); }

   private:
    HandNetworkOf& network_;
    const std::shared_ptr<Events> events_;
  };

  explicit HandNetworkOf(std::vector<std::string> addresses = {"head:5050"})
      : addresses_(std::move(addresses)) {}

  Addresses& addresses() { return addresses_; }
  OpenSession<Up, Down> Opener() {
    return [this](const std::string& address, SessionEvents<Down>* events) {
      auto its = std::make_shared<Events>(events);
      auto stream = std::make_unique<Stream>(*this, its);
      std::lock_guard lock(mu_);
      streams_.push_back(std::move(its));
      dialled_.push_back(address);
      changed_.notify_all();
      return stream;
    };
  }
  // Waits for stream number `n`, from 1; returns its events.
  SessionEvents<Down>* WaitForStream(size_t n) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return streams_.size() >= n; });
    return streams_[n - 1].get();
  }
  // Returns the address of stream number `n`, which has been opened.
  std::string AddressOf(size_t n) {
    std::lock_guard lock(mu_);
    return dialled_[n - 1];
  }
  Up NextSent() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return !sent_.empty(); });
    Up first = std::move(sent_.front());
    sent_.pop_front();
    return first;
  }

 private:
  void Sent(Up message) {
    std::lock_guard lock(mu_);
    sent_.push_back(std::move(message));
    changed_.notify_all();
  }

  Addresses addresses_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Events>> streams_;  // guarded by mu_
  std::vector<std::string> dialled_;              // guarded by mu_
  std::deque<Up> sent_;                           // guarded by mu_
};
using HandNetwork = HandNetworkOf<ClientUp, ClientDown>;

template <class Up, class Down, class Beat>
class RecordedOf : public ReconnectingEvents<Up, Down> {
 public:
  Up Hello() override { return Beat{++hellos_}; }
  void OnMessage(Down, uint64_t) override { Note("message"); }
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
using Recorded = RecordedOf<ClientUp, ClientDown, ClientHeartbeat>;

constexpr absl::Duration kQuick = absl::Milliseconds(1);

TEST(KeepOpen, SendsHelloOnEachStream) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  SessionEvents<ClientDown>* first = network.WaitForStream(1);
  EXPECT_EQ(network.NextSent(), ClientUp(ClientHeartbeat{1}));
  first->OnMessage(End{}, 0);
  (*session)->Send(ClientHeartbeat{100});
  EXPECT_EQ(network.NextSent(), ClientUp(ClientHeartbeat{100}));
  first->OnClosed(absl::UnavailableError("broke"));
  network.WaitForStream(2);
  EXPECT_EQ(network.NextSent(), ClientUp(ClientHeartbeat{2}));
  (*session)->Stop();
  EXPECT_EQ(events.Wait(1), "message");
  EXPECT_EQ(events.Wait(2), "lost: broke");
}

TEST(KeepOpen, AStreamThatIsBrokenOffIsOpenedAgain) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  network.WaitForStream(1);
  EXPECT_EQ(network.NextSent(), ClientUp(ClientHeartbeat{1}));
  (*session)->BreakOff(absl::AbortedError("a message is missing"));
  EXPECT_EQ(events.Wait(1), "lost: a message is missing");
  network.WaitForStream(2);
  EXPECT_EQ(network.NextSent(), ClientUp(ClientHeartbeat{2}));
}

// A session that does something while each of its streams is opened, after the hello was made.
struct ActsWhileOpening {
  using Its = ReconnectingSession<ClientUp, ClientDown>;
  explicit ActsWhileOpening(std::function<void(Its&)> act) {
    std::lock_guard lock(mu);  // until `session` is set
    session = *KeepOpen<ClientUp, ClientDown>(
        [this, act](const std::string& address, SessionEvents<ClientDown>* of) {
          std::lock_guard wait(mu);
          act(*session);
          return network.Opener()(address, of);
        },
        network.addresses(), &events, {.first_backoff = kQuick, .max_backoff = kQuick});
  }
  ~ActsWhileOpening() { session->Stop(); }

  HandNetwork network;
  Recorded events;
  std::mutex mu;
  std::unique_ptr<Its> session;
};

TEST(KeepOpen, WhatIsSentWhileTheStreamIsOpenedFollowsItsHello) {
  ActsWhileOpening it([](auto& session) { session.Send(ClientHeartbeat{100}); });
  EXPECT_EQ(it.network.NextSent(), ClientUp(ClientHeartbeat{1}));
  EXPECT_EQ(it.network.NextSent(), ClientUp(ClientHeartbeat{100}));
}

TEST(KeepOpen, AStreamCanBeBrokenOffWhileItIsOpened) {
  ActsWhileOpening it(
      [](auto& session) { session.BreakOff(absl::AbortedError("a message is missing")); });
  EXPECT_EQ(it.events.Wait(1), "lost: a message is missing");
}

TEST(KeepOpen, ARefusalIsFinal) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events);
  network.WaitForStream(1)->OnClosed(absl::FailedPreconditionError("declared dead"));
  EXPECT_EQ(events.Wait(1), "given up: declared dead");
  (*session)->Send(ClientHeartbeat{1});  // is lost
}

TEST(KeepOpen, AProxysErrorIsNotFinal) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  network.WaitForStream(1)->OnClosed(absl::PermissionDeniedError("403 Forbidden"));
  EXPECT_EQ(events.Wait(1), "lost: 403 Forbidden");
  network.WaitForStream(2)->OnClosed(absl::UnimplementedError("404"));
  network.WaitForStream(3)->OnClosed(absl::UnauthenticatedError("401"));
  SessionEvents<ClientDown>* fourth = network.WaitForStream(4);
  fourth->OnMessage(SessionError{absl::PermissionDeniedError("no such job for you")}, 0);
  fourth->OnClosed(absl::PermissionDeniedError("no such job for you"));
  EXPECT_EQ(events.Wait(5), "given up: no such job for you");
}

TEST(KeepOpen, MemoryThatRunsOutIsFinal) {
  Recorded events;
  Addresses head({"head:5050"});
  const OpenSession<ClientUp, ClientDown> open =
      [](const std::string&, SessionEvents<ClientDown>*) -> std::unique_ptr<Session<ClientUp>> {
    throw std::bad_alloc();
  };
  auto session = KeepOpen<ClientUp, ClientDown>(open, head, &events);
  EXPECT_EQ(events.Wait(1),
            "given up: the session at head:5050: the process has no memory left for it");
  (*session)->Send(ClientHeartbeat{1});  // is lost
}

// A session that sends nothing for lack of memory.
class Exhausted final : public Session<ClientUp> {
 public:
  explicit Exhausted(std::atomic<bool>& stopped) : stopped_(stopped) {}
  void Send(ClientUp) override { throw std::bad_alloc(); }
  void Stop() override { stopped_ = true; }

 private:
  std::atomic<bool>& stopped_;
};

TEST(KeepOpen, AStreamForWhichMemoryRanOutIsStoppedFirst) {
  std::atomic<bool> stopped = false;
  Recorded events;
  Addresses head({"head:5050"});
  const OpenSession<ClientUp, ClientDown> open = [&](const std::string&,
                                                     SessionEvents<ClientDown>*) {
    return std::make_unique<Exhausted>(stopped);
  };
  auto session = KeepOpen<ClientUp, ClientDown>(open, head, &events);
  EXPECT_THAT(events.Wait(1), HasSubstr("no memory left"));
  EXPECT_TRUE(stopped);
}

TEST(KeepOpen, AStreamThatEndsWithoutAReasonIsOpenedAgain) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  network.WaitForStream(1)->OnClosed(absl::OkStatus());
  EXPECT_EQ(events.Wait(1), "lost: the stream ended without a reason");
  network.WaitForStream(2);
}

// Otherwise an unreadable message would end the worker, and then the next one that gets the same
// work.
TEST(KeepOpen, OfAWorkerOnlyTheDispatchersRefusalIsFinal) {
  HandNetworkOf<WorkerUp, WorkerDown> network;
  RecordedOf<WorkerUp, WorkerDown, WorkerHeartbeat> events;
  auto session = KeepOpen<WorkerUp, WorkerDown>(network.Opener(), network.addresses(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  network.WaitForStream(1)->OnClosed(absl::OkStatus());
  network.WaitForStream(2)->OnClosed(absl::InvalidArgumentError("a run with a negative number"));
  EXPECT_EQ(events.Wait(2), "lost: a run with a negative number");
  network.WaitForStream(3)->OnClosed(absl::FailedPreconditionError("said by nobody"));
  SessionEvents<WorkerDown>* fourth = network.WaitForStream(4);
  fourth->OnMessage(WorkerRefused{absl::InvalidArgumentError("too many permits")}, 0);
  fourth->OnClosed(absl::InvalidArgumentError("too many permits"));
  EXPECT_EQ(events.Wait(4), "message");
  EXPECT_EQ(events.Wait(5), "given up: too many permits");
}

// A message that cannot be read is sent on each stream.
TEST(KeepOpen, PausesGrowWhereTheDispatcherEndsEachStreamThatItWelcomed) {
  HandNetwork network;
  Recorded events;
  constexpr absl::Duration kFirst = absl::Milliseconds(10);
  const absl::Time begun = absl::Now();
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events,
                                                {.first_backoff = kFirst});
  for (size_t n = 1; n <= 5; ++n) {
    SessionEvents<ClientDown>* stream = network.WaitForStream(n);
    stream->OnMessage(End{}, 0);
    stream->OnClosed(absl::AbortedError("cannot read a message"));
  }
  network.WaitForStream(6);
  EXPECT_GE(absl::Now() - begun, (1 + 2 + 4 + 8 + 16) * kFirst / 2);  // pauses are halved at most
}

TEST(KeepOpen, OutOfReachForTooLongIsGivenUpWithTheReason) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events,
                                                {.timeout = absl::Nanoseconds(1)});
  network.WaitForStream(1)->OnClosed(absl::UnavailableError("connection refused"));
  EXPECT_THAT(events.Wait(1), HasSubstr("no dispatcher answers at head:5050 within 1ns"));
}

TEST(KeepOpen, AnUnreadyDispatcherIsNotReportedAsUnreachable) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events,
                                                {.timeout = absl::Seconds(1)});
  network.WaitForStream(1)->OnClosed(absl::AbortedError("the job waits for its first worker"));
  EXPECT_THAT(events.Wait(2),
              HasSubstr("the dispatcher at head:5050 could not begin the session within 1s: "
                        "the job waits for its first worker"));
}

TEST(KeepOpen, StoppingNeedNotWaitForAPause) {
  HandNetwork network;
  Recorded events;
  auto session = KeepOpen<ClientUp, ClientDown>(
      network.Opener(), network.addresses(), &events,
      {.timeout = absl::Hours(2), .first_backoff = absl::Hours(1), .max_backoff = absl::Hours(1)});
  network.WaitForStream(1)->OnClosed(absl::UnavailableError("broke"));
  EXPECT_EQ(events.Wait(1), "lost: broke");
  (*session)->Stop();
}

// --- Several addresses ------------------------------------------------------------

constexpr ReconnectOptions kNoPause = {
    .timeout = absl::Hours(1), .first_backoff = absl::Hours(1), .max_backoff = absl::Hours(1)};

Welcome WelcomeInTerm(uint64_t term) {
  return {.life = {.journal = 7, .id = 100 + term, .term = Term(term)}};
}

// Says hello as a client that has heard of a term, 0: of none.
class FollowedBy : public Recorded {
 public:
  explicit FollowedBy(uint64_t heard = 0) : heard_(heard) {}
  ClientUp Hello() override {
    return ClientHello{.state = std::nullopt,
                       .heard = {heard_ == 0 ? Life() : WelcomeInTerm(heard_).life, 0}};
  }

 private:
  const uint64_t heard_;
};

TEST(KeepOpen, TheNextAddressIsTriedWithoutAPause) {
  HandNetwork network({"a:1", "b:1", "c:1"});
  FollowedBy events;
  auto session =
      KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events, kNoPause);
  network.WaitForStream(1)->OnClosed(absl::UnavailableError("refused"));
  network.WaitForStream(2)->OnClosed(absl::UnavailableError("no such host"));
  network.WaitForStream(3)->OnMessage(WelcomeInTerm(4), 0);
  EXPECT_EQ(network.AddressOf(1), "a:1");
  EXPECT_EQ(network.AddressOf(2), "b:1");
  EXPECT_EQ(network.AddressOf(3), "c:1");
  EXPECT_EQ(events.Wait(2), "lost: a:1: refused; b:1: no such host");
  EXPECT_EQ(events.Wait(3), "message");
  EXPECT_EQ(network.addresses().first(), 2u);
}

TEST(KeepOpen, AStreamThatBreaksIsOpenedAtTheSameAddressFirst) {
  HandNetwork network({"a:1", "b:1"});
  FollowedBy events;
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  network.WaitForStream(1)->OnClosed(absl::UnavailableError("refused"));
  SessionEvents<ClientDown>* second = network.WaitForStream(2);
  second->OnMessage(WelcomeInTerm(4), 0);
  second->OnClosed(absl::UnavailableError("broke"));
  network.WaitForStream(3)->OnClosed(absl::UnavailableError("refused"));
  network.WaitForStream(4);
  EXPECT_EQ(network.AddressOf(2), "b:1");
  EXPECT_EQ(network.AddressOf(3), "b:1");
  EXPECT_EQ(network.AddressOf(4), "a:1");
}

TEST(KeepOpen, AReplacedDispatcherIsNeitherFollowedNorBelieved) {
  HandNetwork network({"a:1", "b:1"});
  FollowedBy events(/*heard=*/5);
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  SessionEvents<ClientDown>* welcomed = network.WaitForStream(1);
  welcomed->OnMessage(WelcomeInTerm(4), 0);
  welcomed->OnMessage(End{}, 0);
  welcomed->OnClosed(absl::FailedPreconditionError("said by the old one"));
  EXPECT_THAT(events.Wait(1), HasSubstr("lost: a:1: the dispatcher is in term 4, but another one "
                                        "leads since term 5"));
  network.WaitForStream(2)->OnClosed(absl::UnavailableError("refused"));
  SessionEvents<ClientDown>* refused = network.WaitForStream(3);
  EXPECT_EQ(network.AddressOf(3), "a:1");
  refused->OnMessage(SessionError{absl::NotFoundError("no such job"), WelcomeInTerm(4).life}, 0);
  refused->OnClosed(absl::NotFoundError("no such job"));
  SessionEvents<ClientDown>* leader = network.WaitForStream(4);
  EXPECT_EQ(network.AddressOf(4), "b:1");
  leader->OnMessage(WelcomeInTerm(6), 0);
  EXPECT_EQ(events.Wait(4), "message") << "and nothing of the old dispatcher before";
}

TEST(KeepOpen, TheLeadersRefusalIsFinal) {
  HandNetwork network({"a:1", "b:1"});
  FollowedBy events(/*heard=*/5);
  auto session = KeepOpen<ClientUp, ClientDown>(network.Opener(), network.addresses(), &events);
  SessionEvents<ClientDown>* stream = network.WaitForStream(1);
  stream->OnMessage(SessionError{absl::CancelledError("cancelled"), WelcomeInTerm(6).life}, 0);
  stream->OnClosed(absl::CancelledError("cancelled"));
  EXPECT_EQ(events.Wait(2), "given up: cancelled");
}

// A worker that heard of a newer dispatcher must not end because of the old one.
TEST(KeepOpen, OfAWorkerTooAReplacedDispatchersRefusalIsDropped) {
  HandNetworkOf<WorkerUp, WorkerDown> network({"a:1", "b:1"});
  RecordedOf<WorkerUp, WorkerDown, WorkerHeartbeat> events;
  auto session = KeepOpen<WorkerUp, WorkerDown>(network.Opener(), network.addresses(), &events,
                                                {.first_backoff = kQuick, .max_backoff = kQuick});
  SessionEvents<WorkerDown>* first = network.WaitForStream(1);
  first->OnMessage(WorkerWelcome{WelcomeInTerm(5).life}, 0);
  first->OnClosed(absl::UnavailableError("broke"));
  network.WaitForStream(2)->OnClosed(absl::UnavailableError("refused"));
  SessionEvents<WorkerDown>* old = network.WaitForStream(3);
  EXPECT_EQ(network.AddressOf(3), "b:1");
  old->OnMessage(WorkerRefused{absl::FailedPreconditionError("older"), WelcomeInTerm(4).life}, 0);
  old->OnClosed(absl::FailedPreconditionError("older"));
  network.WaitForStream(4);
  EXPECT_EQ(events.Wait(1), "message");
  EXPECT_EQ(events.Wait(2), "lost: broke");
  EXPECT_THAT(events.Wait(4), HasSubstr("in term 4"));
}

}  // namespace
}  // namespace penstock::control
