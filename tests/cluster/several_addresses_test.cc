// SPDX-License-Identifier: Apache-2.0
// A dispatcher that goes on at another address of its service, as a standby does. Workers and
// clients follow it.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A service at two ports with one journal. A dispatcher listens at one of them, or at none.
class MovingService {
 public:
  MovingService() {
    Start(0);
    do {
      ports_[1] = 0;
      Start(1);
    } while (ports_[0] == ports_[1]);
  }
  ~MovingService() { dispatcher_->Stop(); }

  std::string addresses() const {
    return absl::StrCat("grpc://localhost:", ports_[0], ",localhost:", ports_[1]);
  }
  // Stops the dispatcher, and starts one at port 0 or 1.
  void Start(size_t at) {
    if (dispatcher_ != nullptr) dispatcher_->Stop();
    dispatcher_.reset();
    absl::StatusOr<std::unique_ptr<DispatchServer>> started =
        DispatchServer::Start({.port = ports_[at],
                               .work_dir = folder_.path(),
                               .fault_tolerant_mode = true,
                               .heartbeat_interval = absl::Milliseconds(100)});
    ASSERT_TRUE(started.ok()) << started.status();
    dispatcher_ = *std::move(started);
    ports_[at] = dispatcher_->port();
  }

 private:
  const TemporaryFolder folder_;
  int ports_[2] = {0, 0};  // 0: not chosen yet
  std::unique_ptr<DispatchServer> dispatcher_;
};

TEST(SeveralAddresses, AnEpochGoesOnWhereverTheDispatcherComesBack) {
  constexpr int64_t kElements = 5000;
  MovingService service;  // listens at its second address
  auto worker = WorkerServer::Start(
      {.dispatcher_address = service.addresses(), .heartbeat_interval = absl::Milliseconds(100)});
  ASSERT_TRUE(worker.ok()) << worker.status();
  DistributeOptions options = {.processing_mode = ShardingPolicy::kDynamic,
                               .service = service.addresses()};
  options.max_outstanding_requests = 64;  // so that the epoch cannot end before a move
  Iterator it = IteratorOf(
      Dataset::Range(kElements).Map([](auto number) { return number + 0; }).Distribute(options));
  std::vector<int64_t> read;
  const auto read_some = [&] {
    for (int64_t i = 0; i < kElements / 4; ++i) {
      absl::StatusOr<std::optional<Element>> element = it.Next();
      ASSERT_TRUE(element.ok()) << element.status();
      ASSERT_TRUE(element->has_value());
      read.push_back((*element)->tensor(0).scalar<int64_t>());
    }
  };
  read_some();
  service.Start(0);
  read_some();
  service.Start(1);
  read_some();
  for (int64_t value : ReadAll(it)) read.push_back(value);
  EXPECT_EQ(Sorted(std::move(read)), UpTo(kElements));
  (*worker)->Stop();
}

TEST(SeveralAddresses, AnErrorListsThemAll) {
  DistributeOptions options = {.processing_mode = ShardingPolicy::kDynamic,
                               .service = "localhost:1,localhost:2"};
  options.timeout = absl::Seconds(1);
  const absl::Status error = FirstError(Dataset::Range(10).Distribute(options));
  EXPECT_TRUE(absl::IsUnavailable(error)) << error;
  EXPECT_THAT(
      std::string(error.message()),
      AllOf(HasSubstr("no dispatcher answers at localhost:1,localhost:2 within 1s: localhost:1: "),
            HasSubstr("; localhost:2: ")));
}

}  // namespace
}  // namespace penstock
