// SPDX-License-Identifier: Apache-2.0
// Trainers and workers of known speed in simulated time, and the estimates from their reports.
#include "control/policy/scaling.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr absl::Duration kBeat = absl::Seconds(1);

// A client or worker that handles one element after the other: `own` seconds each, and at most
// `most` a second, rounded to whole elements.
class Source {
 public:
  Source(double own, double jitter, uint64_t seed) : own_(own), jitter_(jitter), random_(seed) {}

  void RunUntil(double time, double most) {
    while (true) {
      if (next_own_ == 0)
        next_own_ = own_ * std::exp(jitter_ * normal_(random_) - jitter_ * jitter_ / 2);
      const double whole = std::max(next_own_, 1 / most);
      if (now_ + whole > time) return;
      now_ += whole;
      busy_ += next_own_;
      waited_ += whole - next_own_;
      next_own_ = 0;
      ++elements_;
    }
  }
  // An evaluation or a checkpoint: time without elements that counts as the client's own.
  void Pause(double seconds) {
    now_ += seconds;
    busy_ += seconds;
  }
  double own() const { return own_; }
  int64_t elements() const { return elements_; }
  absl::Duration busy() const { return absl::Seconds(busy_); }
  absl::Duration waited() const { return absl::Seconds(waited_); }

 private:
  double own_, jitter_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double now_ = 0, busy_ = 0, waited_ = 0, next_own_ = 0;
  int64_t elements_ = 0;
};

// A job: the seconds that each trainer takes for a step, and the seconds that each worker takes for
// an element, one at a time.
struct Load {
  std::vector<double> steps;
  double element = 0.1;
  double jitter = 0.2;
  JobTerms terms;
};

class ScalingTest : public ::testing::Test {
 protected:
  struct Job {
    Load load;
    std::vector<Source> clients, workers;
  };

  // The clients of each job are numbered from 1 on.
  void AddJob(const Load& load) {
    const JobId job(jobs_.size() + 1);
    auto dataset = std::make_shared<DatasetRecord>();
    dataset->id = absl::StrCat("1", job.value());
    state_.Apply(DatasetRegistered{dataset});
    state_.Apply(JobCreated{{.id = job,
                             .name = absl::StrCat("job", job.value()),
                             .dataset = dataset,
                             .terms = load.terms}});
    state_.Apply(IterationCreated{IterationId(job.value()), job, 0, {}});
    Job& its = jobs_.emplace_back();
    its.load = load;
    for (double step : load.steps) its.clients.emplace_back(step, load.jitter, seed_++);
  }
  void SetWorkers(int count, int permits = 1) {
    while (workers_ < count) {
      state_.Apply(WorkerRegistered{
          {.id = WorkerId(static_cast<uint64_t>(++workers_)), .permits = permits}});
      for (Job& job : jobs_) job.workers.emplace_back(job.load.element, job.load.jitter, seed_++);
    }
    while (workers_ > count) {
      scaling_.WorkerGone(WorkerId(static_cast<uint64_t>(workers_)));
      state_.Apply(WorkerGone{WorkerId(static_cast<uint64_t>(workers_--))});
      for (Job& job : jobs_) job.workers.pop_back();
    }
  }
  // Returns the elements a second that all workers make for the job if it is alone.
  static double Supply(const Job& job, size_t workers) {
    return static_cast<double>(workers) / job.load.element;
  }

  // Lets time pass and calls `each` with every estimate.
  template <class Each>
  void Run(absl::Duration time, const Each& each) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ += kBeat;
      const double seconds = absl::ToDoubleSeconds(now_ - kStart);
      for (size_t j = 0; j < jobs_.size(); ++j) Beat(j, seconds);
      each(scaling_.Decide(state_, workers_, now_));
    }
  }
  void Run(absl::Duration time) {
    Run(time, [](const auto&) {});
  }

  void Beat(size_t j, double seconds) {
    Job& job = jobs_[j];
    double demand = 0;
    for (const Source& client : job.clients) demand += 1 / client.own();
    // Jobs share the workers evenly.
    const double supply = Supply(job, job.workers.size()) / static_cast<double>(jobs_.size());
    const double fed = std::min(1.0, supply / demand);
    for (size_t c = 0; c < job.clients.size(); ++c) {
      Source& client = job.clients[c];
      client.RunUntil(seconds, fed / client.own());
      scaling_.OnClientSteps(JobId(j + 1), ClientId(c + 1), Incarnation(1),
                             {client.elements(), client.busy(), client.waited()}, now_);
    }
    for (size_t w = 0; w < job.workers.size(); ++w) {
      Source& worker = job.workers[w];
      worker.RunUntil(seconds, fed * demand / static_cast<double>(job.workers.size()));
      scaling_.OnWorkerHeartbeat(
          state_, WorkerId(w + 1),
          {.iterations = {{IterationId(j + 1), worker.elements(), worker.busy(), 1}}}, now_);
    }
  }

  // Returns the smallest number of workers with which the trainers of `load` are busy for 0.9 of
  // their time; they share the elements.
  static int64_t Enough(const Load& load) {
    double demand = 0;
    for (double step : load.steps) demand += 1 / step;
    return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(0.9 * demand * load.element)));
  }
  int64_t wanted() const { return scaling_.latest().workers; }

  static constexpr absl::Time kStart = absl::UnixEpoch();
  State state_;
  Scaling scaling_;
  std::vector<Job> jobs_;
  int workers_ = 0;
  absl::Time now_ = kStart;
  uint64_t seed_ = 1;
};

// --- The estimate --------------------------------------------------------------------

struct Rates {
  int trainers;
  double step;
  double element;
  int workers;  // registered workers
};

class ManyRates : public ScalingTest, public ::testing::WithParamInterface<Rates> {};

TEST_P(ManyRates, AreMetWithinOneWorkerInThirtySecondsAndStaySo) {
  const Rates& rates = GetParam();
  const Load load{std::vector<double>(static_cast<size_t>(rates.trainers), rates.step),
                  rates.element};
  AddJob(load);
  SetWorkers(rates.workers);
  Run(absl::Seconds(30));
  const int64_t most = std::min<int64_t>(4 * rates.workers, rates.workers + 500);
  const int64_t enough = std::min(Enough(load), most);
  int64_t least_seen = wanted(), most_seen = wanted();
  Run(absl::Minutes(5), [&](const Scaling::Estimate& estimate) {
    least_seen = std::min(least_seen, estimate.workers);
    most_seen = std::max(most_seen, estimate.workers);
  });
  EXPECT_GE(least_seen, enough - 1);
  EXPECT_LE(most_seen, enough + 1);
  EXPECT_LE(most_seen - least_seen, 1);
}

INSTANTIATE_TEST_SUITE_P(Rates, ManyRates,
                         ::testing::Values(Rates{1, 0.224, 0.5, 1}, Rates{1, 0.224, 0.5, 3},
                                           Rates{1, 0.224, 0.5, 8}, Rates{4, 0.224, 0.25, 2},
                                           Rates{4, 0.224, 0.25, 16}, Rates{1, 0.01, 0.001, 1},
                                           Rates{1, 0.01, 0.001, 4}, Rates{8, 0.05, 0.03, 2},
                                           Rates{8, 0.05, 0.03, 30}, Rates{1, 5, 3, 2},
                                           Rates{2, 5, 12, 4}, Rates{16, 0.3, 0.7, 40},
                                           Rates{1, 0.01, 0.5, 2}));

TEST_F(ScalingTest, FollowsTrainersThatComeAndGo) {
  AddJob({{0.2}, 0.5});
  SetWorkers(3);
  Run(absl::Seconds(30));
  EXPECT_THAT(wanted(), AllOf(Ge(2), Le(4)));  // 0.9 · 5 · 0.5 = 2.25
  for (int i = 0; i < 3; ++i) {
    jobs_[0].clients.emplace_back(0.2, 0.2, seed_++);
    jobs_[0].clients.back().Pause(absl::ToDoubleSeconds(now_ - kStart));
  }
  Run(absl::Seconds(30));
  EXPECT_THAT(wanted(), AllOf(Ge(8), Le(10)));  // 9
  for (uint64_t client : {4, 3, 2}) {
    jobs_[0].clients.pop_back();
    scaling_.ClientLeft(JobId(1), ClientId(client), now_);
  }
  Run(absl::Seconds(30));
  EXPECT_THAT(wanted(), AllOf(Ge(2), Le(4)));
}

TEST_F(ScalingTest, APauseOfATrainerChangesNothing) {
  AddJob({{0.2}, 0.5});
  SetWorkers(4);
  Run(absl::Seconds(60));
  const int64_t before = wanted();
  jobs_[0].clients[0].Pause(40);
  Run(absl::Minutes(3),
      [&](const Scaling::Estimate& estimate) { EXPECT_EQ(estimate.workers, before); });
}

TEST_F(ScalingTest, AWorkerThatIsFarOffCountsAsFourTimesTheOthersAtMost) {
  AddJob({{0.1}, 0.5});
  SetWorkers(5);
  jobs_[0].workers[0] = Source(1e-5, 0.2, 77);
  Run(absl::Seconds(30));
  // Four workers make 2 a second, the fifth makes 100,000, which counts as 8.
  EXPECT_NEAR(scaling_.latest().jobs.at(JobId(1)).worker_per_s, (4 * 2 + 8) / 5.0, 0.4);
}

TEST_F(ScalingTest, ASlowWorkerCountsAsItIs) {
  AddJob({{0.1}, 0.5});
  SetWorkers(2);
  jobs_[0].workers[1] = Source(1.0, 0.2, 77);
  Run(absl::Seconds(30));
  EXPECT_NEAR(scaling_.latest().jobs.at(JobId(1)).worker_per_s, 1.5, 0.2);
}

TEST_F(ScalingTest, JobsNeedWorkersTogether) {
  AddJob({{0.2}, 0.5});  // 2.25 workers
  AddJob({{0.4}, 1.5});  // 3.4
  SetWorkers(8);
  Run(absl::Seconds(40));
  EXPECT_THAT(wanted(), AllOf(Ge(5), Le(7)));
  EXPECT_THAT(scaling_.latest().why, AllOf(HasSubstr("job1: "), HasSubstr("job2: ")));
}

TEST_F(ScalingTest, TrainersOfOneWindowTakeTheSameElements) {
  AddJob({{0.2, 0.4, 0.2}, 0.5, 0.2, {.cross_trainer_cache = true}});
  SetWorkers(3);
  Run(absl::Seconds(30));
  EXPECT_NEAR(scaling_.latest().jobs.at(JobId(1)).wanted_per_s, 5, 0.7);
}

TEST_F(ScalingTest, ConsumersOfACoordinatedReadGoAsFastAsTheSlowest) {
  AddJob({{0.2, 0.4}, 0.5, 0.2, {.num_consumers = 2}});
  SetWorkers(3);
  Run(absl::Seconds(30));
  EXPECT_NEAR(scaling_.latest().jobs.at(JobId(1)).wanted_per_s, 5, 0.7);  // 2 · 2.5
}

TEST_F(ScalingTest, MoreWorkersThanAJobMayHavePartitionsAreNotAskedFor) {
  AddJob({{0.1}, 1.0, 0.2, {.quota = {.max_permits = 3}}});  // 9 workers
  SetWorkers(4);
  Run(absl::Seconds(30));
  EXPECT_EQ(wanted(), 3);
}

// A worker of 4 permits that runs one partition of a job still has three for others.
TEST_F(ScalingTest, JobsThatUseAPartOfAWorkerShareIt) {
  AddJob({{0.5}, 0.5});  // 0.9 workers, a quarter of each
  AddJob({{0.5}, 0.5});
  SetWorkers(2, /*permits=*/4);
  Run(absl::Seconds(30));
  EXPECT_EQ(wanted(), 1);
}

// --- Reports -----------------------------------------------------------------------------

TEST_F(ScalingTest, WithoutBothKindsOfReportThereIsNone) {
  EXPECT_EQ(scaling_.Decide(state_, 3, now_).workers, 0);
  AddJob({{}, 0.5});
  SetWorkers(2);
  Run(absl::Seconds(30));
  EXPECT_EQ(wanted(), 0);
  AddJob({{}, 0.5});  // no worker reports on it
  for (int64_t second = 1; second <= 30; ++second) {
    now_ += kBeat;
    scaling_.OnClientSteps(JobId(2), ClientId(1), Incarnation(1),
                           {5 * second, absl::Seconds(second), absl::ZeroDuration()}, now_);
  }
  EXPECT_EQ(scaling_.Decide(state_, 2, now_).workers, 0);
  EXPECT_DOUBLE_EQ(scaling_.latest().jobs.at(JobId(2)).wanted_per_s, 5);
}

TEST_F(ScalingTest, NumbersThatCannotBeAreIgnored) {
  AddJob({{0.2}, 0.5});
  SetWorkers(3);
  Run(absl::Seconds(30));
  const int64_t before = wanted();
  for (int i = 0; i < 50; ++i) {
    scaling_.OnClientSteps(JobId(1), ClientId(1), Incarnation(1), {-1, absl::Seconds(9), {}}, now_);
    scaling_.OnClientSteps(JobId(1), ClientId(1), Incarnation(1), {1 << 30, -absl::Seconds(9), {}},
                           now_);
    scaling_.OnWorkerHeartbeat(state_, WorkerId(1), {.iterations = {{IterationId(1), -5, {}, 1}}},
                               now_);
    scaling_.OnWorkerHeartbeat(state_, WorkerId(9), {.iterations = {{IterationId(1), 5, {}, 1}}},
                               now_);
    scaling_.OnWorkerHeartbeat(state_, WorkerId(1), {.iterations = {{IterationId(9), 5, {}, 1}}},
                               now_);
  }
  EXPECT_EQ(scaling_.Decide(state_, 3, now_).workers, before);
}

TEST_F(ScalingTest, AFinishedJobWantsNoWorkers) {
  AddJob({{0.2}, 0.5});
  SetWorkers(3);
  Run(absl::Seconds(30));
  EXPECT_GT(wanted(), 0);
  state_.Apply(JobCancelled{JobId(1)});
  EXPECT_EQ(scaling_.Decide(state_, 3, now_).workers, 0);
  EXPECT_TRUE(scaling_.latest().changed);
}

// Its session ends with each pass, and another begins.
TEST_F(ScalingTest, ATrainerBetweenTwoRepetitionsStillCounts) {
  AddJob({{0.2}, 0.5});
  SetWorkers(3);
  Run(absl::Seconds(30));
  const int64_t before = wanted();
  scaling_.ClientLeft(JobId(1), ClientId(1), now_);
  EXPECT_EQ(scaling_.Decide(state_, 3, now_ + absl::Seconds(5)).workers, before);
  EXPECT_EQ(scaling_.Decide(state_, 3, now_ + absl::Seconds(20)).workers, 0);
}

TEST_F(ScalingTest, AWorkerThatGoesTakesItsReportsAlong) {
  AddJob({{0.1}, 0.5});
  SetWorkers(2);
  jobs_[0].workers[1] = Source(1.0, 0.2, 77);
  Run(absl::Seconds(30));
  SetWorkers(1);
  Run(absl::Seconds(2));
  EXPECT_NEAR(scaling_.latest().jobs.at(JobId(1)).worker_per_s, 2, 0.2);
}

// While the trainer is slow, its partition only empties the buffers of nodes, which takes no time.
// The busiest node shows how long an element really takes.
TEST_F(ScalingTest, ReadAheadDoesNotMakeAWorkerLookFast) {
  AddJob({{1.0}, 0.5});
  SetWorkers(1);
  for (int second = 1; second <= 30; ++second) {
    now_ += kBeat;
    scaling_.OnClientSteps(JobId(1), ClientId(1), Incarnation(1),
                           {second, absl::Seconds(second), {}}, now_);
    WorkerHeartbeat beat{.iterations = {{IterationId(1), second, absl::Microseconds(second), 1}}};
    NodeStats map{
        .node = "Map#1", .elements = second, .busy = absl::Seconds(second * 4), .parallelism = 2};
    NodeStats prefetch{.node = "Prefetch#2", .elements = second, .ahead = 2};
    beat.work.push_back({"11", {{map, prefetch}}});
    scaling_.OnWorkerHeartbeat(state_, WorkerId(1), beat, now_);
  }
  EXPECT_EQ(scaling_.Decide(state_, 1, now_).workers, 2);  // 0.9 · 1 · 2 s
}

TEST_F(ScalingTest, AtMostFourTimesTheWorkersAreAskedFor) {
  AddJob({{0.01}, 1.0});
  SetWorkers(2);
  Run(absl::Seconds(30));
  EXPECT_EQ(wanted(), 8);
  EXPECT_NEAR(scaling_.latest().need, 90, 15);
}

}  // namespace
}  // namespace penstock::control
