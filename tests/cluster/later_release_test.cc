// SPDX-License-Identifier: Apache-2.0
// A service with parts of a later release: streams with kinds and fields of messages that this
// release does not know, and a worker that saves bookmarks which this release cannot read. Each
// element comes once. A program of its own, because it changes the kinds of nodes of its process.
#include "tests/releases/later_release.h"

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "control/proto/control.pb.h"
#include "dataplane/dataset/graph/registry.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/relay.h"
#include "tests/cluster/worker_elsewhere.h"

namespace penstock {
namespace {

using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Not;

bool IsOfWorker(const RelayedMessage& message) {
  return absl::EndsWith(message.method, "WorkerSession");
}

std::unique_ptr<Relay> RelayTo(const Cluster& cluster, RelayOptions options) {
  absl::StatusOr<std::unique_ptr<Relay>> relay =
      Relay::Start(cluster.service(), std::move(options));
  EXPECT_TRUE(relay.ok()) << relay.status();
  return relay.ok() ? *std::move(relay) : nullptr;
}

std::unique_ptr<WorkerServer> WorkerAt(const std::string& service) {
  absl::StatusOr<std::unique_ptr<WorkerServer>> worker = WorkerServer::Start(
      {.dispatcher_address = service, .heartbeat_interval = absl::Milliseconds(20)});
  EXPECT_TRUE(worker.ok()) << worker.status();
  return worker.ok() ? *std::move(worker) : nullptr;
}

Dataset JobAt(const std::string& service, int64_t count) {
  return Dataset::Range(count).Distribute({.processing_mode = ShardingPolicy::kDynamic,
                                           .service = service,
                                           .job_name = "job",
                                           .max_outstanding_requests = 16});
}

// --- Messages ---------------------------------------------------------------------------

template <class Wire>
std::string WithFields(const std::string& bytes) {
  Wire wire;
  EXPECT_TRUE(wire.ParseFromString(bytes));
  control::later::AddFields(wire);
  return wire.SerializeAsString();
}

// Returns what a later release might send instead: unknown fields, and on a stream unknown kinds.
std::vector<std::string> Later(const RelayedMessage& message) {
  namespace wire = control::wire;
  using control::later::Unknown;
  if (!message.is_stream) return {message.bytes + Unknown()};
  std::string bytes = IsOfWorker(message)     ? message.to_dispatcher
                                                    ? WithFields<wire::WorkerUp>(message.bytes)
                                                    : WithFields<wire::WorkerDown>(message.bytes)
                          : message.to_dispatcher ? WithFields<wire::ClientUp>(message.bytes)
                                              : WithFields<wire::ClientDown>(message.bytes);
  return {std::move(bytes), Unknown()};
}

TEST(LaterRelease, MessagesThatThisOneDoesNotKnowAreIgnored) {
  constexpr int64_t kCount = 3000;
  Cluster cluster(0);
  const std::unique_ptr<Relay> relay = RelayTo(cluster, {.replace = Later});
  std::unique_ptr<WorkerServer> leaves = WorkerAt(relay->service());
  const std::unique_ptr<WorkerServer> stays = WorkerAt(relay->service());
  Iterator it = IteratorOf(JobAt(relay->service(), kCount));
  Iterator other = IteratorOf(JobAt(relay->service(), kCount));
  std::vector<int64_t> read;
  for (int i = 0; i < 200; ++i) {
    for (Iterator* from : {&it, &other}) {
      absl::StatusOr<std::optional<Element>> element = from->Next();
      ASSERT_TRUE(element.ok() && element->has_value()) << element.status();
      read.push_back((*element)->tensor(0).scalar<int64_t>());
    }
  }
  leaves->Stop();
  std::vector<int64_t> rest;
  std::thread reads([&] { rest = ReadAll(other); });
  for (const int64_t value : ReadAll(it)) read.push_back(value);
  reads.join();
  read.insert(read.end(), rest.begin(), rest.end());
  EXPECT_EQ(Sorted(std::move(read)), UpTo(kCount));
  for (const char* stream : {"client_up", "client_down", "worker_up", "worker_down"}) {
    EXPECT_GT(control::later::IgnoredOn(stream), 0) << stream;
  }
  stays->Stop();
}

// --- Bookmarks --------------------------------------------------------------------------

// A worker in this process is of a later release: it saves positions of Range in version 2, and
// reads versions 1 and 2. A worker elsewhere is of this release.
class BookmarksOfALaterRelease : public testing::Test {
 protected:
  static constexpr int64_t kCount = 100'000;

  static void SetUpTestSuite() {
    const auto range = const_cast<NodeKind*>(FindNodeKind("Range"));
    ASSERT_EQ(range->position_version, 1) << "raise the version that is expected below";
    range->position_version = 2;
  }
  void SetUp() override {
    relay_ = RelayTo(cluster_, {.replace = [this](const RelayedMessage& message) {
                       Look(message);
                       return std::vector<std::string>{message.bytes};
                     }});
    ASSERT_NE(relay_, nullptr);
  }

  // Notes the bookmarks that workers send and get.
  void Look(const RelayedMessage& message) {
    if (!IsOfWorker(message)) return;
    std::lock_guard lock(mu_);
    control::wire::WorkerUp up;
    control::wire::WorkerDown down;
    if (message.to_dispatcher && up.ParseFromString(message.bytes) && up.has_bookmark()) {
      newest_ = up.bookmark();
    } else if (!message.to_dispatcher && down.ParseFromString(message.bytes)) {
      if (down.has_assign()) assigned_ = down.assign();
      for (const control::wire::WorkerDown& further : down.more())
        if (further.has_assign()) assigned_ = further.assign();
    }
  }
  std::optional<control::wire::Bookmark> Newest() {
    std::lock_guard lock(mu_);
    return newest_;
  }
  control::wire::Assign LastAssigned() {
    std::lock_guard lock(mu_);
    return assigned_;
  }

  // Takes at least half a second for all elements, because a worker sends a bookmark only after
  // some time, and a fast reading may be over by then.
  void ReadUntilThereIsABookmark(Iterator& it) {
    while (!Newest().has_value()) {
      absl::StatusOr<std::optional<Element>> element = it.Next();
      ASSERT_TRUE(element.ok() && element->has_value()) << element.status();
      read_.push_back((*element)->tensor(0).scalar<int64_t>());
      if (read_.size() % (kCount / 500) == 0) absl::SleepFor(absl::Milliseconds(1));
    }
  }
  void ExpectTheRest(Iterator& it) {
    for (const int64_t value : ReadAll(it)) read_.push_back(value);
    EXPECT_EQ(Sorted(std::move(read_)), UpTo(kCount));
  }

  Cluster cluster_{0};
  std::unique_ptr<Relay> relay_;
  std::vector<int64_t> read_;
  std::mutex mu_;
  std::optional<control::wire::Bookmark> newest_;  // guarded by mu_
  control::wire::Assign assigned_;                 // guarded by mu_
};

TEST_F(BookmarksOfALaterRelease, AreNotGivenToAWorkerThatCannotReadThem) {
  const std::unique_ptr<WorkerServer> later = WorkerAt(relay_->service());
  Iterator it = IteratorOf(JobAt(relay_->service(), kCount));
  ReadUntilThereIsABookmark(it);
  ASSERT_EQ(Newest()->versions_size(), 1);
  EXPECT_EQ(Newest()->versions(0).operation(), "Range");
  EXPECT_EQ(Newest()->versions(0).version(), 2u);
  const WorkerElsewhere elsewhere(relay_->service());
  later->Stop();
  ExpectTheRest(it);
  EXPECT_GT(LastAssigned().of().placement(), 1u);
  EXPECT_EQ(LastAssigned().bookmark_index(), 0);
  EXPECT_THAT(LastAssigned().bookmark(), IsEmpty());
}

TEST_F(BookmarksOfALaterRelease, AreGivenToAnotherWorkerOfThatRelease) {
  const std::unique_ptr<WorkerServer> later = WorkerAt(relay_->service());
  Iterator it = IteratorOf(JobAt(relay_->service(), kCount));
  ReadUntilThereIsABookmark(it);
  const std::unique_ptr<WorkerServer> another = WorkerAt(relay_->service());
  later->Stop();
  ExpectTheRest(it);
  EXPECT_THAT(LastAssigned().bookmark_index(), Gt(0));
  another->Stop();
}

TEST_F(BookmarksOfALaterRelease, AndThoseOfThisReleaseAreReadByIt) {
  WorkerElsewhere elsewhere(relay_->service());
  Iterator it = IteratorOf(JobAt(relay_->service(), kCount));
  ReadUntilThereIsABookmark(it);
  EXPECT_EQ(Newest()->versions_size(), 0);
  const std::unique_ptr<WorkerServer> later = WorkerAt(relay_->service());
  elsewhere.Kill();
  ExpectTheRest(it);
  EXPECT_THAT(LastAssigned().bookmark(), Not(IsEmpty()));
  later->Stop();
}

}  // namespace
}  // namespace penstock
