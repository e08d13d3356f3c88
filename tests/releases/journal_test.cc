// SPDX-License-Identifier: Apache-2.0
// Journals of earlier releases: each change, and the journal of a dispatcher that was killed.
#include "control/journal/journal.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "control/proto/journal.pb.h"
#include "control/state/format.h"
#include "gtest/gtest.h"
#include "tests/releases/later_release.h"
#include "tests/releases/recorded_changes.h"
#include "tests/releases/recording.h"

namespace penstock::control {
namespace {

namespace fs = std::filesystem;

TEST(ChangesOfReleases, ApplyAsTheyWereMade) {
  ASSERT_FALSE(RecordedReleases().empty());
  const std::vector<RecordedChange> changes = RecordedChanges();
  for (const std::string& release : RecordedReleases()) {
    State made;
    State read;
    for (const auto& [name, record] : ReadRecording(release + "/changes.txt")) {
      SCOPED_TRACE(absl::StrCat(release, " ", name));
      const auto expected =
          std::find_if(changes.begin(), changes.end(),
                       [&, &name = name](const auto& change) { return change.name == name; });
      ASSERT_NE(expected, changes.end());
      made.Apply(expected->change);
      const absl::Status applied = ApplyRecord(record, read);
      ASSERT_TRUE(applied.ok()) << applied << " " << DescribeRecord(record);
      EXPECT_EQ(EncodeState(read), EncodeState(made)) << DescribeRecord(record);
    }
    EXPECT_EQ(read.iterations, made.iterations);
    EXPECT_EQ(read.answers, made.answers);
  }
}

TEST(ChangesOfReleases, ContainEachKind) {
  std::set<size_t> kinds;
  std::set<size_t> of_iterations;
  State state;
  for (const auto& [name, change] : RecordedChanges()) {
    const absl::Status fits = Fits(state, change);
    ASSERT_TRUE(fits.ok()) << name << ": " << fits;
    state.Apply(change);
    kinds.insert(change.index());
    if (const auto* altered = std::get_if<IterationAltered>(&change)) {
      of_iterations.insert(altered->change.index());
    }
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Change>);
  EXPECT_EQ(of_iterations.size(), std::variant_size_v<protocol::IterationChange>);
}

// Returns the state in a copy of the release's journal. `recovered` gets its other content.
State StateOf(const std::string& release, Recovered& recovered) {
  const std::string copy = ::testing::TempDir() + "/journal_of_a_release";
  fs::remove_all(copy);
  fs::copy(release + "/journal", copy);
  auto journal = OpenSqliteJournal(copy);
  EXPECT_TRUE(journal.ok()) << journal.status();
  if (!journal.ok()) return {};
  recovered = (*journal)->TakeRecovered();
  absl::StatusOr<State> state = DecodeState(recovered.snapshot);
  EXPECT_TRUE(state.ok()) << state.status();
  if (!state.ok()) return {};
  for (const Recovered::Record& record : recovered.records) {
    const absl::Status applied = ApplyRecord(record.bytes, *state);
    EXPECT_TRUE(applied.ok()) << "record " << record.sequence << ": " << applied;
    if (!applied.ok()) return {};
  }
  return *std::move(state);
}

TEST(JournalsOfReleases, AreInTheFirstFormat) {
  for (const std::string& release : RecordedReleases()) {
    Recovered recovered;
    EXPECT_EQ(StateOf(release, recovered).format, kFirstFormat) << release;
  }
}

// --- A later release ---

TEST(JournalsOfALaterRelease, AreRefusedAndNameTheUpgrade) {
  const auto is_refused = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("start the newer release that wrote it: after `penstock "
                                    "upgrade finalise`, earlier releases cannot read the journal"),
              absl::string_view::npos)
        << status;
  };
  State state;
  wire::Changes changes;
  ASSERT_TRUE(changes.add_changes()->ParseFromString(later::Unknown()));
  is_refused(ApplyRecord(changes.SerializeAsString(), state));
  changes.Clear();
  changes.add_changes()->set_format_finalised(kNewestFormat + 1);
  is_refused(ApplyRecord(changes.SerializeAsString(), state));
  wire::Snapshot snapshot;
  snapshot.set_format(kNewestFormat + 1);
  is_refused(DecodeState({snapshot.SerializeAsString()}).status());
  EXPECT_TRUE(state.lives.empty());
  EXPECT_EQ(state.format, kFirstFormat);
}

int64_t CommittedOf(const IterationState& iteration) {
  int64_t committed = 0;
  for (size_t p = 1; p <= iteration.record.partitions.size(); ++p) {
    committed += protocol::CommittedIndices(iteration.record, PartitionId(p)).size();
  }
  return committed;
}

// record.py makes these jobs.
TEST(JournalsOfReleases, HaveTheirJobsAndCommits) {
  ASSERT_FALSE(RecordedReleases().empty());
  for (const std::string& release : RecordedReleases()) {
    SCOPED_TRACE(release);
    Recovered recovered;
    const State state = StateOf(release, recovered);
    EXPECT_GT(recovered.snapshot_sequence, 0u);
    EXPECT_FALSE(recovered.records.empty());
    EXPECT_EQ(state.lives.size(), 1u);
    EXPECT_EQ(state.workers.size(), 2u);
    ASSERT_NE(state.FindDataset("numbers"), nullptr);
    EXPECT_EQ(state.FindDataset("numbers")->summary.plan.at(0).files.size(), 6u);

    struct {
      const char* name;
      int64_t committed;
      AckMode ack_mode = AckMode::kOnCommit;
      int64_t num_consumers = 0;
    } const jobs[] = {{.name = "finished", .committed = 120, .ack_mode = AckMode::kOnDelivery},
                      {.name = "committed", .committed = 45},
                      {.name = "coordinated", .committed = 24, .num_consumers = 2},
                      {.name = "ranks", .committed = 0}};
    for (const auto& expected : jobs) {
      SCOPED_TRACE(expected.name);
      const JobRecord* job = state.FindJobByName(expected.name);
      ASSERT_NE(job, nullptr);
      EXPECT_EQ(job->dataset, state.FindDataset("numbers"));
      EXPECT_EQ(job->terms.mode, ShardingPolicy::kDynamic);
      EXPECT_EQ(job->terms.ack_mode, expected.ack_mode);
      EXPECT_EQ(job->terms.num_consumers, expected.num_consumers);
      EXPECT_EQ(state.IsOver(*job), job->name == "finished");
      std::optional<IterationState> iteration = state.FindPast(job->id, 0);
      if (const IterationState* present = state.FindIteration(job->id, 0)) iteration = *present;
      ASSERT_TRUE(iteration.has_value());
      EXPECT_FALSE(iteration->failure.has_value());
      EXPECT_EQ(CommittedOf(*iteration), expected.committed);
    }
  }
}

// Records this release (README.md).
TEST(ChangesOfReleases, DISABLED_Record) {
  const char* folder = std::getenv("PENSTOCK_RECORD_TO");
  ASSERT_NE(folder, nullptr);
  std::vector<NamedBytes> lines;
  State state;
  for (const auto& [name, change] : RecordedChanges()) {
    state.Apply(change);
    lines.emplace_back(name, EncodeChanges({change}, state).value());
  }
  WriteRecording(absl::StrCat(folder, "/changes.txt"), lines);
}

}  // namespace
}  // namespace penstock::control
