// SPDX-License-Identifier: Apache-2.0
// Invariants of a job that do not hold: that job ends with a named error, and the others go on.
#include <new>
#include <stdexcept>

#include "control/dispatcher/transaction.h"
#include "control/protocol/invariant.h"
#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

class InvariantsTest : public CoreTest {
 protected:
  void SetUp() override {
    Start();
    const std::string dataset = Register(1);
    broken_ = Job("broken", dataset, {.mode = ShardingPolicy::kDynamic});
    sound_ = Job("sound", dataset, {.mode = ShardingPolicy::kDynamic});
    worker_ = Work(1);
    of_broken_ = Come(broken_, 0, 1);
    of_sound_ = Come(sound_, 0, 2);
    ASSERT_TRUE(of_broken_.inbox->Take<Welcome>().has_value());
    ASSERT_TRUE(of_sound_.inbox->Take<Welcome>().has_value());
    iteration_ = recovered_.FindIteration(broken_.job, 0)->id;
  }
  // No reader has that number, so that nothing can follow from its end.
  void BreakIt() {
    Transaction txn(*core_);
    txn.Guard([&] {
      txn.Apply(IterationAltered{iteration_, protocol::ReaderEnded{ClientId(99)}});
    });
  }
  void ExpectOnlyThatOneEnded() {
    ASSERT_TRUE(of_broken_.inbox->finished.has_value());
    EXPECT_EQ(of_broken_.inbox->finished->code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(of_broken_.inbox->finished->message()), HasSubstr("impossible state"));
    EXPECT_TRUE(worker_.inbox->Take<Unassign>().has_value());
    // A reader that comes back gets the same error, and the other job is read as before.
    const Reader back = Come(broken_, 0, 1, std::nullopt, 2);
    ASSERT_TRUE(back.inbox->finished.has_value());
    EXPECT_EQ(back.inbox->finished->code(), absl::StatusCode::kInternal);
    EXPECT_FALSE(of_sound_.inbox->finished.has_value());
    EXPECT_TRUE(Come(sound_, 0, 3).inbox->Take<Welcome>().has_value());
    Pass(absl::Seconds(5));
    // The same holds after a restart.
    EXPECT_TRUE(recovered_.FindIteration(broken_.job, 0)->failure.has_value());
    EXPECT_FALSE(recovered_.FindIteration(sound_.job, 0)->failure.has_value());
  }

  JobAnswer broken_, sound_;
  Worker worker_;
  Reader of_broken_, of_sound_;
  IterationId iteration_;
};

TEST_F(InvariantsTest, AChangeThatDoesNotFitEndsItsJobAlone) {
  BreakIt();
  ExpectOnlyThatOneEnded();
}

TEST_F(InvariantsTest, AFaultThatTheProtocolFindsEndsOnlyItsJob) {
  {
    Transaction txn(*core_);
    txn.Guard([&] {
      txn.GetContext(iteration_);
      PENSTOCK_INVARIANT(1 + 1 == 3);
    });
  }
  EXPECT_THAT(std::string(of_broken_.inbox->finished->message()), HasSubstr("1 + 1 == 3"));
  ExpectOnlyThatOneEnded();
}

TEST_F(InvariantsTest, SoDoesAnException) {
  {
    Transaction txn(*core_);
    txn.Guard([&] {
      txn.GetContext(iteration_);
      throw std::out_of_range("map::at");
    });
  }
  ExpectOnlyThatOneEnded();
}

using InvariantsDeathTest = InvariantsTest;

TEST_F(InvariantsDeathTest, AFaultOutsideOfJobsEndsTheDispatcher) {
  EXPECT_DEATH(
      {
        Transaction txn(*core_);
        txn.Guard([&] { txn.Apply(WorkerDraining{WorkerId(99)}); });
      },
      "does not hold");
}

TEST_F(InvariantsDeathTest, SoDoesWantOfMemory) {
  EXPECT_DEATH(
      {
        try {
          Transaction txn(*core_);
          txn.Guard([&] {
            txn.GetContext(iteration_);
            throw std::bad_alloc();
          });
        } catch (const std::bad_alloc&) {
        }
      },
      "memory");
}

TEST(Invariant, OutsideADispatcherEndsTheProcess) {
  EXPECT_DEATH(PENSTOCK_INVARIANT(1 + 1 == 3), "does not hold: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace penstock::control
