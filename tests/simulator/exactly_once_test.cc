// SPDX-License-Identifier: Apache-2.0
// Each test plants a wrong history or a wrong record, and expects a report that names the fault.
#include "tools/simulator/check/exactly_once.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::simulator {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr IterationId kIteration(1);
constexpr PartitionId kPartition(1);
constexpr int64_t kElements = 6;

// One partition, whose element at index i has the value i. Tests number the records as they like.
class ExactlyOnce : public testing::Test {
 protected:
  ExactlyOnce() { its_.ends = {kElements}; }

  // A trainer whose reader joined at record 1, and which got the elements [from, to) at `record`.
  History& AddTrainer(uint64_t client, Index from, Index to, uint64_t record = 2) {
    History& history = histories_.emplace_back();
    history.name = absl::StrCat("trainer", client);
    history.client = ClientId(client);
    its_.sessions[ClientId(client)].began = {1};
    for (Index i = from; i < to; ++i) Get(history, i, record);
    return history;
  }
  static void Get(History& history, Index index, uint64_t record) {
    history.got.push_back({{kIteration, kPartition, index},
                           index,
                           absl::Seconds(static_cast<int64_t>(record)),
                           record});
  }
  void Commit(uint64_t client, Index from, Index to, uint64_t record = 3) {
    const IndexSet added = IndexSet::Of(from, to);
    its_.commits.push_back({record, ClientId(client), kPartition, added});
    for (CommittedIteration::Reader& reader : its_.readers) {
      if (reader.client == ClientId(client)) return reader.committed.Add(kPartition, added);
    }
    its_.readers.push_back({ClientId(client), {added}});
  }
  void Lose(uint64_t client, uint64_t record) {
    its_.sessions[ClientId(client)].lost.push_back(record);
  }
  static void End(History& history) { history.ended = absl::Seconds(100); }
  static void Die(History& history) { history.gone = absl::Seconds(100); }

  Findings Check(int64_t given_up = 0) {
    return CheckExactlyOnce(histories_, {{kIteration, its_}},
                            {kElements, [](int64_t index) { return index; }, given_up});
  }
  std::vector<std::string> Violations() { return Check().violations; }

  Histories histories_;
  CommittedIteration its_;
};

TEST_F(ExactlyOnce, AcceptsHistoriesThatAreCommitted) {
  End(AddTrainer(1, 0, 4));
  Die(AddTrainer(2, 4, 6));
  Commit(1, 0, 4);
  Commit(2, 4, 6);
  const Findings findings = Check();
  EXPECT_THAT(findings.violations, IsEmpty());
  EXPECT_EQ(findings.elements, kElements);
  EXPECT_EQ(findings.given_up, 0);
}

// The pass has the elements 0, 1 and 2 twice.
TEST_F(ExactlyOnce, CountsTheCopiesOfAnElement) {
  History& history = AddTrainer(1, 0, kElements);
  for (Got& got : history.got) got.value = got.key.index % 3;
  End(history);
  Commit(1, 0, kElements);
  const auto check = [&] {
    return CheckExactlyOnce(histories_, {{kIteration, its_}},
                            {3, [](int64_t index) { return index; }, 0, /*copies=*/2})
        .violations;
  };
  EXPECT_THAT(check(), IsEmpty());
  history.got.back().value = 1;
  EXPECT_THAT(check(), Contains(HasSubstr("both are the element 1")));
}

// --- What readers have committed ---

TEST_F(ExactlyOnce, ReportsAnElementThatADeadReaderCommittedAndNeverGot) {
  End(AddTrainer(1, 0, 4));
  Die(AddTrainer(2, 4, 5));
  Commit(1, 0, 4);
  Commit(2, 4, 6);
  EXPECT_THAT(Violations(), Contains(HasSubstr("never got: the reader of trainer2")));
}

TEST_F(ExactlyOnce, MatchesReadersByClientAndNotByWhatTheyHave) {
  End(AddTrainer(1, 0, 3));
  End(AddTrainer(2, 3, 6));
  Commit(2, 0, 3);  // exchanged: each has committed all that the other got
  Commit(1, 3, 6);
  EXPECT_THAT(Violations(), Contains(HasSubstr("never got: the reader of trainer1")));
}

TEST_F(ExactlyOnce, ReportsAReaderThatIsNoTrainer) {
  End(AddTrainer(1, 0, 4));
  Commit(1, 0, 4);
  Commit(9, 4, 6);
  EXPECT_THAT(Violations(), Contains(HasSubstr("foreign: client 9")));
}

TEST_F(ExactlyOnce, ReportsATrainerThatEndedWithAnElementThatIsNotDurable) {
  its_.commits_states = true;
  End(AddTrainer(1, 0, 6));
  Commit(1, 0, 5);
  EXPECT_THAT(Violations(), Contains(HasSubstr("not durable: trainer1 has ended")));
}

TEST_F(ExactlyOnce, ReportsATrainerThatEndedWithoutWhatItCommitted) {
  History& history = AddTrainer(1, 0, 6);
  history.ContinueFrom(5);
  Commit(1, 0, 6);
  End(history);
  EXPECT_THAT(Violations(), Contains(HasSubstr("not its own: trainer1 has ended")));
}

TEST_F(ExactlyOnce, ReportsADeadReaderWhoseCommitIsNoneOfItsStates) {
  its_.commits_states = true;
  End(AddTrainer(1, 3, 6, 6));
  Commit(1, 3, 6, 7);
  History& dead = AddTrainer(2, 0, 4);
  Lose(2, 5);
  Die(dead);
  Commit(2, 0, 3);
  dead.states = {2};
  dead.committed = 2;
  EXPECT_THAT(Violations(), Contains(HasSubstr("not a state: the reader of trainer2")));
  dead.states = {2, 3};  // the second one was stored, and its commit was not answered
  EXPECT_THAT(Violations(), IsEmpty());
  dead.states = {3, 4};  // a commit that was answered is missing
  dead.committed = 4;
  EXPECT_THAT(Violations(), Contains(HasSubstr("not a state")));
}

// --- Who owns an element ---

TEST_F(ExactlyOnce, ReportsAnElementThatADyingProcessGetsTwice) {
  History& history = AddTrainer(1, 0, 4);
  Get(history, 3, 2);
  history.ContinueFrom(3);
  for (Index i = 3; i < 6; ++i) Get(history, i, 5);
  Commit(1, 0, 6, 6);
  Lose(1, 4);
  its_.sessions[ClientId(1)].began.push_back(4);
  End(history);
  EXPECT_THAT(Violations(), Contains(HasSubstr("twice: trainer1")));
  history.twice.clear();
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ExactlyOnce, ReportsAnElementThatADyingProcessGetsAfterAnotherReaderOwnsIt) {
  End(AddTrainer(1, 0, 6, 2));
  Commit(1, 0, 6, 3);
  History& dying = AddTrainer(2, 5, 6, 4);
  Lose(2, 6);
  Die(dying);
  EXPECT_THAT(Violations(),
              Contains(HasSubstr("trainer2 got it at 4s, when it belonged to trainer1")));
}

TEST_F(ExactlyOnce, ReportsAnElementThatIsGivenAwayBeforeItsReaderIsGone) {
  History& dying = AddTrainer(1, 0, 1, 2);
  Lose(1, 6);
  Die(dying);
  End(AddTrainer(2, 0, 6, 4));
  Commit(2, 0, 6, 5);
  EXPECT_THAT(Violations(), Contains(HasSubstr("when it belonged to trainer1")));
  its_.sessions[ClientId(1)].lost = {3};
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(ExactlyOnce, KeepsACommittedElementForItsReaderAfterThatIsGone) {
  Die(AddTrainer(1, 0, 2, 2));
  Commit(1, 0, 2, 3);
  Lose(1, 4);
  History& dying = AddTrainer(2, 1, 2, 5);
  Lose(2, 6);
  Die(dying);
  End(AddTrainer(3, 2, 6, 5));
  Commit(3, 2, 6, 7);
  EXPECT_THAT(Violations(),
              Contains(HasSubstr("trainer2 got it at 5s, when it belonged to trainer1")));
}

TEST_F(ExactlyOnce, ReportsATrainerThatNoRecordKnows) {
  History& history = AddTrainer(1, 0, 6);
  End(history);
  Commit(1, 0, 6);
  its_.sessions.clear();
  EXPECT_THAT(Violations(), Contains(HasSubstr("is a reader in no durable record")));
}

// --- What may be given up ---

// Trainer 2 got elements 4 and 5, and died after the iteration had been closed at record 5.
class GivingUp : public ExactlyOnce {
 protected:
  GivingUp() {
    its_.commits_states = true;
    its_.closed_at = 5;
    End(AddTrainer(1, 0, 4));
    Commit(1, 0, 4, 7);
    its_.sessions[ClientId(1)].told = 5;
    Die(AddTrainer(2, 4, 6));
    Lose(2, 9);
  }
};

TEST_F(GivingUp, IsCountedAndNeedsAnExpectation) {
  EXPECT_EQ(Check(2).given_up, 2);
  EXPECT_THAT(Check(2).violations, IsEmpty());
  EXPECT_THAT(Check(1).violations,
              Contains(HasSubstr("given up: 2 elements, but the scenario allows 1")));
  EXPECT_THAT(Check(0).violations, Contains(HasSubstr("given up: 2 elements")));
}

TEST_F(GivingUp, IncludesElementsOfAReaderWhoseLeaseHasNotRunOut) {
  its_.sessions[ClientId(2)].lost.clear();
  EXPECT_THAT(Check(2).violations, IsEmpty());
}

TEST_F(GivingUp, NeedsCommitsOfStates) {
  its_.commits_states = false;
  EXPECT_THAT(Check(2).violations, Contains(HasSubstr("lost:")));
}

TEST_F(GivingUp, NeedsAnIterationThatIsNotFinished) {
  its_.finished = true;
  EXPECT_THAT(Check(2).violations, Contains(HasSubstr("lost:")));
}

TEST_F(GivingUp, NeedsADeathAfterTheEnd) {
  its_.sessions[ClientId(2)].lost = {4};
  EXPECT_THAT(Check(2).violations, Contains(HasSubstr("lost:")));
}

TEST_F(GivingUp, NeedsThatNobodyWasToldTheEndLater) {
  its_.sessions[ClientId(1)].told = 10;
  EXPECT_THAT(Check(2).violations, Contains(HasSubstr("lost:")));
}

TEST_F(GivingUp, NeedsThatNobodyCameLater) {
  History& late = histories_.emplace_back();
  late.name = "late";
  late.client = ClientId(3);
  late.connected = 8;  // was told the end while the reader was still alive
  End(late);
  EXPECT_THAT(Check(2).violations, IsEmpty());
  late.connected = 9;
  EXPECT_THAT(Check(2).violations, Contains(HasSubstr("lost:")));
}

}  // namespace
}  // namespace penstock::simulator
