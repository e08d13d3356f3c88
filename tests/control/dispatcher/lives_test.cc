// SPDX-License-Identifier: Apache-2.0
// A dispatcher that began without its journal, from an older copy of it, or beside another.
// Processes that have heard of another life are refused, and messages to another life are ignored.
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "tests/control/dispatcher/dispatcher_fixture.h"

namespace penstock::control {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LivesTest : public DispatcherTest {
 protected:
  std::string Copy() {
    Journaled();
    std::filesystem::remove_all(folder_ + ".copy");
    std::filesystem::copy(folder_, folder_ + ".copy", std::filesystem::copy_options::recursive);
    return folder_ + ".copy";
  }
  DispatcherConfig OfCopy() const {
    return {.work_dir = folder_ + ".copy", .fault_tolerant_mode = true};
  }
  template <class Peer>
  static Heard HeardBy(Peer& peer, const Life& life) {
    return {life, peer.sequence()};
  }
  // Returns the error with which a client is refused.
  static absl::Status Refusal(HandClient& client) { return client.Next<SessionError>().status; }
};

TEST_F(LivesTest, ANumberOfAJobIsNothingWithoutItsToken) {
  Start();
  const JobAnswer before = MakeJob("before");
  HandClient reader(*stub_, before, 5);
  const Heard heard = HeardBy(reader, reader.Next<Welcome>().life);
  Restart({});
  const JobAnswer after = MakeJob("after");
  ASSERT_EQ(after.job, before.job);
  HandClient back(*stub_, before, 5, 1, 0, std::nullopt, heard);
  const absl::Status refused = Refusal(back);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("is 'after', not the one"), HasSubstr("without its journal")));
  HandClient its(*stub_, after, 6);
  EXPECT_TRUE(its.Next<Welcome>().iteration);
}

TEST_F(LivesTest, MessagesAboutAnotherLifesPartitionsAreIgnored) {
  Start();
  const JobAnswer before = MakeJob("before");
  auto worker = std::make_unique<HandWorker>(*stub_, 1);
  HandClient reader(*stub_, before, 5);
  const PlacedPartition of = worker->Next<Assign>().of;
  const Heard heard = HeardBy(*worker, worker->welcome.life);
  worker.reset();
  Restart({});
  const JobAnswer after = MakeJob("after");
  HandClient its(*stub_, after, 6);
  const Welcome welcome = its.Next<Welcome>();
  ASSERT_EQ(welcome.iteration, of.iteration);

  HandWorker back(*stub_, 1, 1, {of}, "", heard);
  back.Send(Ended{of, 3});
  back.Send(Bookmark{of, 2, "another dataset's", {}});
  back.Send(SplitRequest{of, 0, 0, 7, 1});
  EXPECT_NE(back.Next<WorkerWelcome>().life.journal, heard.life.journal);
  const Assign assign = back.Next<Assign>();
  EXPECT_EQ(assign.token, after.token);
  EXPECT_EQ(assign.bookmark, "");
  back.Send(SplitRequest{assign.of, 0, 0, 0, 1});
  EXPECT_EQ(back.Next<Splits>().run.first_ordinal, 0) << "that of another life is not answered";
  its.SendReport(assign.of.partition, assign.of.placement, {});
  back.Send(Ended{assign.of, 10});
  EXPECT_FALSE(its.Next<Membership>().closed) << "it ends with all that was read of it";
}

TEST_F(LivesTest, AnOlderCopyOfTheJournalEndsTheJobsOfReadersAheadOfIt) {
  Start(Journaled());
  const JobAnswer job = MakeJob("committed", ShardingPolicy::kDynamic, AckMode::kOnCommit);
  const JobAnswer other = MakeJob("other");
  HandWorker worker(*stub_, 1);
  HandClient reader(*stub_, job, 5);
  const Welcome welcome = reader.Next<Welcome>();
  const Assign assign = worker.Next<Assign>();
  Copy();
  reader.SendReport(assign.of.partition, assign.of.placement, IndexSet::Of(0, 6));
  reader.Send(Commit{1, {{0, {{assign.of.partition, IndexSet::Of(0, 3)}}}}});
  reader.Next<Committed>();
  const Heard heard = HeardBy(reader, welcome.life);
  Restart(OfCopy());

  HandClient back(*stub_, job, 5, 1, 0, std::nullopt, heard);
  const absl::Status refused = Refusal(back);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("an older copy of the journal"), HasSubstr("the newest copy"),
                    HasSubstr("another run_id")));
  // A late client would get the elements that the first one has.
  HandClient late(*stub_, job, 6);
  EXPECT_THAT(std::string(Refusal(late).message()), HasSubstr("an older copy of the journal"));
  HandClient untouched(*stub_, other, 7);
  EXPECT_TRUE(untouched.Next<Welcome>().iteration);
}

TEST_F(LivesTest, WithoutTheKeyOfItsJobsADispatcherDoesNotStart) {
  const DispatcherConfig config = Journaled();
  const std::string key = folder_ + "/key";
  const std::string aside = ::testing::TempDir() + "/key_of_lives";
  Start(config);
  const JobAnswer job = MakeJob("job");
  server_.reset();
  std::filesystem::rename(key, aside);
  const auto refused = [&](const char* why) {
    const absl::Status status = DispatchServer::Start(config).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(key), HasSubstr(why)));
  };
  refused("missing");
  std::ofstream(key) << std::string(64, 'a') << "\n";
  refused("another key");

  std::filesystem::rename(aside, key);
  Start(config);
  EXPECT_EQ(MakeJob("job").token, job.token);
  HandClient reader(*stub_, job, 5);
  EXPECT_EQ(reader.Next<Welcome>().token, job.token);
}

TEST_F(LivesTest, ALostKeyIsReplacedOnceNoJobNeedsIt) {
  const DispatcherConfig config = Journaled();
  Start(config);
  const JobAnswer job = MakeJob("job");
  ASSERT_TRUE(stub_->CancelJob("job", kOnce).ok());
  server_.reset();
  ASSERT_TRUE(std::filesystem::remove(folder_ + "/key"));
  Start(config);
  HandClient reader(*stub_, job, 5);
  EXPECT_THAT(std::string(Refusal(reader).message()), HasSubstr("without the key"));
  const JobAnswer next = MakeJob("next");
  Restart(config);
  EXPECT_EQ(MakeJob("next").token, next.token);
}

TEST_F(LivesTest, ACopyOfTheFolderWithoutTheKeyStartsNoDispatcher) {
  DispatcherConfig config = Journaled();
  config.journal_key_file = folder_ + ".key";
  std::filesystem::remove(config.journal_key_file);
  Start(config);
  const JobAnswer job = MakeJob("job");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/key"));
  Copy();
  server_.reset();
  EXPECT_TRUE(absl::IsFailedPrecondition(DispatchServer::Start(OfCopy()).status()));
  DispatcherConfig copy = OfCopy();
  copy.journal_key_file = config.journal_key_file;
  Start(copy);
  EXPECT_EQ(MakeJob("job").token, job.token);
}

TEST_F(LivesTest, AKeyFileNeedsAJournal) {
  const absl::Status status = DispatchServer::Start({.journal_key_file = "key"}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("work_dir"));
}

// A reader may have elements of splits that were given out after the copy, and have heard of
// nothing. Its elements would not match the splits and bookmarks of the answer.
TEST_F(LivesTest, AStateGetsNothingOfAnotherLife) {
  Start(Journaled());
  const JobAnswer job = MakeJob("saved", ShardingPolicy::kDynamic, AckMode::kOnCommit);
  HandWorker worker(*stub_, 1);
  HandClient reader(*stub_, job, 5);
  const Welcome welcome = reader.Next<Welcome>();
  const Assign assign = worker.Next<Assign>();
  Copy();
  reader.SendReport(assign.of.partition, assign.of.placement, IndexSet::Of(0, 6));
  reader.Send(Commit{1, {{0, {{assign.of.partition, IndexSet::Of(0, 3)}}}}});
  reader.Next<Committed>();
  const GetReadingRequest request{job.job, 0, HeardBy(reader, welcome.life)};
  EXPECT_TRUE(stub_->GetReading(request, kOnce).ok());
  Restart(OfCopy());
  EXPECT_THAT(std::string(stub_->GetReading(request, kOnce).status().message()),
              HasSubstr("an older copy of the journal"));
  Restart({});
  ASSERT_EQ(MakeJob("another").job, job.job);
  EXPECT_THAT(std::string(stub_->GetReading(request, kOnce).status().message()),
              HasSubstr("is 'another', not the one"));
}

TEST_F(LivesTest, AWorkerAheadOfTheJournalEndsWhatEarlierLivesRead) {
  Start(Journaled());
  const JobAnswer job = MakeJob("job");
  auto worker = std::make_unique<HandWorker>(*stub_, 1);
  HandClient reader(*stub_, job, 5);
  const Life life = reader.Next<Welcome>().life;
  const PlacedPartition of = worker->Next<Assign>().of;
  const Heard last_heard = HeardBy(reader, life);
  Copy();
  worker->Send(SplitRequest{of, 0, 0, 0, 1});
  worker->Next<Splits>();
  const Heard heard = HeardBy(*worker, life);
  worker.reset();
  Restart(OfCopy());

  HandClient back(*stub_, job, 5, 1, 0, std::nullopt, last_heard);
  EXPECT_TRUE(back.Next<Welcome>().iteration);
  HandClient later(*stub_, MakeJob("later"), 6);
  EXPECT_TRUE(later.Next<Welcome>().iteration);
  HandWorker ahead(*stub_, 1, 1, {}, "", heard);  // has lost the partition meanwhile
  EXPECT_THAT(std::string(ahead.Next<WorkerRefused>().status.message()),
              HasSubstr("an older copy of the journal"));
  EXPECT_THAT(std::string(Refusal(back).message()),
              AllOf(HasSubstr("job job: "), HasSubstr("an older copy of the journal")));
  HandWorker fresh(*stub_, 2);
  EXPECT_EQ(fresh.Next<Assign>().of.iteration, IterationId(2)) << "what this life began goes on";
}

TEST_F(LivesTest, ACompleteCopyIsAsGoodAsTheJournal) {
  Start(Journaled());
  const JobAnswer job = MakeJob("job");
  HandClient reader(*stub_, job, 5);
  const Life life = reader.Next<Welcome>().life;
  reader.Next<Membership>();
  Copy();
  const Heard heard = HeardBy(reader, life);
  Restart(OfCopy());
  HandClient back(*stub_, job, 5, 1, 0, std::nullopt, heard);
  const Welcome welcome = back.Next<Welcome>();
  EXPECT_EQ(welcome.life.journal, life.journal);
  EXPECT_NE(welcome.life.id, life.id);
  EXPECT_EQ(welcome.life.term, Term(life.term.value() + 1));
}

// Even if the old dispatcher's numbers are higher by now than those of the newer life.
TEST_F(LivesTest, TheOldLifeRefusesProcessesThatHeardTheNewOne) {
  Start(Journaled());
  const JobAnswer job = MakeJob("job");
  HandClient reader(*stub_, job, 5);
  reader.Next<Welcome>();
  Copy();
  auto newer = DispatchServer::Start(OfCopy());
  ASSERT_TRUE(newer.ok()) << newer.status();
  auto stub = DispatcherStub::Make((*newer)->target());
  HandClient moved(**stub, job, 5);
  const Heard heard = HeardBy(moved, moved.Next<Welcome>().life);
  for (int i = 0; i < 20; ++i) MakeJob(absl::StrCat("more", i));
  HandClient back(*stub_, job, 5, 1, 0, std::nullopt, heard);
  EXPECT_THAT(std::string(Refusal(back).message()), HasSubstr("another dispatcher began from"));
  HandWorker worker(*stub_, 1, 1, {}, "", heard);
  EXPECT_THAT(std::string(worker.Next<WorkerRefused>().status.message()),
              AllOf(HasSubstr("another dispatcher began from"), HasSubstr("worker1")));
}

TEST_F(LivesTest, AClientOfAnotherVersionHearsTheSupportedOnes) {
  Start();
  const JobAnswer job = MakeJob("job");
  struct Old : Peer<ClientUp, ClientDown> {
    Old(DispatcherStub& stub, const JobAnswer& job) {
      session_ = stub.OpenClientSession(events());
      Send(ClientHello{.job = job.job,
                       .client = ClientId(5),
                       .incarnation = Incarnation(1),
                       .state = std::nullopt,
                       .token = job.token,
                       .version = {0, 1}});
    }
  } old(*stub_, job);
  EXPECT_THAT(std::string(old.Next<SessionError>().status.message()),
              HasSubstr("the client speaks control versions 0 to 1"));
}

}  // namespace
}  // namespace penstock::control
