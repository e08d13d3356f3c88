// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/worker.h"

#include <memory>
#include <utility>

#include "control/stub/dispatcher_stub.h"
#include "control/stub/this_process.h"
#include "control/sync/clock.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"
#include "dataplane/dataset/graph/position_versions.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/worker/agent.h"
#include "dataplane/worker/tasks.h"
#include "dataplane/worker/worker_context.h"
#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

constexpr absl::Duration kDrainBound = absl::Minutes(1);
constexpr absl::Duration kTasksStopBound = absl::Seconds(5);  // as in worker_server.cc
constexpr int64_t kBudgetBytes = int64_t{64} << 20;  // of a worker; the same on every machine

worker::WorkerContextOptions ContextOptions(control::DispatcherStub& stub, World& world) {
  return {.permits = world.scenario.permits,
          .budget_bytes = kBudgetBytes,
          .ram_budget_bytes = kBudgetBytes,
          .buffer_budget_bytes = kBudgetBytes,
          .window_bytes = world.scenario.window_bytes,
          .files = &world.storage,
          .fetch =
              [&stub](std::string_view id, uint64_t edition) {
                return stub.GetDataset(id, edition, control::CallOptions());
              },
          .now = BootTime};
}

worker::AgentOptions AgentOptionsFor(const transfer::Listener& listener, int permits,
                                     absl::Duration heartbeat) {
  control::WorkerHello hello;
  hello.worker = WorkerId(RandomId());
  hello.address = listener.address();
  hello.offers = {{"sim", listener.address(), listener.compatibility()}};
  hello.permits = permits;
  hello.process = control::ThisProcess();
  hello.release = control::ThisRelease();
  hello.reads = ReadablePositions();
  return {.hello = std::move(hello),
          .heartbeat_interval = heartbeat,
          .dispatcher_timeout = absl::Hours(1)};
}

}  // namespace

absl::Status Worker::Main(Life& life) {
  const Scenario& scenario = world().scenario;
  ASSIGN_OR_RETURN(const std::unique_ptr<control::DispatcherStub> stub,
                   control::DispatcherStub::Make(world().service));
  auto context = std::make_shared<worker::WorkerContext>(ContextOptions(*stub, world()));
  auto tasks = std::make_shared<worker::Tasks>(context);
  ASSIGN_OR_RETURN(transfer::Transport * transport, transfer::FindTransport("sim"));
  ASSIGN_OR_RETURN(
      std::unique_ptr<transfer::Listener> listener,
      transport->Listen({.port = kWorkerPort}, [tasks](const transfer::Hello& hello,
                                                       std::shared_ptr<transfer::SendLink> link) {
        return tasks->Accept(hello, std::move(link));
      }));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<worker::Agent> agent,
      worker::Agent::Start(stub.get(), context, tasks.get(),
                           AgentOptionsFor(*listener, scenario.permits, scenario.heartbeat)));
  ASSIGN_OR_RETURN(Thread watcher, StartThread("watches the agent", [&] {
                     agent->AwaitOver();
                     life.Tell(Order::kLeave);
                   }));
  life.AwaitEnd();
  if (life.alive() && life.order() == Order::kDrain) {
    agent->Drain(BootTime() + kDrainBound).IgnoreError();  // else the dispatcher moves them later
  }
  absl::Status status = agent->status();
  agent->Stop();
  watcher.join();
  stub->Stop();
  const absl::Status stopped = tasks->Stop(BootTime() + kTasksStopBound);
  if (!stopped.ok()) world().Violates(absl::StrCat(name(), " does not end: ", stopped.ToString()));
  listener.reset();
  return status;
}

}  // namespace penstock::simulator
