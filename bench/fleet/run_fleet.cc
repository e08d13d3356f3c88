// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/run_fleet.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/fleet/growth.h"
#include "bench/fleet/latencies.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

constexpr absl::Duration kBeforeSteady = absl::Seconds(3);
constexpr double kSteadyHeartbeats =
    3;  // of each peer, at least: none leaves a quantile without a value
constexpr absl::Duration kAfterEvents = absl::Seconds(1);  // the last consequences
constexpr absl::Duration kBetweenEvents = absl::Milliseconds(20);
constexpr int kStatusCalls = 5;
constexpr int64_t kStatusPage = 256;  // as in DispatcherStub::GetStatus()
constexpr int64_t kElements = int64_t{1} << 40;
constexpr double kLinear = 1.1;  // the largest exponent that counts as linear

double SecondsSince(absl::Time begin) {
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

// One size, phase by phase. `workers` and the like: the expected fleet.
class FleetRun {
 public:
  FleetRun(const FleetOptions& options, FleetSize& size)
      : options_(options),
        size_(size),
        workers_(size.workers),
        last_worker_(size.workers),
        clients_(size.clients),
        partitions_(int64_t{options.permits} * size.workers),
        events_(std::clamp(options.events, 1, std::max(1, size.workers / 5))) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Build());
    RETURN_IF_ERROR(MeasureSteadyState().status());
    RETURN_IF_ERROR(Events("", 5));
    RETURN_IF_ERROR(Restart());
    RETURN_IF_ERROR(Steady());
    RETURN_IF_ERROR(Status());
    // Each partition that moves for the first time after a restart makes the dispatcher ask all
    // clients about it.
    RETURN_IF_ERROR(Events(" after a restart", -1));
    Add("false deaths in all", "", FalseDeaths(), 0);
    return absl::OkStatus();
  }

 private:
  void Add(std::string name, std::string unit, double value, double bar = -1) {
    size_.figures.push_back({std::move(name), std::move(unit), value, bar});
  }
  // Waits until everybody is there and every partition is placed.
  absl::Status AwaitRest() {
    return service_->Await([this](const FleetService::State& state) {
      return state.workers == workers_ && state.clients == clients_ && state.placed == partitions_;
    });
  }
  absl::Status AwaitPresent() {
    return service_->Await([this](const FleetService::State& state) {
      return state.workers == workers_ && state.clients == clients_;
    });
  }
  // Adds the bytes to clients since the last call.
  absl::Status AddBytes(const std::string& of) {
    ASSIGN_OR_RETURN(const FleetService::Taken taken, service_->Take());
    Add(absl::StrCat("bytes to clients, ", of), "MB",
        static_cast<double>(taken.client_bytes) / 1e6);
    return absl::OkStatus();
  }

  // Workers register first, so that the first client finds a place for each partition.
  absl::Status Build() {
    ASSIGN_OR_RETURN(service_, FleetService::Start(options_, workers_ + clients_));
    const absl::Time began = absl::Now();
    RETURN_IF_ERROR(service_->StartWorkers(1, workers_));
    const int clients = std::exchange(clients_, 0);
    RETURN_IF_ERROR(AwaitPresent());
    RETURN_IF_ERROR(MakeJob());
    clients_ = clients;
    RETURN_IF_ERROR(service_->StartClients(1, clients_, job_));
    RETURN_IF_ERROR(AwaitRest());
    Add("start: all placed", "s", SecondsSince(began));
    return AddBytes("start");
  }
  absl::Status MakeJob() {
    control::DatasetSummary summary;
    summary.fingerprint = 1;
    summary.cardinality = kElements;
    summary.ends = true;
    summary.nodes = {{"Range#0", 1}};
    summary.plan.push_back({.node = "Range#0", .count = kElements});
    RETURN_IF_ERROR(
        service_->stub()
            .GetOrRegisterDataset(
                {.dataset_id = "fleet", .definition = "fleet", .summary = std::move(summary)}, {})
            .status());
    ASSIGN_OR_RETURN(
        job_,
        service_->stub().GetOrCreateJob(
            {.name = "fleet", .dataset_id = "fleet", .terms = {.mode = ShardingPolicy::kDynamic}},
            {}));
    return absl::OkStatus();
  }

  absl::Status Restart() {
    const absl::Time began = absl::Now();
    RETURN_IF_ERROR(service_->RestartDispatcher());
    Add("restart: serves", "s", SecondsSince(began));
    RETURN_IF_ERROR(AwaitPresent());
    Add("restart: all present", "s", SecondsSince(began), 30);
    RETURN_IF_ERROR(AwaitRest());
    Add("restart: all placed", "s", SecondsSince(began));
    Add("restart: CPU", "s", service_->dispatcher_cpu_s());
    absl::SleepFor(kBeforeSteady);
    Add("restart: peak memory", "GB", static_cast<double>(service_->dispatcher_peak_bytes()) / 1e9,
        4);
    RETURN_IF_ERROR(AddBytes("restart"));
    Add("restart: false deaths", "", FalseDeaths(), 0);
    return absl::OkStatus();
  }

  double FalseDeaths() const { return static_cast<double>(service_->Deaths() - lost_); }

  // Lets the service run for the window, and notes its share of a core and its bytes.
  absl::StatusOr<FleetService::Taken> MeasureSteadyState() {
    RETURN_IF_ERROR(service_->Take().status());
    const absl::Time began = absl::Now();
    const double cpu = service_->dispatcher_cpu_s();
    absl::SleepFor(
        absl::Seconds(std::max(options_.window_s, kSteadyHeartbeats * options_.heartbeat_s)));
    const double seconds = SecondsSince(began);
    share_ = (service_->dispatcher_cpu_s() - cpu) / seconds;
    ASSIGN_OR_RETURN(FleetService::Taken taken, service_->Take());
    steady_mb_per_s_ = static_cast<double>(taken.client_bytes) / 1e6 / seconds;
    return taken;
  }

  absl::Status Steady() {
    ASSIGN_OR_RETURN(const FleetService::Taken taken, MeasureSteadyState());
    Add("steady: CPU", "cores", share_, 1);
    Add("steady: worker heartbeat p50", "ms", QuantileMs(taken.worker_beats, 0.5));
    Add("steady: worker heartbeat p99", "ms", QuantileMs(taken.worker_beats, 0.99), 10);
    Add("steady: client heartbeat p50", "ms", QuantileMs(taken.client_beats, 0.5));
    Add("steady: client heartbeat p99", "ms", QuantileMs(taken.client_beats, 0.99), 10);
    Add("bytes to clients, steady, a second", "MB", steady_mb_per_s_);
    return absl::OkStatus();
  }

  // Adds the median time of the call.
  absl::Status AddCall(const std::string& name, double bar,
                       absl::FunctionRef<absl::Status()> call) {
    std::vector<double> ms;
    for (int i = 0; i < kStatusCalls; ++i) {
      const absl::Time began = absl::Now();
      RETURN_IF_ERROR(call());
      ms.push_back(SecondsSince(began) * 1e3);
    }
    std::sort(ms.begin(), ms.end());
    Add(name, "ms", ms[ms.size() / 2], bar);
    return absl::OkStatus();
  }
  absl::Status Status() {
    control::DispatcherStub& stub = service_->stub();
    RETURN_IF_ERROR(AddCall("GetStatus, the first page", 50, [&] {
      return stub.GetStatusPage({.page_size = kStatusPage}, {}).status();
    }));
    return AddCall("GetStatus, all pages", -1, [&] { return stub.GetStatus({}).status(); });
  }

  // Adds the CPU time and the bytes of one of `count` events, without those of the steady state.
  // `event(i)` begins the i-th one.
  absl::Status AddEvents(const std::string& name, double bar, int count,
                         absl::FunctionRef<absl::Status(int)> event,
                         absl::FunctionRef<absl::Status()> await) {
    RETURN_IF_ERROR(service_->Take().status());
    const absl::Time began = absl::Now();
    const double cpu = service_->dispatcher_cpu_s();
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(event(i));
      absl::SleepFor(kBetweenEvents);
    }
    RETURN_IF_ERROR(await());
    absl::SleepFor(kAfterEvents);
    ASSIGN_OR_RETURN(const FleetService::Taken taken, service_->Take());
    const double seconds = SecondsSince(began);
    const double used = service_->dispatcher_cpu_s() - cpu - share_ * seconds;
    const double mb = static_cast<double>(taken.client_bytes) / 1e6 - steady_mb_per_s_ * seconds;
    Add(name, "ms of CPU", std::max(0.0, used) / count * 1e3, bar);
    Add(absl::StrCat("bytes to clients, ", name), "MB", std::max(0.0, mb) / count);
    return absl::OkStatus();
  }
  // The workers with the highest numbers are lost and drained: partitions move to the lowest ones
  // first, so no partition loses its worker twice in one life of the dispatcher. `when`: the end of
  // the figures' names.
  absl::Status Events(const std::string& when, double bar) {
    const auto rest = [this] { return AwaitRest(); };
    const auto join = [this](int) {
      ++workers_;
      return service_->StartWorkers(++last_worker_, 1);
    };
    const int first_lost = last_worker_ - events_ + 1;
    first_drained_ = std::min(first_drained_, first_lost) - events_;
    RETURN_IF_ERROR(AddEvents(
        "a worker's loss" + when, bar, events_,
        [&](int i) {
          --workers_;
          ++lost_;
          return service_->Order("lose", first_lost + i);
        },
        rest));
    RETURN_IF_ERROR(AddEvents("a worker's join" + when, bar, events_, join, rest));
    drained_ += events_;
    RETURN_IF_ERROR(AddEvents(
        "a worker's move" + when, bar, events_,
        [&](int i) { return service_->Order("drain", first_drained_ + i); },
        [&] {
          return service_->Await([&](const FleetService::State& state) {
            return state.drained == drained_ && state.placed == partitions_;
          });
        }));
    return AddEvents(
        "a client's join" + when, -1, events_,
        [&](int) { return service_->StartClients(++clients_, 1, job_); }, rest);
  }

  const FleetOptions& options_;
  FleetSize& size_;
  std::unique_ptr<FleetService> service_;
  control::JobAnswer job_;
  int workers_, last_worker_, clients_;
  const int64_t partitions_;
  const int events_;
  int lost_ = 0, drained_ = 0, first_drained_ = std::numeric_limits<int>::max();  // by Events()
  double share_ = 0;  // of a core, in the steady state
  double steady_mb_per_s_ = 0;
};

}  // namespace

FleetSize MeasureFleet(const FleetOptions& options, int workers) {
  FleetSize size{.workers = workers,
                 .clients = std::max(1, workers / options.workers_per_client),
                 .figures = {},
                 .status = {}};
  size.status = FleetRun(options, size).Run();
  return size;
}

std::string TableOf(const FleetSize& size) {
  std::string text = absl::StrFormat("\n%d workers, %d clients\n", size.workers, size.clients);
  for (const FleetFigure& figure : size.figures) {
    absl::StrAppendFormat(&text, "  %-46s %12.3f %-10s", figure.name, figure.value, figure.unit);
    if (figure.bar >= 0) {
      absl::StrAppendFormat(&text, " bar %g%s", figure.bar,
                            figure.value <= figure.bar ? "" : ", missed");
    }
    text += '\n';
  }
  if (!size.status.ok()) absl::StrAppend(&text, "  stopped: ", size.status.ToString(), "\n");
  return text;
}

std::string RecordOf(const FleetSize& size) {
  nlohmann::json record = {{"workers", size.workers}, {"clients", size.clients}};
  if (!size.status.ok()) record["stopped"] = size.status.ToString();
  for (const FleetFigure& figure : size.figures) {
    record["figures"].push_back(
        {{"name", figure.name}, {"unit", figure.unit}, {"value", figure.value}});
    if (figure.bar >= 0) record["figures"].back()["bar"] = figure.bar;
  }
  return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string GrowthOf(const std::vector<FleetSize>& sizes) {
  std::vector<std::pair<std::string, std::vector<CostOfSize>>> costs;  // by name, in order
  for (const FleetSize& size : sizes) {
    for (const FleetFigure& figure : size.figures) {
      auto its =
          std::ranges::find_if(costs, [&](const auto& cost) { return cost.first == figure.name; });
      if (its == costs.end()) its = costs.insert(its, {figure.name, {}});
      its->second.push_back({static_cast<double>(size.workers), figure.value});
    }
  }
  std::string text = "\nexponent by workers\n";
  for (const auto& [name, its] : costs) {
    const double exponent = GrowthExponent(its);
    if (std::isnan(exponent)) continue;
    absl::StrAppendFormat(&text, "  %-46s %6.2f of %d sizes%s\n", name, exponent, its.size(),
                          exponent <= kLinear ? "" : ", worse than linear");
  }
  return text;
}

}  // namespace penstock::bench
