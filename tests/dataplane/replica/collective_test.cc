// SPDX-License-Identifier: Apache-2.0
// Checks of every host communicator: of threads and of connected processes.
#include "dataplane/replica/collective/collective.h"

#include <gmock/gmock.h>

#include "dataplane/replica/collective/rank_messages.h"
#include "tests/dataplane/replica/collectives.h"

namespace penstock::replica {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

class HostCollectives : public ::testing::TestWithParam<Collectives (*)(int)> {};
INSTANTIATE_TEST_SUITE_P(Of, HostCollectives,
                         ::testing::Values(&CollectiveOfThreads, &CollectiveOfConnections),
                         [](const auto& of) { return of.index == 0 ? "Threads" : "Connections"; });

TEST_P(HostCollectives, ReduceAndGatherInTheOrderOfRanks) {
  Collectives all = GetParam()(4);
  OnRanks(4, [&](int rank) {
    Collective& own = *all[static_cast<size_t>(rank)];
    EXPECT_EQ(own.rank(), rank);
    EXPECT_EQ(own.size(), 4);
    for (int round = 0; round < 50; ++round) {
      ASSERT_TRUE(own.Start(CollectiveOp::kSum, {rank, round}).ok());
      ASSERT_TRUE(own.Start(CollectiveOp::kMin, {rank, -rank}).ok());
      ASSERT_TRUE(own.Start(CollectiveOp::kMax, {rank * rank}).ok());
      EXPECT_THAT(own.Finish().value(), ElementsAre(6, 4 * round));
      EXPECT_THAT(own.Finish().value(), ElementsAre(0, -3));
      EXPECT_THAT(own.Finish().value(), ElementsAre(9));
      EXPECT_EQ(own.Finish().status().code(), absl::StatusCode::kFailedPrecondition);
      const std::string bytes(static_cast<size_t>(rank) * 100000, static_cast<char>('a' + rank));
      auto gathered = own.AllGather(bytes);
      ASSERT_TRUE(gathered.ok()) << gathered.status();
      for (size_t i = 0; i < 4; ++i)
        EXPECT_EQ((*gathered)[i], std::string(i * 100000, static_cast<char>('a' + i)));
    }
  });
}

TEST_P(HostCollectives, CallsThatDoNotFitAreAnErrorOfAll) {
  Collectives all = GetParam()(3);
  OnRanks(3, [&](int rank) {
    Collective& own = *all[static_cast<size_t>(rank)];
    ASSERT_TRUE(own.AllGather("first").ok());
    absl::Status status;
    if (rank == 2) {
      status = own.AllGather("").status();
    } else {
      ASSERT_TRUE(own.Start(CollectiveOp::kMin, {1, 2}).ok());
      status = own.Finish().status();
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        Message(status),
        HasSubstr("call 1 is all-reduce(min) of 2 value(s) on rank 0 and all-gather on rank 2"));
    EXPECT_EQ(own.AsyncError(), status);
    EXPECT_EQ(own.Start(CollectiveOp::kMin, {1, 2}), status);
  });
}

TEST_P(HostCollectives, ARankThatLeavesEarlyIsNamedToTheOthers) {
  Collectives all = GetParam()(3);
  OnRanks(3, [&](int rank) {
    std::unique_ptr<Collective>& own = all[static_cast<size_t>(rank)];
    for (int round = 0; round < 10 + rank; ++round) {
      const absl::Status started = own->Start(CollectiveOp::kSum, {1});
      const absl::StatusOr<std::vector<int64_t>> sum =
          started.ok() ? own->Finish() : absl::StatusOr<std::vector<int64_t>>(started);
      // A rank that has got its last result may leave; the others get theirs.
      if (round < 10) {
        ASSERT_TRUE(sum.ok()) << sum.status();
        continue;
      }
      EXPECT_EQ(sum.status(), own->AsyncError());
      EXPECT_THAT(Message(sum.status()), HasSubstr("rank 0 "));
      break;
    }
    own.reset();
  });
}

TEST_P(HostCollectives, AnAbortEndsWaitingCalls) {
  Collectives all = GetParam()(3);
  const absl::Status why = absl::DataLossError("rank 1 cannot read its disk");
  OnRanks(3, [&](int rank) {
    Collective& own = *all[static_cast<size_t>(rank)];
    ASSERT_TRUE(own.AllGather("").ok());
    if (rank == 1) {
      own.Abort(why);
    } else if (own.Start(CollectiveOp::kSum, {1}).ok()) {
      EXPECT_EQ(own.Finish().status(), why);
    }
    EXPECT_EQ(own.AllGather("").status(), why);
    EXPECT_EQ(own.AsyncError(), why);
  });
}

TEST_P(HostCollectives, SplitsHaveRanksAndEndsOfTheirOwn) {
  Collectives all = GetParam()(5);
  OnRanks(5, [&](int rank) {
    Collective& own = *all[static_cast<size_t>(rank)];
    auto split = own.Split(rank % 2);
    ASSERT_TRUE(split.ok()) << split.status();
    Collective& half = **split;
    EXPECT_EQ(half.size(), rank % 2 == 0 ? 3 : 2);
    EXPECT_EQ(half.rank(), rank / 2);
    ASSERT_TRUE(half.Start(CollectiveOp::kSum, {rank}).ok());
    EXPECT_EQ(half.Finish().value()[0], rank % 2 == 0 ? 6 : 4);
    const absl::Status why = absl::AbortedError("enough");
    if (rank == 4) half.Abort(why);
    const absl::Status ended = half.AllGather("").status();
    if (rank % 2 == 0)
      EXPECT_EQ(ended, why);
    else
      EXPECT_TRUE(ended.ok()) << ended;
    EXPECT_TRUE(own.AllGather("still there").ok());
  });
}

// --- Connecting --------------------------------------------------------------------------

TEST(ConnectingRanks, MissingOnesAreNamedToAllThatCame) {
  const std::string address = FreeAddress();
  OnRanks(2, [&](int rank) {
    auto own = ConnectRanks(
        {.address = address, .rank = rank, .ranks = 4, .connect_timeout = absl::Milliseconds(500)});
    EXPECT_EQ(own.status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(Message(own.status()),
                HasSubstr("rank(s) 2, 3 of 4 did not connect to rank 0 at " + address));
  });
}

TEST(ConnectingRanks, UnauthenticatedPeersAreRefusedAndTheOthersGoOn) {
  const RankProcesses root{.address = FreeAddress(), .launch = "seven", .ranks = 2};
  OnRanks(2, [&](int rank) {
    RankProcesses here = root;
    here.rank = rank;
    if (rank == 1) {
      RankProcesses stranger = here;
      stranger.launch = "eight";
      const absl::Status of_another_launch = ConnectRanks(stranger).status();
      EXPECT_EQ(of_another_launch.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(Message(of_another_launch), HasSubstr("launch 'seven', but rank 1 to 'eight'"));
      stranger = here;
      stranger.ranks = 3;
      EXPECT_THAT(Message(ConnectRanks(stranger).status()),
                  HasSubstr("rank 0 waits for 2 ranks, but rank 1 expects 3"));
    }
    auto own = ConnectRanks(here);
    ASSERT_TRUE(own.ok()) << own.status();
    EXPECT_TRUE((*own)->AllGather("").ok());
  });
}

TEST(ConnectingRanks, AddressesAreChecked) {
  EXPECT_EQ(ConnectRanks({.address = "nowhere", .rank = 1, .ranks = 2}).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto taken = transfer::tcp::ListenAt({"127.0.0.1", 0});
  ASSERT_TRUE(taken.ok());
  const std::string address = absl::StrCat("127.0.0.1:", taken->port);
  auto root = ConnectRanks({.address = address, .ranks = 2});
  EXPECT_EQ(root.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(root.status()), HasSubstr("rank 0 cannot listen"));
}

TEST(RankMessages, AreReadAsTheyWereWritten) {
  const RankMessage messages[] = {
      RankHello{.launch = "launch", .rank = 3, .ranks = 8},
      RankWelcome{absl::OkStatus()},
      RankWelcome{absl::DeadlineExceededError("rank 2")},
      RankCalls{7, {.op = CollectiveOp::kMax, .values = {1, -5, INT64_MIN}}},
      RankCalls{8, {.kind = RankCall::Kind::kGather, .bytes = std::string("\0x", 2)}},
      RankEnds{9, absl::AbortedError("why")},
      RankLeaves{},
      RankEventMessage{.communicator = 4, .result = {.values = {3}, .gathered = {"", "b"}}},
      RankEventMessage{.communicator = 4, .end = absl::UnavailableError("rank 1 has left")}};
  for (const RankMessage& message : messages) {
    const std::string bytes = ToBytes(message);
    auto read = RankMessageOf(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, message);
    for (size_t cut = 0; cut < bytes.size(); ++cut)
      EXPECT_EQ(RankMessageOf(bytes.substr(0, cut)).status().code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(RankMessageOf("\x06").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock::replica
