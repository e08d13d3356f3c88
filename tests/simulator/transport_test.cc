// SPDX-License-Identifier: Apache-2.0
// The transport "sim" between two simulated processes. The events are recorded by the ends of the
// conformance suite (tests/dataplane/transfer/ends.h). Nothing here waits for them: a step runs the
// simulation until all has arrived, and the Await…() of these ends then return at once.
#include "tools/simulator/world/transport.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/dataplane/transfer/blob_spec.h"
#include "tests/dataplane/transfer/ends.h"
#include "tools/simulator/engine/trace.h"

namespace penstock::simulator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using transfer::BlobSpec;
using transfer::ClientEnd;
using transfer::WorkerEnd;

Identity IdentityOf(Index index) {
  return {.job = JobId(5),
          .iteration = IterationId(6),
          .partition = PartitionId(1),
          .placement = Placement(1),
          .index = index};
}

std::vector<Index> Range(Index begin, Index end) {
  std::vector<Index> indices(end - begin);
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

Element Blob(Index index, int64_t bytes) {
  const std::vector<uint8_t> values(bytes, static_cast<uint8_t>(index));
  const int64_t dims[] = {bytes};
  Element element =
      *MakeElement(DefaultPool(), {Tensor(kUInt8, dims, values.data())}, Spec(BlobSpec()));
  element.set_identity(IdentityOf(index));
  return element;
}

bool IsBlob(const Element& element, Index index, int64_t bytes) {
  const absl::Span<const uint8_t> values = element.tensor(0).data<uint8_t>();
  return element.identity() == IdentityOf(index) &&
         std::vector<uint8_t>(values.begin(), values.end()) ==
             std::vector<uint8_t>(bytes, static_cast<uint8_t>(index));
}

// A worker on one host and a client on another.
class TwoHosts {
 public:
  explicit TwoHosts(uint64_t seed = 1) : scheduler_({.seed = seed}, trace_) {
    In(worker_process, [this] { worker = std::make_unique<transfer::Worker>(transport()); });
    EXPECT_TRUE(worker->listening());
  }
  ~TwoHosts() {
    In(client_process, [this] { link.reset(); });
    In(worker_process, [this] { worker.reset(); });
    Run(absl::Minutes(2));  // until no timer is left
  }

  static transfer::Transport& transport() { return **transfer::FindTransport("sim"); }
  uint64_t trace() const { return trace_.hash(); }

  void Run(absl::Duration time = absl::Seconds(3)) {
    const absl::Status ran = scheduler_.Run(scheduler_.now() + time);
    EXPECT_TRUE(ran.ok()) << ran;
  }
  // Runs `step` on a fiber of `process`, and then the simulation for `time`.
  template <class Step>
  void In(const std::shared_ptr<Process>& process, Step step,
          absl::Duration time = absl::Seconds(3)) {
    bool done = false;
    scheduler_.StartIn(process, "step", [&] {
      step();
      done = true;
    });
    Run(time);
    EXPECT_TRUE(done);
  }

  transfer::DialOptions Options() const {
    transfer::DialOptions options;
    options.hello = {.token = "sesame",
                     .client = ClientId(3),
                     .incarnation = Incarnation(4),
                     .iteration = IterationId(6)};
    options.spec = BlobSpec();
    options.pool = pool.get();
    return options;
  }
  // Dials the worker, and grants `credits`.
  void Dial(const transfer::DialOptions& options, int64_t credits = 0) {
    const std::string address = worker->address();
    In(client_process, [&] {
      auto dialled = transport().Dial(address, options, client);
      ASSERT_TRUE(dialled.ok()) << dialled.status();
      link = *std::move(dialled);
      link->Grant({credits});
    });
  }
  // Returns the worker's end of a new link with this many credits.
  std::shared_ptr<WorkerEnd> Open(int64_t credits) {
    Dial(Options(), credits);
    EXPECT_TRUE(client->AwaitOpen());
    std::shared_ptr<WorkerEnd> end = worker->Link(0);
    EXPECT_TRUE(end->AwaitGranted(credits));
    return end;
  }
  // Sends elements from `begin` on as long as there are credits.
  void Send(WorkerEnd& end, Index begin, absl::Duration time = absl::Seconds(3)) {
    In(
        worker_process,
        [&] {
          while (end.link().Send(Blob(begin, 100)).ok()) ++begin;
          end.link().Flush();
        },
        time);
  }
  void Kill(Process& process) {
    process.Kill();
    network.OnKilled(process);
  }
  void Continue(Process& process) {
    process.Continue();
    scheduler_.Continued(process);
    Run();
  }

 private:
  Trace trace_;
  Scheduler scheduler_;

 public:
  Network network{scheduler_};
  SimTransport sim{scheduler_, network};
  const std::shared_ptr<Process> worker_process = scheduler_.NewProcess("w", "worker");
  const std::shared_ptr<Process> client_process = scheduler_.NewProcess("t", "trainer");
  const std::shared_ptr<Pool> pool = Pool::Create();
  std::unique_ptr<transfer::Worker> worker;
  std::shared_ptr<ClientEnd> client = std::make_shared<ClientEnd>();
  std::unique_ptr<transfer::ReceiveLink> link;
};

// --- Opening -----------------------------------------------------------------------

TEST(SimTransport, AutoPrefersItToAllOthers) {
  const std::vector<transfer::TransportOffer> offers = {{"local", "local:1"},
                                                        {"sim", "w:20000", "v1"}};
  {
    TwoHosts world;
    const auto selected = transfer::Negotiate({}, {offers[1], offers[0]}, "w");
    ASSERT_TRUE(selected.ok()) << selected.status();
    EXPECT_EQ(selected->offer.protocol, "sim");
    EXPECT_THAT(world.worker->address(), HasSubstr("w:"));
  }
  EXPECT_EQ(TwoHosts::transport().Check("w:20000", "v1").code(), absl::StatusCode::kNotFound);
}

TEST(SimTransport, TellsTheWorkerTheHello) {
  TwoHosts world;
  transfer::DialOptions options = world.Options();
  options.hello.holdings = {{PartitionId(2), Placement(3), IndexSet::Of(0, 7)}};
  world.Dial(options);
  const std::shared_ptr<WorkerEnd> end = world.worker->Link(0);
  const transfer::Hello& hello = end->link().hello();
  EXPECT_EQ(hello.client, ClientId(3));
  ASSERT_EQ(hello.holdings.size(), 1u);
  EXPECT_EQ(hello.holdings[0].indices, IndexSet::Of(0, 7));
}

TEST(SimTransport, RefusesAWrongToken) {
  TwoHosts world;
  transfer::DialOptions options = world.Options();
  options.hello.token = "open";
  world.Dial(options, 5);
  const absl::Status reason = world.client->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kPermissionDenied) << reason;
  EXPECT_THAT(std::string(reason.message()), HasSubstr("wrong token for this job"));
  EXPECT_THAT(world.worker->links(), IsEmpty());
}

TEST(SimTransport, SaysThatNobodyListens) {
  TwoHosts world;
  const std::string address = world.worker->address();
  world.In(world.worker_process, [&] { world.worker->Stop(); });
  world.In(world.client_process, [&] {
    world.link = *TwoHosts::transport().Dial(address, world.Options(), world.client);
  });
  const absl::Status reason = world.client->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kUnavailable) << reason;
  EXPECT_THAT(std::string(reason.message()), HasSubstr(address));
}

TEST(SimTransport, ADialThatIsNotAnsweredTimesOut) {
  TwoHosts world;
  world.network.Cut("w", "t", absl::Minutes(1));
  transfer::DialOptions options = world.Options();
  options.timeout = absl::Seconds(2);
  world.Dial(options);
  EXPECT_EQ(world.client->AwaitClosed().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(SimTransport, ALinkDestroyedBeforeItOpensIsQuiet) {
  TwoHosts world;
  world.In(world.client_process, [&] {
    world.link =
        *TwoHosts::transport().Dial(world.worker->address(), world.Options(), world.client);
    world.link.reset();
    world.client->DeclareOver();
  });
  EXPECT_EQ(world.client->events_behind_end(), 0);
}

// --- Elements and credits ----------------------------------------------------------

TEST(SimTransport, ElementsArriveInOrderAgainstCredits) {
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(0);
  world.Send(*end, 0);
  EXPECT_THAT(world.client->indices(), IsEmpty());
  world.In(world.client_process, [&] { world.link->Grant({1000}); });
  world.Send(*end, 0);
  EXPECT_EQ(world.client->indices(), Range(0, 1000));
  EXPECT_EQ(end->received(), 1000);
  EXPECT_EQ(end->link().credits(), 0);
  EXPECT_GT(world.pool->counters().bytes_lent, 0);
  Index next = 0;
  for (const Element& element : world.client->TakeElements()) {
    EXPECT_TRUE(IsBlob(element, next++, 100));
  }
  EXPECT_EQ(world.pool->counters().bytes_lent, 0);
}

TEST(SimTransport, ElementsOfEverySizeArriveWhole) {
  const std::vector<int64_t> sizes = {0, 1, 63, 64, 65, 16'000, 16'384, 70'000, 3, 1 << 20};
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(std::ssize(sizes));
  world.In(world.worker_process, [&] {
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_TRUE(end->link().Send(Blob(i, sizes[i])).ok());
    }
  });  // without Flush(): what waits is sent after a while
  ASSERT_EQ(world.client->indices(), Range(0, std::ssize(sizes)));
  Index index = 0;
  for (const Element& element : world.client->TakeElements()) {
    EXPECT_TRUE(IsBlob(element, index, sizes[index])) << sizes[index] << " bytes";
    ++index;
  }
}

TEST(SimTransport, AnErrorStandsInTheElementsPlace) {
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(3);
  world.In(world.worker_process, [&] {
    EXPECT_TRUE(end->link().Send(Blob(0, 10)).ok());
    EXPECT_TRUE(end->link().Send({IdentityOf(1), absl::DataLossError("at byte 77")}).ok());
    EXPECT_TRUE(end->link().Send(Blob(2, 10)).ok());
  });
  EXPECT_EQ(world.client->indices(), Range(0, 3));
  EXPECT_THAT(world.client->errors(), ElementsAre(absl::DataLossError("at byte 77")));
  EXPECT_EQ(end->received(), 3);
}

TEST(SimTransport, UnusedCreditsCanBeRecalled) {
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(5);
  world.In(world.worker_process, [&] {
    EXPECT_TRUE(end->link().Send(Blob(0, 10)).ok());
    EXPECT_TRUE(end->link().Send(Blob(1, 10)).ok());
  });
  world.In(world.client_process, [&] {
    world.link->Recall();
    world.link->Grant({1});  // after the recall: stays
  });
  EXPECT_THAT(world.client->recalled(), ElementsAre(3));
  EXPECT_THAT(world.client->indices(), ElementsAre(0, 1));
  EXPECT_EQ(end->link().credits(), 1);
}

TEST(SimTransport, AnEventMaySendAndGrant) {
  constexpr Index kCount = 500;
  Index sent = 0;
  TwoHosts world;
  world.worker->on_accept = [&](WorkerEnd& end) {
    end.on_credits = [&](transfer::SendLink& link, transfer::Credits granted) {
      for (int64_t i = 0; i < granted.count && sent < kCount; ++i) {
        EXPECT_TRUE(link.Send(Blob(sent++, 10)).ok());
      }
      link.Flush();
    };
  };
  world.client->on_element = [&](const Element&) { world.link->Grant({1}); };
  world.Dial(world.Options(), 2);
  world.Run(absl::Minutes(1));
  EXPECT_EQ(world.client->indices(), Range(0, kCount));
}

TEST(SimTransport, AnElementOfAnotherSpecEndsTheLink) {
  TwoHosts world;
  transfer::DialOptions options = world.Options();
  options.spec = Scalar(kFloat32);
  world.Dial(options, 1);
  const std::shared_ptr<WorkerEnd> end = world.worker->Link(0);
  world.Send(*end, 0);
  EXPECT_EQ(world.client->AwaitClosed().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(end->AwaitClosed().ok());
  EXPECT_THAT(end->unconfirmed(), ElementsAre(0));
}

// --- The end -----------------------------------------------------------------------

TEST(SimTransport, TheWorkersReasonReachesTheClientAfterSentElements) {
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(100);
  world.In(world.worker_process, [&] {
    for (Index i = 0; i < 100; ++i) EXPECT_TRUE(end->link().Send(Blob(i, 10)).ok());
    end->link().Close(absl::AbortedError("the partition was moved"));
    EXPECT_EQ(end->link().Send(Blob(100, 10)).code(), absl::StatusCode::kUnavailable);
  });
  EXPECT_EQ(world.client->AwaitClosed().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(world.client->indices(), Range(0, 100));
  EXPECT_EQ(end->AwaitClosed(), absl::AbortedError("the partition was moved"));
  EXPECT_EQ(end->received(), 100);
  EXPECT_THAT(end->unconfirmed(), IsEmpty());
}

TEST(SimTransport, AClientThatClosesIsNoError) {
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(10);
  world.Send(*end, 0, absl::Microseconds(10));  // on their way
  world.In(world.client_process, [&] {
    world.link.reset();
    world.client->DeclareOver();
  });
  EXPECT_TRUE(end->AwaitClosed().ok());
  EXPECT_EQ(end->unconfirmed(), Range(0, 10));
  EXPECT_EQ(world.client->events_behind_end(), 0);
}

TEST(SimTransport, TheLinkMayBeDestroyedInsideItsOwnEvent) {
  TwoHosts world;
  world.client->on_element = [&](const Element& element) {
    if (element.identity().index == 2) world.link.reset();
  };
  const std::shared_ptr<WorkerEnd> end = world.Open(10);
  world.In(world.worker_process, [&] {
    for (Index i = 0; i < 10; ++i) {
      EXPECT_TRUE(end->link().Send(Blob(i, 10)).ok());
      end->link().Flush();  // elements of one event are received together
    }
  });
  EXPECT_TRUE(end->AwaitClosed().ok());
  EXPECT_THAT(world.client->indices(), ElementsAre(0, 1, 2));
  EXPECT_FALSE(world.client->closed());
  EXPECT_EQ(end->unconfirmed(), Range(end->received(), 10));
}

TEST(SimTransport, AWorkerThatStopsClosesItsLinks) {
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(1);
  world.In(world.worker_process, [&] {
    world.worker->Stop();
    EXPECT_EQ(end->AwaitClosed().code(), absl::StatusCode::kUnavailable);  // already
  });
  EXPECT_EQ(world.client->AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST(SimTransport, AWorkerStopsWithoutAClientThatIsPaused) {
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(1);
  world.client_process->Pause();
  world.In(world.worker_process, [&] { world.worker->Stop(); });
  EXPECT_EQ(end->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  world.Continue(*world.client_process);
  EXPECT_EQ(world.client->AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST(SimTransport, ABreakReturnsWhatIsUnconfirmedInOrder) {
  int lost_some = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    TwoHosts world(seed);
    const std::shared_ptr<WorkerEnd> end = world.Open(1000);
    world.Send(*end, 0, absl::Milliseconds(1));
    world.network.Break("w", "t");
    world.Run(absl::Seconds(30));
    EXPECT_EQ(world.client->AwaitClosed().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(end->AwaitClosed().code(), absl::StatusCode::kUnavailable);
    const auto has = std::ssize(world.client->indices());
    EXPECT_EQ(world.client->indices(), Range(0, has));
    EXPECT_LE(end->received(), has);
    EXPECT_EQ(end->unconfirmed(), Range(end->received(), 1000));
    lost_some += has < 1000;
  }
  EXPECT_GT(lost_some, 0);
}

TEST(SimTransport, AClientSeesThatItsWorkerWasKilled) {
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(10);
  world.Kill(*world.worker_process);
  world.Send(*end, 0);  // as a ghost
  EXPECT_EQ(world.client->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(world.client->indices(), IsEmpty());
  world.In(world.worker_process, [&] { world.worker->Stop(); });
  EXPECT_EQ(end->unconfirmed(), Range(0, 10));
}

TEST(SimTransport, AWorkerSeesThatItsClientWasKilled) {
  TwoHosts world;
  const std::shared_ptr<WorkerEnd> end = world.Open(10);
  world.Send(*end, 0, absl::Microseconds(10));
  world.Kill(*world.client_process);
  world.client->DeclareOver();
  world.Run();
  EXPECT_EQ(end->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(end->unconfirmed(), Range(0, 10));
  world.In(world.client_process, [&] { world.link.reset(); });
  EXPECT_EQ(world.client->events_behind_end(), 0);
}

TEST(SimTransport, ASeedHasOneTrace) {
  const auto trace_of = [](uint64_t seed) {
    TwoHosts world(seed);
    const std::shared_ptr<WorkerEnd> end = world.Open(100);
    world.Send(*end, 0);
    EXPECT_EQ(world.client->indices(), Range(0, 100));
    return world.trace();
  };
  EXPECT_EQ(trace_of(7), trace_of(7));
  EXPECT_NE(trace_of(7), trace_of(8));
}

}  // namespace
}  // namespace penstock::simulator
