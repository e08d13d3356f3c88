// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/shadow.h"

#include "control/journal/changes_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::simulator {
namespace {

using control::Change;
using control::EncodeState;
using control::Recovered;
using control::State;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A dispatcher's state and the records that make it.
class ShadowTest : public testing::Test {
 protected:
  // Applies the changes, and appends them as the next record.
  void Append(const std::vector<Change>& changes) {
    for (const Change& change : changes) state_.Apply(change);
    records_.push_back(control::EncodeChanges(changes, state_).value());
    shadow_.OnAppended(records_.size(), records_.back());
  }
  void AppendWorker() {
    control::WorkerRecord worker;
    worker.id = WorkerId(records_.size() + 1);
    worker.address = "host:1";
    Append({control::WorkerRegistered{worker}});
  }
  // Returns a journal without a snapshot, with the first `count` records.
  Recovered Journal(size_t count) const {
    Recovered recovered;
    for (size_t i = 0; i < count; ++i) recovered.records.push_back({i + 1, records_[i]});
    return recovered;
  }
  static std::string ErrorOf(const absl::Status& status) {
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }

  State state_;
  std::vector<std::string> records_;
  Shadow shadow_;
};

TEST_F(ShadowTest, AcceptsARestartWithARecordThatWasNotReported) {
  AppendWorker();
  AppendWorker();
  EXPECT_TRUE(shadow_.OnDurable(1).ok());
  EXPECT_TRUE(shadow_.OnRecovered(Journal(2)).ok());
  EXPECT_EQ(shadow_.sequence(), 2u);
}

TEST_F(ShadowTest, ReportsARecordThatIsLost) {
  AppendWorker();
  AppendWorker();
  EXPECT_TRUE(shadow_.OnDurable(2).ok());
  EXPECT_THAT(ErrorOf(shadow_.OnRecovered(Journal(1))), HasSubstr("lost records"));
}

TEST_F(ShadowTest, ReportsAnUnreportedRecordThatIsNotTheAppendedOne) {
  AppendWorker();
  AppendWorker();
  EXPECT_TRUE(shadow_.OnDurable(1).ok());
  Recovered changed = Journal(2);
  changed.records[1].bytes = records_[0];
  EXPECT_THAT(ErrorOf(shadow_.OnRecovered(changed)), HasSubstr("that no dispatcher has appended"));
}

TEST_F(ShadowTest, ReportsARecordBeyondTheAppendedOnes) {
  AppendWorker();
  EXPECT_TRUE(shadow_.OnDurable(1).ok());
  Recovered more = Journal(1);
  more.records.push_back({2, records_[0]});
  EXPECT_THAT(ErrorOf(shadow_.OnRecovered(more)), HasSubstr("that no dispatcher has appended"));
}

TEST_F(ShadowTest, ReportsADurableRecordThatWasNotAppended) {
  AppendWorker();
  EXPECT_THAT(ErrorOf(shadow_.OnDurable(2)), HasSubstr("the last record that was appended is 1"));
}

TEST_F(ShadowTest, ComparesTheDispatchersOwnState) {
  AppendWorker();
  EXPECT_TRUE(shadow_.OnDurable(1).ok());
  EXPECT_TRUE(shadow_.OnOwnState(1, EncodeState(state_).value()).ok());
  State other = state_;
  other.Apply(control::WorkerGone{WorkerId(1)});
  EXPECT_THAT(ErrorOf(shadow_.OnOwnState(1, EncodeState(other).value())),
              HasSubstr("own state at record 1"));
}

TEST_F(ShadowTest, ComparesAnOwnStateAfterThatOfALaterRecord) {
  const State first = state_;
  AppendWorker();
  EXPECT_TRUE(shadow_.OnDurable(1).ok());
  EXPECT_TRUE(shadow_.OnOwnState(1, EncodeState(state_).value()).ok());
  EXPECT_TRUE(shadow_.OnOwnState(0, EncodeState(first).value()).ok());  // of a snapshot
}

TEST_F(ShadowTest, ComparesTheOwnStateOnceItsRecordIsDurable) {
  AppendWorker();
  State other = state_;
  other.Apply(control::WorkerGone{WorkerId(1)});
  EXPECT_TRUE(shadow_.OnOwnState(1, EncodeState(other).value()).ok());
  EXPECT_THAT(ErrorOf(shadow_.OnDurable(1)), HasSubstr("own state at record 1"));
}

TEST_F(ShadowTest, ForgetsTheOwnStateOfALostRecord) {
  AppendWorker();
  State other = state_;
  other.Apply(control::WorkerGone{WorkerId(1)});
  EXPECT_TRUE(shadow_.OnOwnState(1, EncodeState(other).value()).ok());
  EXPECT_TRUE(shadow_.OnRecovered({}).ok());
  shadow_.OnAppended(1, records_[0]);
  EXPECT_TRUE(shadow_.OnDurable(1).ok());
}

// A snapshot is complete some records after the one that it is of.
TEST_F(ShadowTest, ComparesAnOwnStateFromBeforeALaterRecord) {
  AppendWorker();
  const std::vector<std::string> first = EncodeState(state_).value();
  AppendWorker();
  EXPECT_TRUE(shadow_.OnDurable(2).ok());
  const std::vector<std::string> both = EncodeState(state_).value();
  AppendWorker();
  EXPECT_TRUE(shadow_.OnDurable(3).ok());
  EXPECT_TRUE(shadow_.OnOwnState(1, first).ok());
  EXPECT_THAT(ErrorOf(shadow_.OnOwnState(2, first)), HasSubstr("own state at record 2"));
  EXPECT_TRUE(shadow_.OnOwnState(2, both).ok());
}

TEST_F(ShadowTest, AReplacedLeaderMayGetTheReportOfARecordThatItsSuccessorFound) {
  ASSERT_TRUE(shadow_.OnRecovered({}, /*life=*/3).ok());
  AppendWorker();
  AppendWorker();
  EXPECT_TRUE(shadow_.IsWriter(3));
  ASSERT_TRUE(shadow_.OnRecovered(Journal(1), /*life=*/5).ok());
  EXPECT_FALSE(shadow_.IsWriter(3));
  EXPECT_TRUE(shadow_.OnLateReport(3, 1).ok());
  EXPECT_THAT(ErrorOf(shadow_.OnLateReport(3, 2)), HasSubstr("found only the records up to 1"));
}

// A leader may be replaced before it has read the journal.
TEST_F(ShadowTest, ComparesNothingThatALeaderReadsAfterItsSuccessor) {
  ASSERT_TRUE(shadow_.OnRecovered({}, /*life=*/5).ok());
  AppendWorker();
  ASSERT_TRUE(shadow_.OnDurable(1).ok());
  EXPECT_TRUE(shadow_.OnRecovered({}, /*life=*/3).ok());
  EXPECT_TRUE(shadow_.IsWriter(5));
  EXPECT_FALSE(shadow_.OnLateReport(3, 1).ok());
}

TEST_F(ShadowTest, NotesSessionsCommitsAndTheEnd) {
  namespace p = protocol;
  const IterationId it(1);
  const auto altered = [&](p::IterationChange change) {
    return control::IterationAltered{it, std::move(change)};
  };
  control::DatasetRecord record;
  record.id = "1000";
  record.definition = "definition";
  record.edition = 8;
  control::JobRecord job;
  job.id = JobId(1);
  job.name = "job";
  job.nonce = "0123456789abcdef";
  job.dataset = std::make_shared<const control::DatasetRecord>(record);
  job.terms.ack_mode = AckMode::kOnCommit;
  const PartitionId one(1);
  const ClientId client(7);
  Append({control::DatasetRegistered{job.dataset}, control::JobCreated{job},
          control::IterationCreated{it, job.id, 0}, altered(p::PartitionOpened{one}),
          altered(p::ReaderJoined{client, Incarnation(1)})});
  Append({altered(p::ReaderCommitted{client, one, IndexSet::Of(0, 3)})});
  Append({altered(p::ReaderReplaced{client, Incarnation(2), {IndexSet::Of(0, 3)}})});
  Append({altered(p::IterationClosed{{3}}), altered(p::ReaderEnded{client, {}})});
  Append({altered(p::ReaderGone{client, p::ReaderStatus::kExpired})});
  ASSERT_TRUE(shadow_.OnDurable(5).ok());
  const CommittedIteration& its = shadow_.iterations().at(it);
  const CommittedIteration::Session& session = its.sessions.at(client);
  EXPECT_THAT(session.began, ElementsAre(1, 3));
  EXPECT_THAT(session.lost, ElementsAre(3, 5));
  EXPECT_EQ(session.told, 4);
  EXPECT_EQ(its.closed_at, 4);
  EXPECT_TRUE(its.commits_states);
  EXPECT_EQ(its.commits.front().record, 2u);
  EXPECT_EQ(its.commits.front().added, IndexSet::Of(0, 3));
  // The state forgets what readers have committed, and then the iteration.
  Append({altered(p::IterationFinished{}), control::IterationRetired{it}});
  ASSERT_TRUE(shadow_.OnDurable(6).ok());
  const CommittedIteration& retired = shadow_.iterations().at(it);
  EXPECT_TRUE(retired.finished);
  EXPECT_EQ(retired.readers.front().committed, p::ReceivedSets{IndexSet::Of(0, 3)});
}

}  // namespace
}  // namespace penstock::simulator
