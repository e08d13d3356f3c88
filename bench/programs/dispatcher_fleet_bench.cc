// SPDX-License-Identifier: Apache-2.0
// Measures what each kind of event costs a dispatcher's core, by the size of the fleet:
//
//   dispatcher_fleet_bench                                    # a minute or more of one core
//   dispatcher_fleet_bench --sizes 100x10,300x30 --limit 10   # workers x clients
//
// One thread, no network, a journal in memory. All clients read one job with four partitions a
// worker. A figure is the CPU time from an event until its last consequence: the workers and
// clients (bench/fleet) answer each message, and the core handles the answers. Messages to peers
// are encoded, as by a server, and their bytes are counted. The small time that the light peers
// need is included; the decoding of messages from peers is not. `penstock bench fleet` measures the
// same over gRPC.
#include <time.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/fleet/growth.h"
#include "bench/fleet/light_client.h"
#include "bench/fleet/light_worker.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/server/job_key.h"
#include "control/proto/messages_proto.h"

namespace penstock::bench {
namespace {

// For the names of the messages.
using namespace control;  // NOLINT

constexpr int kPermits = 4;  // and therefore partitions of each worker

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "dispatcher_fleet_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

// CPU seconds of this thread, the only one.
double Cpu() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// --- The core's journal and streams ------------------------------------------------------------

// Keeps its records, for the next core. Each record is durable at once.
class KeptJournal final : public Journal {
 public:
  explicit KeptJournal(Recovered& kept) : kept_(kept) {}
  Recovered TakeRecovered() override { return kept_; }
  absl::Status Start(Durable durable) override {
    durable_ = std::move(durable);
    return absl::OkStatus();
  }
  void Append(uint64_t sequence, std::string record) override {
    kept_.records.push_back({sequence, std::move(record)});
    if (durable_) durable_(sequence);
  }
  void Snapshot(uint64_t sequence, SnapshotChanges changes) override {
    Merge(std::move(changes), snapshot_);
    kept_.snapshot.clear();
    for (const auto& [key, piece] : snapshot_.pieces)
      if (piece.has_value()) kept_.snapshot.push_back(*piece);
    kept_.snapshot_sequence = sequence;
    std::erase_if(kept_.records, [&](const auto& record) { return record.sequence <= sequence; });
  }
  absl::Status WaitDurable(uint64_t /*sequence*/) override { return absl::OkStatus(); }
  absl::Status status() const override { return absl::OkStatus(); }
  std::string name() const override { return "kept"; }

 private:
  Recovered& kept_;
  SnapshotChanges snapshot_;  // all of this core's, merged
  Durable durable_;
};

struct Sent {
  int64_t messages = 0;
  int64_t bytes = 0;
};

// A light worker or client and its stream. The core calls Send() while it handles an event, so the
// answers wait in `answers` until that event is handled.
template <class Light, class Up, class Down, class WireDown, class Peer>
class Member final : public StreamWriter<Down> {
 public:
  using Answers = std::deque<std::pair<Member*, Up>>;

  Member(Light its, Sent& sent, Answers& answers)
      : light(std::move(its)), sent_(sent), answers_(answers) {}
  void Send(Down message, uint64_t sequence) override {
    WireDown wire;
    ToWire(message, &wire);
    wire.set_sequence(sequence);
    ++sent_.messages;
    sent_.bytes += static_cast<int64_t>(wire.SerializeAsString().size());
    std::vector<Up> up;
    light.OnMessage(message, sequence, up);
    for (Up& answer : up) answers_.push_back({this, std::move(answer)});
  }
  void Finish(const absl::Status& /*status*/) override {}

  Light light;
  std::shared_ptr<Peer> peer;  // owns this object, until it is reset

 private:
  Sent& sent_;
  Answers& answers_;
};

using Worker = Member<LightWorker, WorkerUp, WorkerDown, wire::WorkerDown, WorkerPeer>;
using Client = Member<LightClient, ClientUp, ClientDown, wire::ClientDown, ClientPeer>;

// --- The fleet ---------------------------------------------------------------------------------

struct Size {
  int workers = 0;
  int clients = 0;
};

// The total cost of the events of one kind.
struct Cost {
  int events = 0;
  double us = 0;  // of CPU
  Sent sent;      // to all peers
};

// A dispatcher's core with its workers and clients. Once the CPU time of the limit is used, it is
// over: no further message is handled, and no cost is counted.
class Fleet {
 public:
  explicit Fleet(double limit_s) : until_(Cpu() + limit_s) { OpenCore(); }
  ~Fleet() {
    core_.reset();
    for (const auto& [number, worker] : workers_) worker->peer.reset();
    for (const auto& client : clients_) client->peer.reset();
  }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  bool over() const { return Cpu() > until_; }
  Worker& worker(int i) const {  // spread over the numbers, so that neighbours are not alike
    const auto found = workers_.lower_bound(static_cast<uint64_t>(i) * 7 % last_worker_ + 1);
    return found == workers_.end() ? *workers_.begin()->second : *found->second;
  }
  int clients() const { return static_cast<int>(clients_.size()); }
  Client& client(int i) const { return *clients_[static_cast<size_t>(i) % clients_.size()]; }
  Client& spread_client(int i) const { return client((i + 1) * 619); }  // not the oldest first

  // Adds to `cost` what `event` costs until its last consequence.
  void Count(Cost& cost, absl::FunctionRef<void()> event) {
    if (over()) return;
    const Sent before = sent_;
    const double began = Cpu();
    event();
    Settle();
    if (over()) return;
    cost.us += (Cpu() - began) * 1e6;
    cost.sent.messages += sent_.messages - before.messages;
    cost.sent.bytes += sent_.bytes - before.bytes;
    ++cost.events;
  }
  // Returns whether the event is to be measured once more: it has been measured less than `count`
  // times, and for less than `seconds`.
  bool Repeats(const Cost& cost, int count, double seconds) const {
    return !over() && cost.events < count && cost.us < seconds * 1e6;
  }

  // Workers join an idle dispatcher, and then clients.
  void Build(const Size& size) {
    for (int i = 0; i < size.workers; ++i) Join();
    MakeJob();
    for (int i = 0; i < size.clients && !over(); ++i) JoinClient();
    Progress();
    if (!over()) Check(size);
  }
  // A new dispatcher on the same journal, to which no peer has come back yet.
  void Restart() {
    core_.reset();
    OpenCore();
  }
  void ReconnectAll() {
    size_t i = 0;
    for (const auto& [number, worker] : workers_) {
      if (over()) return;
      Reconnect(*worker);
      const size_t due = ++i * clients_.size() / workers_.size();
      for (size_t c = (i - 1) * clients_.size() / workers_.size(); c < due; ++c)
        Reconnect(*clients_[c]);
    }
  }
  void Reconnect(Worker& worker) {
    if (over()) return;
    worker.peer = core_->OpenWorker(workers_.at(worker.light.number()));
    core_->OnMessage(worker.peer, worker.light.Hello());
    Settle();
  }
  void Reconnect(Client& client) {
    if (over()) return;
    client.peer = core_->OpenClient(clients_.at(client.light.number() - 1));
    core_->OnMessage(client.peer, client.light.Hello());
    Settle();
  }
  void Join() {
    const uint64_t number = ++last_worker_;
    workers_[number] = std::make_shared<Worker>(
        LightWorker(number, kPermits, absl::StrCat("worker", number, ".fleet:5051")), sent_,
        worker_answers_);
    Reconnect(*workers_[number]);
  }
  void JoinClient() {
    const uint64_t number = clients_.size() + 1;
    clients_.push_back(std::make_shared<Client>(LightClient(number, job_), sent_, client_answers_));
    Reconnect(*clients_.back());
  }
  // Its stream breaks, and its port refuses connections.
  void Lose(Worker& worker) {
    core_->OnClosed(worker.peer);
    core_->ProbeBrokenWorkers();
  }
  void Forget(Worker& worker) {
    worker.peer.reset();
    workers_.erase(worker.light.number());
  }
  // Sends a bookmark of each partition that was placed again. Without progress, a partition whose
  // workers died one after another would be treated as the cause.
  void Progress() {
    for (const auto& [number, worker] : workers_)
      for (Bookmark& bookmark : worker->light.FirstBookmarks()) Tell(*worker, std::move(bookmark));
    Settle();
  }
  template <class AnyMember, class Message>
  void Tell(const AnyMember& member, Message message) {
    if (!over()) core_->OnMessage(member.peer, std::move(message));
  }
  void GetStatus() {
    core_->GetStatus([this](const absl::StatusOr<DispatcherStatus>& status) {
      if (!status.ok()) Fail(status.status());
      wire::DispatcherStatus wire;
      ToWire(*status, &wire);
      ++sent_.messages;
      sent_.bytes += static_cast<int64_t>(wire.SerializeAsString().size());
    });
  }

 private:
  void OpenCore() {
    CoreOptions options;
    options.worker_timeout = options.client_timeout = absl::Hours(1);  // longer than the run
    options.now = [] { return absl::Now(); };
    options.random = [this] { return ++random_; };
    options.job_tokens = [](uint64_t) { return TokensWith(std::string(kJobKeyBytes, 'k')); };
    options.port_refuses = [](const std::string&) { return true; };
    options.events = SilentEventLog();
    auto core = Core::Open(std::move(options), std::make_unique<KeptJournal>(kept_));
    if (!core.ok()) Fail(core.status());
    core_ = *std::move(core);
  }
  void MakeJob() {
    constexpr int64_t kElements = int64_t{1} << 40;
    DatasetSummary summary{.cardinality = kElements, .ends = true};
    summary.plan.push_back({.node = "Range#0", .count = kElements});
    core_->RegisterDataset({.dataset_id = "fleet", .summary = summary}, [](const auto& answer) {
      if (!answer.ok()) Fail(answer.status());
    });
    core_->GetOrCreateJob(
        {.name = "fleet", .dataset_id = "fleet", .terms = {.mode = ShardingPolicy::kDynamic}},
        [this](const auto& answer) {
          if (!answer.ok()) Fail(answer.status());
          job_ = *answer;
        });
  }
  template <class Answers>
  void HandleFirst(Answers& answers) {
    if (answers.empty()) return;
    auto [member, message] = std::move(answers.front());
    answers.pop_front();
    Tell(*member, std::move(message));
  }
  // Handles answers until there are none.
  void Settle() {
    while (!over() && !(worker_answers_.empty() && client_answers_.empty())) {
      HandleFirst(worker_answers_);
      HandleFirst(client_answers_);
    }
  }
  void Check(const Size& size) const {
    int64_t placed = 0;
    for (const auto& [number, worker] : workers_) placed += worker->light.partitions();
    for (const auto& client : clients_)
      if (!client->light.welcome()) Fail(client->light.refused());
    if (placed == int64_t{kPermits} * size.workers) return;
    Fail(absl::InternalError(
        absl::StrCat(placed, " partitions are placed, not ", int64_t{kPermits} * size.workers)));
  }

  const double until_;
  uint64_t random_ = 0;
  uint64_t last_worker_ = 0;
  Recovered kept_;
  Sent sent_;
  Worker::Answers worker_answers_;
  Client::Answers client_answers_;
  JobAnswer job_;
  std::map<uint64_t, std::shared_ptr<Worker>> workers_;  // by number
  std::vector<std::shared_ptr<Client>> clients_;         // by number - 1
  std::unique_ptr<Core> core_;
};

// --- Measuring ---------------------------------------------------------------------------------

struct Costs {
  Cost build, restart, worker_hello, client_hello, oldest_hello, loss, join, move, client_join,
      bookmark, report, worker_beat, first_beat, client_beat, status;
};
struct Row {
  const char* name;
  Cost Costs::*cost;
};
constexpr Row kRows[] = {
    {"build, in all", &Costs::build},
    {"restart, in all", &Costs::restart},
    {"worker hello", &Costs::worker_hello},
    {"client hello", &Costs::client_hello},
    {"oldest's hello", &Costs::oldest_hello},  // of the client with the most partitions
    {"worker loss", &Costs::loss},
    {"worker join", &Costs::join},
    {"move (drain)", &Costs::move},
    {"client join", &Costs::client_join},
    {"bookmark", &Costs::bookmark},
    {"report", &Costs::report},
    {"worker heartbeat", &Costs::worker_beat},
    {"first heartbeat", &Costs::first_beat},  // of a client on its stream
    {"client heartbeat", &Costs::client_beat},
    {"GetStatus", &Costs::status},
};

constexpr int kFew = 5;      // of events that move partitions
constexpr int kMany = 1000;  // of other events
constexpr double kSeconds = 0.3;

void MeasureSteady(Fleet& fleet, Costs& costs) {
  const auto repeat = [&](Cost& cost, int count, absl::FunctionRef<void(int)> event) {
    while (fleet.Repeats(cost, count, kSeconds)) fleet.Count(cost, [&] { event(cost.events); });
  };
  repeat(costs.bookmark, kMany, [&](int i) {
    Worker& worker = fleet.worker(i);
    if (worker.light.holds_any()) fleet.Tell(worker, worker.light.NextBookmark(0));
  });
  repeat(costs.report, kMany, [&](int i) {
    Client& client = fleet.client(i);
    if (client.light.has_partitions()) fleet.Tell(client, client.light.NextReport());
  });
  repeat(costs.worker_beat, kMany,
         [&](int i) { fleet.Tell(fleet.worker(i), fleet.worker(i).light.Beat()); });
  const auto beat = [&](Client& client) { fleet.Tell(client, client.light.Beat()); };
  repeat(costs.first_beat, fleet.clients(), [&](int i) { beat(fleet.client(i)); });
  while (costs.first_beat.events > 0 && fleet.Repeats(costs.client_beat, kMany, kSeconds)) {
    Client& client = fleet.client(costs.client_beat.events % costs.first_beat.events);
    if (client.light.has_partitions()) fleet.Tell(client, client.light.NextReport());
    fleet.Count(costs.client_beat, [&] { beat(client); });
  }
  repeat(costs.status, kFew, [&](int) { fleet.GetStatus(); });
  repeat(costs.worker_hello, kMany, [&](int i) { fleet.Reconnect(fleet.worker(i)); });
  repeat(costs.client_hello, kMany, [&](int i) { fleet.Reconnect(fleet.spread_client(i)); });
  repeat(costs.oldest_hello, kFew, [&](int /*i*/) { fleet.Reconnect(fleet.client(0)); });
}

// After each turn there are as many workers as before.
void MeasureMoves(Fleet& fleet, Costs& costs) {
  while (fleet.Repeats(costs.loss, kFew, kSeconds)) {
    Worker& lost = fleet.worker(costs.loss.events);
    fleet.Count(costs.loss, [&] { fleet.Lose(lost); });
    fleet.Forget(lost);
    fleet.Progress();
    fleet.Count(costs.join, [&] { fleet.Join(); });
    fleet.Progress();
  }
  while (fleet.Repeats(costs.move, kFew, kSeconds)) {
    Worker& drained = fleet.worker(costs.move.events);
    fleet.Count(costs.move, [&] { fleet.Tell(drained, Drain{}); });
    fleet.Tell(drained, WorkerLeave{});
    fleet.Forget(drained);
    fleet.Join();
    fleet.Progress();
  }
  while (fleet.Repeats(costs.client_join, kFew, kSeconds))
    fleet.Count(costs.client_join, [&] { fleet.JoinClient(); });
}

Costs MeasureSize(const Size& size, double limit_s) {
  Fleet fleet(limit_s);
  Costs costs;
  fleet.Count(costs.build, [&] { fleet.Build(size); });
  if (costs.build.events == 0) return costs;
  MeasureSteady(fleet, costs);
  MeasureMoves(fleet, costs);
  if (fleet.over()) return costs;
  fleet.Restart();
  fleet.Count(costs.restart, [&] { fleet.ReconnectAll(); });
  return costs;
}

void Print(const Size& size, const Costs& costs, double limit_s) {
  std::printf("\n%d workers, %d clients, %d partitions\n", size.workers, size.clients,
              kPermits * size.workers);
  std::printf("  %-18s %14s %14s %12s %8s\n", "event", "us", "bytes", "messages", "events");
  for (const Row& row : kRows) {
    const Cost& cost = costs.*row.cost;
    if (cost.events == 0) {
      std::printf("  %-18s not measured within %.0f s of CPU\n", row.name, limit_s);
      continue;
    }
    const double n = cost.events;
    std::printf("  %-18s %14.1f %14.0f %12.1f %8d\n", row.name, cost.us / n,
                static_cast<double>(cost.sent.bytes) / n,
                static_cast<double>(cost.sent.messages) / n, cost.events);
  }
  std::fflush(stdout);
}

void PrintGrowth(const std::vector<std::pair<Size, Costs>>& measured) {
  std::printf("\nexponent of the cost by workers (1 is linear)\n");
  for (const Row& row : kRows) {
    std::vector<CostOfSize> us, bytes;
    for (const auto& [size, costs] : measured) {
      const Cost& cost = costs.*row.cost;
      if (cost.events == 0) continue;
      const double workers = size.workers, n = cost.events;
      us.push_back({workers, cost.us / n});
      bytes.push_back({workers, static_cast<double>(cost.sent.bytes) / n});
    }
    std::printf("  %-18s us %5.2f   bytes %5.2f   of %zu sizes\n", row.name, GrowthExponent(us),
                GrowthExponent(bytes), us.size());
  }
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  namespace bench = penstock::bench;
  CLI::App app("Measure what events cost a dispatcher's core, by the size of the fleet.");
  std::vector<std::string> sizes = {"100x10", "300x30", "1000x100", "3000x300"};
  double limit_s = 20;
  app.add_option("--sizes", sizes, "Workers x clients, one after the other.")->delimiter(',');
  app.add_option("--limit", limit_s,
                 "Seconds of CPU for each size. What is not measured by then is left out.");
  CLI11_PARSE(app, argc, argv);
  std::vector<std::pair<bench::Size, bench::Costs>> measured;
  for (const std::string& text : sizes) {
    bench::Size size;
    if (std::sscanf(text.c_str(), "%dx%d", &size.workers, &size.clients) != 2 || size.workers < 2 ||
        size.clients < 1) {
      std::fprintf(stderr, "dispatcher_fleet_bench: size '%s'; expected WORKERSxCLIENTS\n",
                   text.c_str());
      return 1;
    }
    measured.push_back({size, bench::MeasureSize(size, limit_s)});
    bench::Print(size, measured.back().second, limit_s);
  }
  bench::PrintGrowth(measured);
  return 0;
}
