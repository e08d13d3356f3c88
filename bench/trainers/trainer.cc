// SPDX-License-Identifier: Apache-2.0
#include "bench/trainers/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/measure.h"
#include "bench/trainers/gpu_trainer.h"
#include "bench/trainers/step_barrier.h"
#include "bench/wire.h"
#include "dataplane/transfer/filled.h"
#include "dataplane/transfer/ucx/lanes_used.h"
#include "include/status_macros.h"
#include "penstock/server.h"

namespace penstock::bench {
namespace {

constexpr int kTinyStride = 16;  // one Next() call in this many is timed for tiny elements

class Trainer final : public Side {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Start(const Workload& workload, Setup setup) {
    auto trainer = std::unique_ptr<Trainer>(new Trainer(workload, std::move(setup)));
    if (trainer->setup_.service.empty()) RETURN_IF_ERROR(trainer->StartServers());
    if (workload.in_step()) {
      ASSIGN_OR_RETURN(trainer->steps_, StepBarrier::Open(trainer->setup_));
    }
    RETURN_IF_ERROR(trainer->StartPass());
    // Warms up: slots are allocated, the window is full.
    RETURN_IF_ERROR(trainer->Read(std::min(0.3, trainer->setup_.window_s)).status());
    return trainer;
  }

  std::string name() const override { return "trainer"; }
  const Roles& roles() const override { return roles_; }
  std::set<std::string> lanes() const override { return transfer::ucx::LanesOfProcess(); }

  absl::StatusOr<Done> Read(double seconds) override {
    const int stride = workload_.tiny() ? kTinyStride : 1;
    std::vector<float> next_us;
    std::map<PartitionId, int64_t> by_partition;
    Done done;
    const int64_t copied_before = Copied(), in_place_before = InPlace();
    const double start = Now();
    double now = start;
    bool more = true;
    while (more) {
      for (int i = 0; i < stride; ++i) {
        ASSIGN_OR_RETURN(std::optional<Element> element, it_->Next());
        if (i == 0) next_us.push_back(static_cast<float>((Now() - now) * 1e6));
        if (!element) {
          RETURN_IF_ERROR(reader_->EndOfPass());
          RETURN_IF_ERROR(StartPass());
          continue;
        }
        const double step_s = workload_.StepOf(*element);
        if (steps_ != nullptr) steps_->Received(step_s);
        ASSIGN_OR_RETURN(const int64_t bytes, reader_->Take(*element));
        done.bytes += bytes;
        ++done.elements;
        if (step_s > 0) absl::SleepFor(absl::Seconds(step_s));
        if (setup_.workers > 1) ++by_partition[element->identity().partition];
      }
      now = Now();
      more = now < start + seconds;
      if (steps_ != nullptr) {
        ASSIGN_OR_RETURN(more, steps_->Wait(more));
        now = Now();
      }
    }
    if (steps_ != nullptr) done.in_step = steps_->Take();
    done.seconds = now - start;
    done.copied = Copied() - copied_before;
    done.shared = done.copied + InPlace() - in_place_before;
    done.SetLatencies(next_us);
    if (setup_.workers > 1) {  // one partition each; some may have sent no element yet
      for (const auto& [partition, elements] : by_partition) done.shares.push_back(elements);
      done.shares.resize(std::max<size_t>(done.shares.size(), setup_.workers));
    }
    return done;
  }

 private:
  Trainer(const Workload& workload, Setup setup)
      : workload_(workload), setup_(std::move(setup)), reader_(workload.MakeReader(setup_)) {}

  absl::Status StartServers() {
    ASSIGN_OR_RETURN(dispatcher_, DispatchServer::Start());
    ASSIGN_OR_RETURN(worker_, WorkerServer::Start({.dispatcher_address = dispatcher_->target()}));
    setup_.service = dispatcher_->target();
    return absl::OkStatus();
  }

  static int64_t InPlace() { return transfer::FilledOfProcess(transfer::Filled::kInPlace); }
  static int64_t Copied() {
    return transfer::FilledOfProcess(transfer::Filled::kNoSlot) +
           transfer::FilledOfProcess(transfer::Filled::kForAnother) +
           transfer::FilledOfProcess(transfer::Filled::kElsewhere);
  }

  absl::Status StartPass() {
    const Dataset dataset = Distributed(workload_, setup_);
    ASSIGN_OR_RETURN(Iterator it, dataset.MakeIterator());
    it_.emplace(std::move(it));
    return absl::OkStatus();
  }

  const Workload& workload_;
  Setup setup_;
  const Roles roles_{{"consumer", {::getpid()}}};
  std::unique_ptr<DispatchServer> dispatcher_;  // these two only in process
  std::unique_ptr<WorkerServer> worker_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<StepBarrier> steps_;  // for trainers that step together
  std::optional<Iterator> it_;
};

absl::StatusOr<std::unique_ptr<Side>> StartTrainer(const nlohmann::json& fields) {
  ASSIGN_OR_RETURN(Setup setup, SetupOf(fields));
  ASSIGN_OR_RETURN(const Workload* workload, FindWorkload(setup.workload));
  if (!setup.device.empty()) return StartGpuTrainer(*workload, setup);
  return Trainer::Start(*workload, std::move(setup));
}

void Say(const nlohmann::json& line) {
  std::cout << line.dump() << std::endl;  // endl flushes
}

void SayError(const absl::Status& status) {
  Say({{"error", std::string(status.message())}, {"data_loss", absl::IsDataLoss(status)}});
}

}  // namespace

Dataset Distributed(const Workload& workload, const Setup& setup) {
  DistributeOptions options{
      .processing_mode = workload.mode(),
      .service = setup.service,
      .job_name = setup.consumers > 1 || workload.cached() ? "bench" : "",
      .max_outstanding_requests = workload.max_outstanding_requests(),
      .data_transfer_protocol = setup.protocol,
      .compression = setup.compress ? LinkCompression::kAuto : LinkCompression::kNone};
  if (setup.coordinated) {
    options.delivery =
        CoordinatedRounds{.consumer_index = setup.consumer, .num_consumers = setup.consumers};
  }
  if (workload.cached()) {
    options.delivery = CrossTrainerCache{std::to_string(setup.consumer)};
  }
  return workload.MakeDataset(setup).Distribute(options);
}

int RunTrainer() {
  std::unique_ptr<Side> trainer;
  for (std::string line; std::getline(std::cin, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (trainer == nullptr) {
      absl::StatusOr<std::unique_ptr<Side>> started = StartTrainer(json);
      if (!started.ok()) {
        SayError(started.status());
        return 1;
      }
      trainer = *std::move(started);
      Say({{"pids", trainer->roles()}, {"lanes", trainer->lanes()}});
      continue;
    }
    absl::StatusOr<Done> done = trainer->Read(json.value("seconds", 0.0));
    if (!done.ok()) {
      SayError(done.status());
      return 1;
    }
    Say(ToJson(*done));
  }
  return 0;
}

}  // namespace penstock::bench
