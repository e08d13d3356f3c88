// SPDX-License-Identifier: Apache-2.0
// How long datasets and jobs stay when nobody reads them, and where that is shown.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class TimeToLive : public CoreTest {
 protected:
  std::vector<std::string> Jobs() const {
    std::vector<std::string> names;
    for (const JobStatus& job : Status().jobs) names.push_back(job.name);
    return names;
  }
  std::vector<std::string> Datasets() const {
    std::vector<std::string> ids;
    for (const DatasetStatus& dataset : Status().datasets) ids.push_back(dataset.dataset_id);
    return ids;
  }
  // Returns the fields of the last event of that name.
  std::vector<std::pair<std::string, std::string>> EventsNamed(const std::string& name) const {
    std::vector<std::pair<std::string, std::string>> fields;
    for (const Event& event : events_->All())
      if (event.name == name) fields = event.fields;
    return fields;
  }
};

TEST_F(TimeToLive, ADatasetGoesThatNoJobReadsForSoLong) {
  Start({.dataset_ttl = absl::Minutes(10)});
  const std::string read = Register(1), unread = Register(2);
  Job("job", read, {.mode = ShardingPolicy::kDynamic});
  Pass(absl::Minutes(9));
  const DispatcherStatus status = Status();
  EXPECT_EQ(status.datasets[0].jobs, 1);
  EXPECT_EQ(status.datasets[0].goes_in, absl::InfiniteDuration());
  EXPECT_EQ(status.datasets[1].jobs, 0);
  EXPECT_LE(status.datasets[1].goes_in, absl::Minutes(2));
  EXPECT_EQ(Register(2), unread);  // a client that asks for it is about to read it
  Pass(absl::Minutes(9));
  EXPECT_THAT(Datasets(), ElementsAre(read, unread));
  Pass(absl::Minutes(2));
  EXPECT_THAT(Datasets(), ElementsAre(read));
  EXPECT_THAT(EventsNamed("dataset_forgotten"), Contains(Pair("dataset", unread)));
  EXPECT_EQ(recovered_.datasets.size(), 1u);
}

TEST_F(TimeToLive, AJobThatMayOweElementsStaysByDefault) {
  for (const absl::Duration ttl : {absl::InfiniteDuration(), absl::Duration(absl::Minutes(20))}) {
    Start({.abandoned_job_ttl = ttl});
    const std::string dataset = Register(1);
    const JobAnswer committed =
        Job("committed", dataset, {.mode = ShardingPolicy::kOff, .ack_mode = AckMode::kOnCommit});
    const JobAnswer dynamic = Job("dynamic", dataset, {.mode = ShardingPolicy::kDynamic});
    Job("never read", dataset, {.mode = ShardingPolicy::kOff});
    const JobAnswer plain = Job("plain", dataset, {.mode = ShardingPolicy::kOff});
    for (const JobAnswer& job : {committed, dynamic, plain}) {
      Reader reader = Come(job, 0, 5);
      Go(reader);
    }
    Pass(absl::Minutes(10));
    EXPECT_THAT(Jobs(), ElementsAre("committed", "dynamic", "never read"));
    for (const JobStatus& job : Status().jobs) {
      EXPECT_GE(job.unread_for, absl::Minutes(9)) << job.name;
      EXPECT_EQ(job.goes_in, ttl - job.unread_for) << job.name;
    }
    Reader back = Come(dynamic, 0, 6);
    EXPECT_EQ(Status().jobs[1].unread_for, absl::ZeroDuration());
    Go(back);
    Pass(absl::Minutes(11));
    if (ttl == absl::InfiniteDuration()) {
      EXPECT_THAT(Jobs(), ElementsAre("committed", "dynamic", "never read"));
    } else {
      EXPECT_THAT(Jobs(), ElementsAre("dynamic"));
      Pass(absl::Minutes(10));
      EXPECT_THAT(Jobs(), IsEmpty());
      const Reader late = Come(committed, 0, 7);
      ASSERT_TRUE(late.inbox->finished.has_value());
      EXPECT_THAT(std::string(late.inbox->finished->message()), HasSubstr("abandoned_job_ttl"));
    }
  }
}

// Nothing is dropped without an event.
TEST_F(TimeToLive, UncommittedElementsOfAForgottenJobAreNamed) {
  Start({.abandoned_job_ttl = absl::Minutes(20)});
  const JobAnswer job =
      Job("job", Register(1), {.mode = ShardingPolicy::kOff, .ack_mode = AckMode::kOnCommit});
  const Worker worker = Work(1);
  const Reader reader = Come(job, 0, 5);
  const auto assign = worker.inbox->Take<Assign>();
  ASSERT_TRUE(assign.has_value());
  core_->OnMessage(worker.peer, Ended{assign->of, 9});
  core_->OnMessage(reader.peer, Report{{{.partition = PartitionId(1),
                                         .placement = assign->of.placement,
                                         .delivered = IndexSet::Of(0, 9)}}});
  core_->OnMessage(reader.peer, Commit{1, {{0, {{PartitionId(1), IndexSet::Of(0, 4)}}}}});
  core_->OnClosed(reader.peer);
  Pass(absl::Minutes(30));
  EXPECT_THAT(Jobs(), IsEmpty());
  EXPECT_THAT(EventsNamed("job_forgotten"),
              Contains(Pair("owed", "5 elements of repetition 0 not committed")));
}

// The trainer's own nodes held the last elements when it died, and no reader came after it.
TEST_F(TimeToLive, AbandonedElementsAreNamed) {
  Start();
  const JobAnswer job = Job("job", Register(1), {.mode = ShardingPolicy::kDynamic});
  const Worker worker = Work(1);
  const Reader reader = Come(job, 0, 5);
  const auto assign = worker.inbox->Take<Assign>();
  ASSERT_TRUE(assign.has_value());
  core_->OnMessage(worker.peer, Ended{assign->of, 9});
  core_->OnMessage(reader.peer, Report{{{.partition = PartitionId(1),
                                         .placement = assign->of.placement,
                                         .delivered = IndexSet::Of(0, 6),
                                         .received = IndexSet::Of(6, 9),
                                         .handed = IndexSet::Of(6, 9)}}});
  ASSERT_TRUE(reader.inbox->Take<End>().has_value());
  core_->OnClosed(reader.peer);
  Pass(absl::Minutes(4));
  EXPECT_THAT(EventsNamed("given_up"), IsEmpty()) << "somebody may come for them";
  Pass(absl::Minutes(3));
  EXPECT_THAT(EventsNamed("given_up"), Contains(Pair("job", "job")));
  EXPECT_THAT(EventsNamed("given_up"),
              Contains(Pair("owed", "3 elements of repetition 0 not committed")));
}

}  // namespace
}  // namespace penstock::control
