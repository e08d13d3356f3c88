// SPDX-License-Identifier: Apache-2.0
// Jobs with more workers than max_links, whose readers read some of the workers each.
#include <algorithm>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

class AudiencesTest : public testing::Test {
 protected:
  void Start(int workers, int readers, int64_t elements) {
    elements_ = elements;
    cluster_ = std::make_unique<Cluster>(
        workers,
        DispatcherConfig{.work_dir = folder_.path(), .fault_tolerant_mode = true, .max_links = 2});
    for (int i = 0; i < readers; ++i) Join();
  }
  void Join() {
    DistributeOptions options = cluster_->Options(ShardingPolicy::kDynamic, "shared");
    options.max_outstanding_requests = 64;
    absl::StatusOr<Iterator> it = Dataset::Range(elements_)
                                      .Map([](auto x) { return x + 0; })
                                      .Distribute(options)
                                      .MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    readers_.push_back(*std::move(it));
  }
  void Leave(size_t reader) {
    EXPECT_TRUE(readers_[reader].Stop().ok());
    readers_.erase(readers_.begin() + static_cast<ptrdiff_t>(reader));
  }
  // Reads some elements with each reader in turn.
  void ReadInTurn() {
    for (int turn = 0; turn < 5; ++turn) {
      for (Iterator& it : readers_) {
        for (int i = 0; i < 20; ++i) {
          absl::StatusOr<std::optional<Element>> element = it.Next();
          ASSERT_TRUE(element.ok()) << element.status();
          ASSERT_TRUE(element->has_value());
          values_.push_back((*element)->tensor(0).scalar<int64_t>());
        }
      }
    }
  }
  // Reads to the end with all readers at once.
  void ReadTheRest() {
    std::vector<std::future<std::vector<int64_t>>> reading;
    for (Iterator& it : readers_)
      reading.push_back(std::async(std::launch::async, [&it] { return ReadAll(it); }));
    for (auto& its : reading) {
      const std::vector<int64_t> values = its.get();
      values_.insert(values_.end(), values.begin(), values.end());
    }
  }
  // The links that clients have reported, by client.
  std::map<ClientId, std::vector<control::LinkStatus>> Links() const {
    std::map<ClientId, std::vector<control::LinkStatus>> links;
    auto stub = control::DispatcherStub::Make(cluster_->service());
    EXPECT_TRUE(stub.ok()) << stub.status();
    if (!stub.ok()) return links;
    absl::StatusOr<control::DispatcherStatus> status =
        (*stub)->GetStatus({.timeout = absl::Minutes(1), .stop = {}});
    EXPECT_TRUE(status.ok()) << status.status();
    if (!status.ok()) return links;
    for (const control::LinkStatus& link : status->links) links[link.client].push_back(link);
    return links;
  }

  TemporaryFolder folder_;
  int64_t elements_ = 0;
  std::unique_ptr<Cluster> cluster_;
  std::vector<Iterator> readers_;
  std::vector<int64_t> values_;
};

TEST_F(AudiencesTest, AReaderHasLinksToItsWorkersOnly) {
  Start(/*workers=*/6, /*readers=*/6, int64_t{1} << 40);
  const auto matches = [](const auto& its) {
    return its.second.front().reads == absl::StrCat(its.second.size(), " of 6 (max_links 2)") ||
           its.second.front().reads ==
               absl::StrCat("all ", its.second.size(),
                            " (few trainers, partitions from before, or local workers)") ||
           its.second.front().reads == absl::StrCat("all ", its.second.size());
  };
  std::map<ClientId, std::vector<control::LinkStatus>> links;
  do {
    ReadInTurn();
    links = Links();
  } while (!HasFailure() && (links.size() < 6 || !std::ranges::all_of(links, matches)));
  EXPECT_TRUE(std::ranges::any_of(links, [](const auto& its) { return its.second.size() < 6; }));
}

TEST_F(AudiencesTest, ElementsComeOnceWhileProcessesComeAndGo) {
  Start(/*workers=*/6, /*readers=*/3, 20'000);
  ReadInTurn();
  cluster_->RemoveWorker(0);
  ReadInTurn();
  cluster_->RestartDispatcher();
  ReadInTurn();
  Leave(1);
  ReadInTurn();
  cluster_->AddWorker();
  Join();
  ReadInTurn();
  cluster_->RemoveWorker(3);
  Leave(0);
  ReadTheRest();
  EXPECT_EQ(Sorted(values_), UpTo(elements_));
}

}  // namespace
}  // namespace penstock
