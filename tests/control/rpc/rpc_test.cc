// SPDX-License-Identifier: Apache-2.0
// Addresses, messages on the wire, and streams that come back: without a network.
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include "absl/synchronization/mutex.h"
#include "control/protocol/session_messages.h"
#include "control/rpc/messages_proto.h"
#include "control/rpc/prepare_grpc.h"
#include "control/rpc/session.h"
#include "control/rpc/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

// --- Target ------------------------------------------------------------------------

TEST(Target, TheProtocolMayBeLeftOut) {
  EXPECT_EQ(ParseTarget("host:5050")->address, "host:5050");
  EXPECT_EQ(ParseTarget("grpc://host:5050")->address, "host:5050");
  EXPECT_EQ(ParseTarget("host:5050")->protocol, "grpc");
  EXPECT_FALSE(ParseTarget("grpc://host:5050")->tls());
  EXPECT_TRUE(ParseTarget("grpcs://host:5050")->tls());
  EXPECT_EQ(ParseTarget("grpcs://host:5050")->address, "host:5050");
}

TEST(Target, WrongOnesSayWhatIsWrong) {
  EXPECT_THAT(ParseTarget("").status().message(), HasSubstr("must not be empty"));
  EXPECT_THAT(ParseTarget("grpc://a://b:1").status().message(), HasSubstr("multiple \"://\""));
  EXPECT_THAT(ParseTarget("grpc://host").status().message(), HasSubstr("lacks a port"));
  absl::Status unknown = ParseTarget("ucx://host:1").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(unknown.message(), HasSubstr("known: grpc"));
}

// --- The wire ----------------------------------------------------------------------

template <class Wire, class Message>
void ExpectRoundTrip(const Message& message) {
  Wire wire;
  ToWire(message, &wire);
  Wire parsed;
  ASSERT_TRUE(parsed.ParseFromString(wire.SerializeAsString()));
  absl::StatusOr<Message> back = FromWire(parsed);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == message) << wire.DebugString();
}

const PlacedPartition kOf{IterationId(1), PartitionId(2), Placement(3), 4};

IndexSet SomeIndices() {
  IndexSet set = IndexSet::Of(3, 7);
  set.Add(9);
  set.Add(1'000'000'000'000);
  return set;
}

TEST(Wire, EachClientMessageArrivesAsItWasSent) {
  const PartitionReport report{PartitionId(2), Placement(3), SomeIndices(), IndexSet::Of(7, 8)};
  const std::vector<PartitionIndices> indices = {{PartitionId(2), SomeIndices()}};
  for (const ClientUp& up : std::vector<ClientUp>{
           ClientHello{JobId(1), 2, ClientId(3), Incarnation(4), std::nullopt},
           ClientHello{JobId(1), 2, ClientId(3), Incarnation(4), std::vector<PartitionIndices>()},
           ClientHello{JobId(1),
                       2,
                       ClientId(3),
                       Incarnation(4),
                       indices,
                       Incarnation(5),
                       6,
                       7,
                       "t",
                       {{8, 9, Term(10)}, 11},
                       {12, 13}},
           ClientHeartbeat{5, {}},
           ClientHeartbeat{6,
                           {{WorkerId(7), "tcp", "tcp: as asked for", true, 1, 2, 3, 4,
                             absl::Seconds(5), absl::Seconds(6)},
                            {}},
                           true,
                           {7, absl::Seconds(8), absl::Seconds(9)},
                           {{10, {PartitionId(11), 12}}, {0, {PartitionId(1), 0}}}},
           FenceAnswer{report}, Report{{report, report}}, Commit{7, {{0, indices}, {1, {}}}},
           Leave{indices}, Ahead{{{PartitionId(1), 7}, {PartitionId(2), 0}}}}) {
    ExpectRoundTrip<wire::ClientUp>(up);
  }
  for (const ClientDown& down : std::vector<ClientDown>{
           Welcome{IterationId(1),
                   {7, 8, Term(2)},
                   std::string("t\0k", 3),
                   9,
                   {.mode = ShardingPolicy::kDynamic, .keep = Keep::kCommitted},
                   absl::Seconds(1),
                   absl::Seconds(60),
                   {{PartitionId(1), Placement(2)}},
                   17,
                   {SomeIndices()}},
           ClientHeartbeatAnswer{5},
           Membership{
               3,
               {{PartitionId(1), Placement(2), WorkerId(3)}, {PartitionId(2), Placement(1), {}, 9}},
               {{WorkerId(3), "host:1", {{"grpc", "host:2", "c"}}, {"tag"}, Incarnation(4)}}},
           Membership{4, {{PartitionId(1), Placement(2), {}}}, {}, true},
           Fence{PartitionId(1), Placement(2)}, ReportAtOnce{}, Committed{4}, End{2, 7}, Left{},
           SessionError{absl::DataLossError("what")}, ConsumersLost{},
           ConsumersLost{{{3, absl::Milliseconds(4), true, "why"}, {5, absl::Seconds(6)}}}}) {
    ExpectRoundTrip<wire::ClientDown>(down);
  }
}

TEST(Wire, EachWorkerMessageArrivesAsItWasSent) {
  for (const WorkerUp& up : std::vector<WorkerUp>{
           WorkerHello{WorkerId(1),
                       {1, 2},
                       "host:1",
                       {{"grpc", "host:2", "c"}},
                       {"tag"},
                       4,
                       {kOf},
                       Incarnation(6),
                       {{8, 9, Term(10)}, 11}},
           WorkerHeartbeat{
               5,
               {{"1000", {{{"Map#1", 1, 2, absl::Seconds(3), absl::Seconds(4), 5, 6}, {}}}}, {}},
               {{IterationId(7), 8, absl::Seconds(9), 10}, {}}},
           SplitRequest{kOf, 1, 2, 3, 4}, Bookmark{kOf, 7, "position", {{0, 1, 2}}}, Ended{kOf, 10},
           PartitionFailed{kOf, absl::NotFoundError("file")}, Drain{}, WorkerLeave{}}) {
    ExpectRoundTrip<wire::WorkerUp>(up);
  }
  for (const WorkerDown& down : std::vector<WorkerDown>{
           WorkerWelcome{{7, 8, Term(2)}, absl::Milliseconds(1500)}, WorkerHeartbeatAnswer{5},
           Assign{kOf,
                  JobId(1),
                  "token",
                  "1000",
                  5,
                  {.mode = ShardingPolicy::kFileOrData, .num_consumers = 3},
                  {ShardingPolicy::kData, 4, 3},
                  2,
                  99,
                  SomeIndices(),
                  4,
                  "position",
                  {{0, 1, 2, {3, 4}, true}},
                  {{ClientId(5), Incarnation(6), 2}},
                  6,
                  std::nullopt,
                  0,
                  protocol::Positions{8, 3, 17}},
           AddReader{kOf, {ClientId(5), Incarnation(6)}}, Unassign{kOf},
           Splits{kOf, {0, 1, 2, {3}, false}}, Drained{},
           WorkerRefused{absl::FailedPreconditionError("why")}}) {
    ExpectRoundTrip<wire::WorkerDown>(down);
  }
}

TEST(Wire, WrongNumbersFromOutsideAreRefused) {
  wire::ClientUp empty;
  EXPECT_EQ(FromWire(empty).status().code(), absl::StatusCode::kInvalidArgument);
  wire::IndexSet half;
  half.add_gaps_and_lengths(1);
  EXPECT_FALSE(FromWire(half).ok());
  wire::IndexSet huge;
  huge.add_gaps_and_lengths(UINT64_MAX);
  huge.add_gaps_and_lengths(2);
  EXPECT_FALSE(FromWire(huge).ok());
  // Products with numbers of consumers or partitions are numbers yet.
  wire::IndexSet far;
  far.add_gaps_and_lengths(0);
  far.add_gaps_and_lengths(uint64_t{1} << 62);
  EXPECT_EQ(FromWire(far).status().code(), absl::StatusCode::kInvalidArgument);
  wire::IndexSet nothing;
  nothing.add_gaps_and_lengths(1);
  nothing.add_gaps_and_lengths(0);
  EXPECT_FALSE(FromWire(nothing).ok());
  wire::ClientUp nobody;
  nobody.mutable_hello()->set_job(1);
  EXPECT_FALSE(FromWire(nobody).ok());
  wire::Positions positions;
  positions.set_partitions(8);
  EXPECT_FALSE(FromWire(positions).ok());  // of no consumers
  positions.set_consumers(3);
  EXPECT_TRUE(FromWire(positions).ok());
  positions.set_first(-1);
  EXPECT_FALSE(FromWire(positions).ok());
  wire::JobTerms terms;
  terms.set_mode(77);
  EXPECT_EQ(FromWire(terms).status().code(), absl::StatusCode::kInternal);
  terms.set_mode(0);
  terms.set_rests(3);
  EXPECT_EQ(FromWire(terms).status().code(), absl::StatusCode::kInvalidArgument);
  terms.set_rests(0);
  terms.set_num_consumers(1'000'000'000'000);
  EXPECT_THAT(FromWire(terms).status().message(), ::testing::HasSubstr("65536 are the most"));
  terms.set_num_consumers(1 << 16);
  EXPECT_TRUE(FromWire(terms).ok());
  wire::WorkerUp end;
  end.mutable_ended()->set_elements(int64_t{1} << 62);
  EXPECT_EQ(FromWire(end).status().code(), absl::StatusCode::kInvalidArgument);
}

// --- Streams that come back ----------------------------------------------------------

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

// --- gRPC's process -------------------------------------------------------------------

int64_t ResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::atoll(line.c_str() + sizeof("RssAnon:"));
  return 0;
}

TEST(PrepareGrpc, NothingStaysOfMutexesThatAreFreedWithoutTheirDestructors) {
  PrepareGrpc();
  constexpr size_t kMutexes = 100'000;
  const auto places =
      std::make_unique<std::array<std::byte, sizeof(absl::Mutex)>[]>(kMutexes);  // touches them
  const int64_t before = ResidentKib();
  for (size_t i = 0; i < kMutexes; ++i) {
    auto* mutex = new (&places[i]) absl::Mutex;
    mutex->Lock();
    mutex->Unlock();
  }
  EXPECT_LT(ResidentKib() - before, 4096);
}

}  // namespace
}  // namespace penstock::control
