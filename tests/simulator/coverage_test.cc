// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/coverage.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "control/journal/changes_proto.h"
#include "control/proto/control.pb.h"
#include "control/state/state.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/run.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

TEST(Coverage, CountsVariantsOfMessages) {
  control::wire::WorkerUp message;
  message.mutable_drain();
  Coverage coverage;
  coverage.OnMessage(message);
  coverage.OnMessage(message);
  coverage.OnMessage(control::wire::ClientDown());
  EXPECT_THAT(coverage.counts(),
              ElementsAre(Pair("message ClientDown none", 1), Pair("message WorkerUp drain", 2)));
}

TEST(Coverage, CountsVariantsOfChanges) {
  const absl::StatusOr<std::string> record = control::EncodeChanges(
      {control::WorkerGone{WorkerId(3)},
       control::IterationAltered{IterationId(1), protocol::PartitionOpened{PartitionId(1)}}},
      control::State());
  ASSERT_TRUE(record.ok()) << record.status();
  Coverage coverage;
  coverage.OnRecord(*record);
  EXPECT_THAT(coverage.counts(), ElementsAre(Pair("change iteration_altered partition_opened", 1),
                                             Pair("change worker_gone", 1)));
}

TEST(Coverage, CountsTheStatusesOfRefusals) {
  Coverage coverage;
  coverage.OnRefused("RestoreJob", absl::FailedPreconditionError("no"));
  EXPECT_THAT(coverage.counts(), ElementsAre(Pair("refusal RestoreJob FAILED_PRECONDITION", 1)));
}

TEST(Coverage, CountsFaultsByThePhaseOfTheJob) {
  Coverage coverage;
  coverage.OnFault("crash worker", Shadow());
  EXPECT_THAT(coverage.counts(), ElementsAre(Pair("fault crash worker (no job)", 1)));
  EXPECT_THAT(KnownFaultStates({"crash worker"}),
              IsSupersetOf({"fault crash worker (no job)", "fault crash worker (reading)",
                            "fault crash worker (finished)"}));
}

TEST(Coverage, AddsTheCountsOfAnother) {
  Coverage sum, other;
  sum.Saw("event a");
  other.Saw("event a", 2);
  other.Saw("event b");
  sum.Add(other);
  EXPECT_THAT(sum.counts(), ElementsAre(Pair("event a", 3), Pair("event b", 1)));
}

TEST(Coverage, TheTableHasWhatWasSeenAndWhatNever) {
  Coverage coverage;
  coverage.Saw("event lost", 12);
  EXPECT_EQ(coverage.Table({"event lost", "event cut", "call GetDataset"}),
            "          12  event lost\n"
            "       never  call GetDataset\n"
            "       never  event cut\n"
            "1 states seen; 2 of 3 known states never seen\n");
}

TEST(Coverage, KnowsTheVariantsThatThisReleaseWrites) {
  const std::vector<std::string> known = KnownStates();
  EXPECT_THAT(known, IsSupersetOf({"message ClientUp hello", "message ClientDown membership",
                                   "message WorkerUp split_request", "message WorkerDown assign",
                                   "change life_begun", "change iteration_altered reader_ended",
                                   "call GetOrCreateJob", "event lost"}));
  EXPECT_THAT(known, Not(Contains("change term_raised")));
  EXPECT_EQ(std::set<std::string>(known.begin(), known.end()).size(), known.size());
}

// Finds the names where the dispatcher logs an event. Some calls choose between two names.
TEST(Coverage, KnowsTheEventsOfTheDispatcher) {
  const std::regex logs(
      R"rx((?:Log|Audit|Note|Write)\(\s*\{?(?:[^";()]*\?\s*"([a-z_]+)"\s*:)?\s*"([a-z_]+)")rx");
  std::set<std::string> names;
  for (const char* folder : {"dispatcher", "leadership"}) {
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(PENSTOCK_CONTROL) / folder)) {
      if (file.path().extension() != ".cc") continue;
      std::ifstream in(file.path());
      const std::string text((std::istreambuf_iterator<char>(in)), {});
      for (std::sregex_iterator at(text.begin(), text.end(), logs), end; at != end; ++at) {
        names.insert((*at)[2]);
        if ((*at)[1].matched) names.insert((*at)[1]);
      }
    }
  }
  EXPECT_THAT(KnownEvents(), testing::ElementsAreArray(names));
}

TEST(Coverage, ARunFillsIt) {
  const Scenario scenario = ParseScenario(R"(
workers 2
trainers 1 step=1ms..5ms
dataset range 100
at 0s pause worker 100ms
calm at 1s
)")
                                .value();
  const absl::StatusOr<Outcome> outcome = RunScenario(scenario, 1);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(
      outcome->coverage.counts(),
      AllOf(Contains(Key("message WorkerUp hello")), Contains(Key("message ClientDown welcome")),
            Contains(Key("call GetOrCreateJob")), Contains(Key("change iteration_altered closed")),
            Contains(Pair("event joined", 2)), Contains(Pair("fault pause worker (no job)", 1))));
}

}  // namespace
}  // namespace penstock::simulator
