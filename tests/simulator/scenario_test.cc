// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/scenario.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::simulator {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<Scenario> scenario = ParseScenario(text);
  EXPECT_EQ(scenario.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(scenario.status().message());
}

TEST(Scenario, ReadsTheClusterAndTheWorld) {
  const absl::StatusOr<Scenario> scenario = ParseScenario(R"(
# A comment.
dispatchers 3
workers 4 permits=3
trainers 5 ack=on_commit step=1ms..20ms save_every=7   # another one
dataset range 99
dispatcher heartbeat=500ms client_timeout=20s worker_timeout=5s snapshot_every=50 format=1
network delay=0.1ms..3ms slow=2%:50ms..500ms
disk sync=1ms..2ms
broken closed_is_finished
expect exact, ends, given_up<=20, finished within 90s
seeds 3..8
)");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->dispatchers, 3);
  EXPECT_EQ(scenario->workers, 4);
  EXPECT_EQ(scenario->permits, 3);
  EXPECT_EQ(scenario->trainers, 5);
  EXPECT_EQ(scenario->ack, AckMode::kOnCommit);
  EXPECT_EQ(scenario->step.high, absl::Milliseconds(20));
  EXPECT_EQ(scenario->save_every, 7);
  EXPECT_EQ(scenario->elements, 99);
  EXPECT_FALSE(scenario->map);
  EXPECT_EQ(scenario->heartbeat, absl::Milliseconds(500));
  EXPECT_EQ(scenario->client_timeout, absl::Seconds(20));
  EXPECT_EQ(scenario->snapshot_records, 50);
  EXPECT_EQ(scenario->format, 1u);
  EXPECT_EQ(scenario->weather.delay.low, absl::Microseconds(100));
  EXPECT_DOUBLE_EQ(scenario->weather.slow, 0.02);
  EXPECT_EQ(scenario->weather.slow_delay.low, absl::Milliseconds(50));
  EXPECT_EQ(scenario->disk_sync.low, absl::Milliseconds(1));
  EXPECT_EQ(scenario->broken, protocol::Broken::kClosedIsFinished);
  EXPECT_EQ(scenario->finished_within, absl::Seconds(90));
  EXPECT_EQ(scenario->given_up, 20);
  EXPECT_EQ(scenario->first_seed, 3u);
  EXPECT_EQ(scenario->last_seed, 8u);
}

TEST(Scenario, ReadsNamespaces) {
  const absl::StatusOr<Scenario> scenario = ParseScenario(R"(
namespace a max_clients=2 max_worker_percent=50
namespace b max_partitions=3
job one namespace=a weight=2
job two
at 1s finalise upgrade
calm at 2s
)");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->namespaces.at("a").clients, 2);
  EXPECT_EQ(scenario->namespaces.at("a").worker_percent, 50);
  EXPECT_EQ(scenario->namespaces.at("b").partitions, 3);
  EXPECT_EQ(scenario->jobs[0].name_space, "a");
  EXPECT_EQ(scenario->jobs[1].name_space, "");
  EXPECT_EQ(scenario->rules[0].faults[0].kind, Fault::Kind::kFinalise);
  EXPECT_EQ(scenario->rules[0].faults[0].name, "finalise upgrade");
}

TEST(Scenario, RefusesLimitsForJobsThatNeedAllTrainers) {
  EXPECT_THAT(ErrorOf("namespace a max_clients=1\njob one read=rounds namespace=a"),
              HasSubstr("job one: jobs in rounds and in an order need"));
  EXPECT_THAT(ErrorOf("namespace"), HasSubstr("a namespace needs a name"));
}

TEST(Scenario, ReadsFaults) {
  const absl::StatusOr<Scenario> scenario = ParseScenario(R"(
at 2s crash dispatcher power_loss back=1s..8s
at 2s..3s crash worker 1 back=never
every 5s..20s one of: pause worker 1s..12s | cut trainer 2 worker both 3s..20s | jump clock trainer -1h | join trainer
calm at 60s
)");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  ASSERT_EQ(scenario->rules.size(), 3u);
  EXPECT_EQ(scenario->calm, absl::Seconds(60));
  const Fault& first = scenario->rules[0].faults.front();
  EXPECT_TRUE(first.power_loss);
  ASSERT_TRUE(first.back.has_value());
  EXPECT_EQ(first.back->high, absl::Seconds(8));
  const Fault& second = scenario->rules[1].faults.front();
  EXPECT_EQ(second.target.number, 1);
  EXPECT_FALSE(second.back.has_value());
  const FaultRule& third = scenario->rules[2];
  EXPECT_TRUE(third.repeats);
  ASSERT_EQ(third.faults.size(), 4u);
  EXPECT_EQ(third.faults[1].target.number, 2);
  EXPECT_EQ(third.faults[1].other.kind, RoleKind::kWorker);
  EXPECT_TRUE(third.faults[1].both_ways);
  EXPECT_EQ(third.faults[2].time.low, -absl::Hours(1));
  EXPECT_EQ(third.faults[3].kind, Fault::Kind::kJoin);
}

TEST(Scenario, ReadsFaultsOfDispatchersAndEtcd) {
  const absl::StatusOr<Scenario> scenario = ParseScenario(R"(
dispatchers 2
at 2s crash dispatcher 2 back=1s
at 3s cut dispatcher etcd both 3s..20s
at 4s pause dispatcher 60s
at 5s leave dispatcher back=1s
calm at 70s
)");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->rules[0].faults[0].target.number, 2);
  EXPECT_EQ(scenario->rules[1].faults[0].other.kind, RoleKind::kEtcd);
  EXPECT_EQ(scenario->rules[1].faults[0].name, "cut dispatcher etcd both");
  EXPECT_FALSE(scenario->rules[2].faults[0].target.number.has_value());
  EXPECT_EQ(scenario->rules[3].faults[0].kind, Fault::Kind::kLeave);
}

TEST(Scenario, ReadsClocksAndAFullDisk) {
  const absl::StatusOr<Scenario> scenario = ParseScenario(
      "clocks skew=-30m..100h drift=-200ppm..50ppm\nat 1s fill disk 2s..3s\ncalm at 9s");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->clock_skew.low, -absl::Minutes(30));
  EXPECT_EQ(scenario->clock_skew.high, absl::Hours(100));
  EXPECT_EQ(scenario->clock_drift.low_ppm, -200);
  EXPECT_EQ(scenario->clock_drift.high_ppm, 50);
  const Fault& fault = scenario->rules.front().faults.front();
  EXPECT_EQ(fault.kind, Fault::Kind::kFillDisk);
  EXPECT_EQ(fault.time.high, absl::Seconds(3));
}

TEST(Scenario, ReadsJobs) {
  const absl::StatusOr<Scenario> scenario = ParseScenario(R"(
trainers 2 ack=on_commit step=1ms..2ms
dataset range 99
job shared
job shared trainers=3 step=30ms
job static mode=data elements=7 repetitions=2 ack=on_delivery
job alone unnamed read=fair permits=40 outstanding=8
job ranks read=rounds trainers=4
job ordered read=order trainers=1
job many copies=3 elements=6
)");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const std::vector<JobPlan> jobs = JobsOf(*scenario);
  ASSERT_EQ(jobs.size(), 8u);
  EXPECT_EQ(jobs[0].name, "shared");
  EXPECT_EQ(jobs[0].ack, AckMode::kOnCommit);
  EXPECT_EQ(jobs[0].elements, 99);
  EXPECT_EQ(jobs[0].trainers(), 5);
  EXPECT_EQ(jobs[0].groups[0].step.high, absl::Milliseconds(2));
  EXPECT_EQ(jobs[0].groups[1].step.high, absl::Milliseconds(30));
  EXPECT_FALSE(jobs[0].has_consumers());
  EXPECT_EQ(jobs[1].mode, ShardingPolicy::kData);
  EXPECT_EQ(jobs[1].elements, 7);
  EXPECT_EQ(jobs[1].repetitions, 2);
  EXPECT_EQ(jobs[1].ack, AckMode::kOnDelivery);
  EXPECT_FALSE(jobs[2].named);
  EXPECT_EQ(jobs[2].reading, Reading::kFair);
  EXPECT_EQ(jobs[2].permits, 40);
  EXPECT_EQ(jobs[2].outstanding, 8);
  EXPECT_TRUE(jobs[3].has_consumers());
  EXPECT_FALSE(jobs[4].has_consumers());
  EXPECT_EQ(jobs[5].name, "many1");
  EXPECT_EQ(jobs[7].name, "many3");
  EXPECT_EQ(jobs[7].elements, 6);
}

TEST(Scenario, HasOneJobIfNoneIsNamed) {
  const Scenario scenario = ParseScenario("trainers 3\ndataset range 5").value();
  ASSERT_EQ(JobsOf(scenario).size(), 1u);
  EXPECT_EQ(JobsOf(scenario)[0].trainers(), 3);
  EXPECT_EQ(JobsOf(scenario)[0].elements, 5);
}

TEST(Scenario, ReadsDatasets) {
  const std::vector<JobPlan> jobs = JobsOf(ParseScenario(R"(
dataset range 90 map files=4 shuffle=10 repeat=3
job a
job b elements=7 shuffle=20 repeat=2
)")
                                               .value());
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].files, 4);
  EXPECT_EQ(jobs[0].shuffle, 10);
  EXPECT_EQ(jobs[0].repeat, 3);
  EXPECT_EQ(jobs[1].files, 4);
  EXPECT_EQ(jobs[1].elements, 7);
  EXPECT_EQ(jobs[1].shuffle, 20);
  EXPECT_EQ(jobs[1].repeat, 2);
}

TEST(Scenario, RefusesJobsThatCannotBe) {
  EXPECT_THAT(ErrorOf("job"), HasSubstr("a job needs a name"));
  EXPECT_THAT(ErrorOf("job a mode=file"), HasSubstr("needs 'files='"));
  EXPECT_THAT(ErrorOf("job a mode=files"),
              HasSubstr("data, dynamic, file, file_or_data, hint, off"));
  EXPECT_THAT(ErrorOf("job a mode=data shuffle=5"), HasSubstr("'shuffle' and 'repeat' are for"));
  EXPECT_THAT(ErrorOf("job a read=rounds repeat=2"), HasSubstr("'shuffle' and 'repeat' are for"));
  EXPECT_THAT(ErrorOf("job a read=all"), HasSubstr("any, cache, fair, order, rounds"));
  EXPECT_THAT(ErrorOf("job a\njob a elements=5"), HasSubstr("is not one of: step, trainers"));
  EXPECT_THAT(ErrorOf("job a read=cache"), HasSubstr("needs 'mode=off'"));
  EXPECT_THAT(ErrorOf("job a read=cache mode=off ack=on_commit"), HasSubstr("keeps no history"));
  EXPECT_THAT(ErrorOf("job a read=order mode=data"), HasSubstr("mode=dynamic"));
  EXPECT_THAT(ErrorOf("job a read=rounds repetitions=2"), HasSubstr("without consumers"));
  EXPECT_THAT(ErrorOf("job a unnamed read=rounds"), HasSubstr("'unnamed' is for"));
  EXPECT_THAT(ErrorOf("job a read=rounds\njob a"), HasSubstr("are one group"));
}

TEST(Scenario, NamesTheLineAndWhatMayStandThere) {
  EXPECT_EQ(ErrorOf("workers 3\nwrokers 3"),
            "line 2: 'wrokers' is not one of: at, broken, calm, clocks, dataset, disk, dispatcher, "
            "dispatchers, every, "
            "expect, job, namespace, network, seeds, trainers, workers");
  EXPECT_THAT(ErrorOf("workers none"), HasSubstr("'none' is not a number of 1 or more"));
  EXPECT_THAT(ErrorOf("workers 3 permit=2"), HasSubstr("is not one of: permits"));
  EXPECT_THAT(ErrorOf("network repeat=1%"), HasSubstr("is not one of: delay, slow"));
  EXPECT_THAT(ErrorOf("network slow=2:1s"), HasSubstr("such as 2%:50ms..500ms"));
  EXPECT_THAT(ErrorOf("trainers 2 step=5ms..1ms"), HasSubstr("ends before it begins"));
  EXPECT_THAT(ErrorOf("trainers 2 ack=never"), HasSubstr("on_delivery, on_commit"));
  EXPECT_THAT(ErrorOf("dataset files"), HasSubstr("is not one of: range"));
  EXPECT_THAT(ErrorOf("dispatcher format=9"),
              HasSubstr("is not a format of the journal from 1 to"));
  EXPECT_THAT(ErrorOf("expect exact, given_up<=many, finished within 1s"),
              HasSubstr("'many' is not a number of 1 or more"));
  EXPECT_THAT(ErrorOf("seeds 5..1"), HasSubstr("such as 1..200"));
  EXPECT_THAT(ErrorOf("seeds 1..5 6"), HasSubstr("'6' is more than the statement takes"));
}

TEST(Scenario, RefusesFaultsThatItCannotDo) {
  EXPECT_THAT(ErrorOf("at 1s melt worker"), HasSubstr("is not one of: break, crash, cut"));
  EXPECT_THAT(ErrorOf("at 1s crash leader"), HasSubstr("dispatcher, etcd, trainer, worker"));
  EXPECT_THAT(ErrorOf("at 1s drain trainer"), HasSubstr("'drain' is for workers"));
  EXPECT_THAT(ErrorOf("at 1s join dispatcher"), HasSubstr("workers and trainers"));
  EXPECT_THAT(ErrorOf("at 1s join etcd"), HasSubstr("workers and trainers"));
  EXPECT_THAT(ErrorOf("at 1s crash worker power_loss"), HasSubstr("for the dispatcher"));
  EXPECT_THAT(ErrorOf("at 1s fill worker 1s"), HasSubstr("is not one of: disk"));
  EXPECT_THAT(ErrorOf("clocks skew=-2h..1h"), HasSubstr("must be -1h or more"));
  EXPECT_THAT(ErrorOf("clocks drift=5ppm..1ppm"), HasSubstr("such as -200ppm..200ppm"));
  EXPECT_THAT(ErrorOf("clocks drift=1..2"), HasSubstr("such as -200ppm..200ppm"));
  EXPECT_THAT(ErrorOf("clocks drift=0ppm..900000ppm"), HasSubstr("at most 100000ppm"));
  EXPECT_THAT(ErrorOf("every 0s crash worker"), HasSubstr("must be positive"));
  EXPECT_THAT(ErrorOf("at 1s crash worker"), HasSubstr("calm at TIME"));
}

TEST(Scenario, NamesAFileThatCannotBeRead) {
  const absl::Status status = ReadScenario("/nowhere/a.scenario").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/a.scenario"));
}

}  // namespace
}  // namespace penstock::simulator
