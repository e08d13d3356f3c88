// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/dispatcher.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "control/dispatcher/server/job_key.h"
#include "control/dispatcher/transaction.h"
#include "control/journal/changes_proto.h"
#include "control/journal/etcd_journal.h"
#include "control/leadership/etcd_leadership.h"
#include "control/protocol/iteration_record.h"
#include "control/sync/clock.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"
#include "tools/simulator/world/etcd.h"
#include "tools/simulator/world/port.h"
#include "tools/simulator/world/snapshots.h"

namespace penstock::simulator {
namespace {

constexpr char kWorkDir[] = "/var/lib/penstock";
constexpr char kEtcdPrefix[] = "/penstock/";
constexpr absl::Duration kSweepInterval = absl::Milliseconds(100);  // as in server.cc
constexpr size_t kSnapshotStep = 300;  // bytes; a snapshot takes several transactions
// The dispatcher compares what it keeps at one event in this many: the comparison takes time linear
// in what the dispatcher has.
constexpr int64_t kFewestEventsForCheck = 16;
constexpr int64_t kEventsForCheckPerWorker = 4;
constexpr Span kOtherDiskTime = {absl::Microseconds(10), absl::Microseconds(200)};

bool KeepsWhatItComputes(const control::SharedState& shared) {
  return shared.state.placed == shared.state.ComputePlaced() &&
         shared.state.uses == shared.state.ComputeUses() &&
         std::ranges::all_of(shared.state.iterations, [&shared](const auto& entry) {
           const auto& [id, iteration] = entry;
           const protocol::IterationRecord& record = iteration.record;
           const auto found = shared.contexts.find(id);
           const auto* context = found == shared.contexts.end() ? nullptr : &found->second;
           return protocol::IsKept(record) && (context == nullptr || context->IsKept(record)) &&
                  shared.counts.AreTrue(id, record, context);
         });
}

// Adds the events of the dispatcher to the trace and to the coverage.
class EventsInTrace final : public EventLog {
 public:
  explicit EventsInTrace(World& world) : world_(world) {}
  void Write(Event event) override {
    world_.Note("event", ToString(event));
    world_.coverage.OnEvent(event.name);
  }

 private:
  World& world_;
};

}  // namespace

void Dispatcher::LosePower() {
  std::mt19937_64 random(world().scheduler.dice().Next());
  device_.LosePower(random);
}

void Dispatcher::SetFull(bool full) {
  device_.SetCapacity(full ? 0 : std::numeric_limits<uint64_t>::max());
}

void Dispatcher::OnKilled() {
  if (disk_ != nullptr) disk_->OnKilled();
  disk_ = nullptr;
}

control::CoreOptions Dispatcher::Options(const Life& life, const control::Leadership* leadership,
                                         End end) {
  const Scenario& scenario = world().scenario;
  control::CoreOptions options;
  options.client_timeout = scenario.client_timeout;
  options.worker_timeout = scenario.worker_timeout;
  options.heartbeat_interval = scenario.heartbeat;
  options.max_links = scenario.max_links;
  options.new_format = scenario.format;
  options.quotas = control::Quotas({.partitions = scenario.max_partitions}, scenario.namespaces);
  options.per_snapshot.records = static_cast<uint64_t>(scenario.snapshot_records);
  options.snapshot_bytes_at_once = kSnapshotStep;
  options.broken = scenario.broken;
  options.now = BootTime;
  options.random = RandomNumber;
  options.job_tokens = [](uint64_t) -> absl::StatusOr<control::JobTokens> {
    return control::TokensWith(std::string(control::kJobKeyBytes, 'k'));
  };
  options.port_refuses = [this](const std::string& address) {
    return world().network.Refuses(address);
  };
  options.check_kept = [dice = Dice(world().seed + life.process()->number()),
                        events = std::max(kFewestEventsForCheck,
                                          kEventsForCheckPerWorker * scenario.workers)]() mutable {
    return dice.OneIn(events);
  };
  if (leadership != nullptr) {
    options.leads = [leadership] { return BootTime() < leadership->HoldsUntil(); };
  }
  options.on_failure = std::move(end);
  options.events = std::make_shared<EventsInTrace>(world());
  return options;
}

void Dispatcher::CompareState(const Life& life, uint64_t number, control::Core& core) {
  if (!life.alive() || !world().shadow.IsWriter(number)) return;
  const control::Transaction txn(core);  // holds the core's lock, and changes nothing
  absl::StatusOr<std::vector<std::string>> own = control::EncodeState(txn.shared().state);
  const absl::Status status =
      own.ok() ? world().shadow.OnOwnState(txn.shared().sequence, *std::move(own)) : own.status();
  if (!status.ok()) world().Violates(status.message());
  if (!KeepsWhatItComputes(txn.shared())) {
    world().Violates("what the dispatcher keeps is not what it would compute from its state");
  }
}

std::unique_ptr<control::Leadership> Dispatcher::MakeLeadership(const Life& life) const {
  return control::MakeEtcdLeadership(MakeEtcdClient(world().network, life.process(),
                                                    control::LeaderPatience(control::kLeaderLease)),
                                     {.prefix = kEtcdPrefix, .name = name()},
                                     std::make_shared<EventsInTrace>(world()));
}

absl::StatusOr<std::unique_ptr<control::Journal>> Dispatcher::OpenJournal(
    const Life& life, const control::Leadership& leadership) const {
  return control::OpenEtcdJournal(
      MakeEtcdClient(world().network, life.process(), control::EtcdOptions().patience),
      {.prefix = kEtcdPrefix,
       .leader_key = control::LeaderKey(kEtcdPrefix),
       .term = static_cast<int64_t>(leadership.term()),
       .patience = 2 * control::kLeaderLease});
}

absl::Status Dispatcher::Main(Life& life) {
  absl::Status failure;  // the first reason counts
  const End end = [&](const absl::Status& why) {
    if (failure.ok()) failure = why;
    life.Tell(Order::kLeave);
  };
  SimDisk disk(world().scheduler, life.process(), device_,
               {kOtherDiskTime, world().scenario.disk_sync, kOtherDiskTime});
  disk_ = &disk;
  const absl::Cleanup closed = [&] {
    if (disk_ == &disk) disk_ = nullptr;
  };
  term_ = 0;
  std::unique_ptr<control::Leadership> leadership;
  bool campaigns = true;
  Thread campaign_end;
  const absl::Cleanup joined = [&] {
    if (!campaign_end.joinable()) return;
    life.Finish();
    campaign_end.join();
  };
  if (world().scenario.dispatchers > 1) {
    leadership = MakeLeadership(life);
    ASSIGN_OR_RETURN(campaign_end, StartThread("ends the campaign", [&] {
                       life.AwaitEnd();
                       if (campaigns) leadership->Resign();
                     }));
    const absl::Status elected = leadership->Campaign(end);
    campaigns = false;
    if (life.ends()) return failure;
    RETURN_IF_ERROR(elected);
    term_ = leadership->term();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<control::Journal> journal, leadership == nullptr
                                                                  ? OpenDiskJournal(kWorkDir, disk)
                                                                  : OpenJournal(life, *leadership));
  const uint64_t number = leadership == nullptr ? life.process()->number() : leadership->term();
  world().dispatchers[life.process()->number()] = number;
  journal = WatchJournal(
      std::move(journal), world().shadow, number, [&life] { return life.alive(); },
      [this](const absl::Status& status) { world().Violates(status.message()); });
  ASSIGN_OR_RETURN(const std::unique_ptr<control::Core> core,
                   control::Core::Open(Options(life, leadership.get(), end), std::move(journal)));
  CompareState(life, number, *core);
  ASSIGN_OR_RETURN(std::unique_ptr<Port> port, Port::Open(world().network, life.process(),
                                                          DispatcherAddress(name()), core.get()));
  ASSIGN_OR_RETURN(Thread sweeper, StartThread("sweeps", [&] {
                     while (!life.AwaitEnd(kSweepInterval)) core->Sweep();
                   }));
  ASSIGN_OR_RETURN(Thread prober, StartThread("probes", [&] {
                     while (!life.AwaitEnd(kSweepInterval)) core->ProbeBrokenWorkers();
                   }));
  life.AwaitEnd();
  sweeper.join();
  prober.join();
  // As in server.cc: no answer of a leader that has lost its place leaves it any more.
  if (leadership != nullptr && !failure.ok()) port.reset();
  core->BeginToLeave();
  port.reset();
  // A core whose journal has failed changes its state without records.
  if (failure.ok()) CompareState(life, number, *core);
  return failure;
}

}  // namespace penstock::simulator
