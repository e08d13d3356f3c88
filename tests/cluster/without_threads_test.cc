// SPDX-License-Identifier: Apache-2.0
// Thread creation that fails: for each thread in turn, and for all threads from each one on.
#include <dlfcn.h>

#include <atomic>
#include <limits>
#include <system_error>
#include <thread>

#include "include/status_macros.h"
#include "penstock/lost_consumers.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

// Refuses the next threads with a number in [first, first + count).
std::atomic<int> begun{0};
std::atomic<int> first_refused{std::numeric_limits<int>::max()};
std::atomic<int> refused_count{0};

bool IsRefused() {
  const int number = begun++;
  return number >= first_refused && number - first_refused < refused_count;
}

void Refuse(int first, int count) {
  first_refused = std::numeric_limits<int>::max();
  refused_count = count;
  begun = 0;
  first_refused = first;
}
void RefuseNone() {
  Refuse(std::numeric_limits<int>::max(), 0);
}

}  // namespace
}  // namespace penstock

// Replaces the C++ library's function with which std::thread begins; gRPC starts its threads in
// another way.
void std::thread::_M_start_thread(_State_ptr state, void (*depend)()) {
  using Start = void (*)(std::thread*, _State_ptr, void (*)());
  static const auto start = reinterpret_cast<Start>(::dlsym(
      RTLD_NEXT,
      "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"));
  if (penstock::IsRefused()) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
  start(this, std::move(state), depend);
}

namespace penstock {
namespace {

constexpr int64_t kElements = 100;

absl::StatusOr<std::vector<int64_t>> Read(Iterator& it) {
  std::vector<int64_t> values;
  while (true) {
    // With a deadline, so that elements are made on a thread of their own.
    ASSIGN_OR_RETURN(std::optional<Element> element, it.Next(absl::Now() + absl::Seconds(20)));
    if (!element.has_value()) return values;
    values.push_back(element->tensor(0).scalar<int64_t>());
  }
}

// Runs from the start of the servers to their end.
absl::StatusOr<std::vector<int64_t>> RunJob(const std::string& protocol) {
  const TemporaryFolder folder;
  ASSIGN_OR_RETURN(std::unique_ptr<DispatchServer> dispatcher,
                   DispatchServer::Start({.work_dir = folder.path(), .metrics_port = 0}));
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerServer> worker,
                   WorkerServer::Start({.dispatcher_address = dispatcher->target(),
                                        .data_transfer_protocol = protocol,
                                        .metrics_port = 0}));
  const Dataset dataset =
      Dataset::Range(kElements).Prefetch(2).Distribute({.processing_mode = ShardingPolicy::kDynamic,
                                                        .service = dispatcher->target(),
                                                        .timeout = absl::Seconds(2)});
  ASSIGN_OR_RETURN(Iterator it, dataset.Prefetch(2).MakeIterator());
  return Read(it);
}

struct Case {
  std::string protocol;
  int count;
};

class WithoutThreads : public testing::TestWithParam<Case> {
 protected:
  ~WithoutThreads() override { RefuseNone(); }
};

TEST_P(WithoutThreads, AJobGivesItsDataOrSaysSo) {
  int first = 0;
  do {
    SCOPED_TRACE(first);
    Refuse(first, GetParam().count);
    const absl::StatusOr<std::vector<int64_t>> values = RunJob(GetParam().protocol);
    if (values.ok()) {
      EXPECT_EQ(Sorted(*values), UpTo(kElements));
    } else {
      EXPECT_EQ(values.status().code(), absl::StatusCode::kResourceExhausted) << values.status();
      EXPECT_THAT(std::string(values.status().message()),
                  testing::HasSubstr("cannot start another thread"));
    }
  } while (begun > first++);
  EXPECT_GT(first, 10);  // the servers alone need more threads
}

INSTANTIATE_TEST_SUITE_P(
    Over, WithoutThreads,
    // The cases of many first: threads that the loops of the process are refused stay refused.
    testing::Values(Case{"shm", 1000}, Case{"shm", 1}, Case{"tcp", 1000}, Case{"tcp", 1},
                    Case{"grpc", 1000}, Case{"grpc", 1}),
    [](const auto& info) {
      return info.param.protocol + (info.param.count == 1 ? "OneRefused" : "AllRefusedFromOneOn");
    });

TEST(ReplicasWithoutThreads, NoneIsCalledWhereNotAllCanBe) {
  const auto group = ReplicaGroup::Mirrored({"CPU:0", "CPU:0", "CPU:0"});
  ASSERT_TRUE(group.ok()) << group.status();
  std::atomic<int> called = 0;
  const auto call = [&](int) {
    ++called;
    return absl::OkStatus();
  };
  Refuse(1, 1);
  const absl::Status status = group->OnEachReplica(call);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(called, 0);
  EXPECT_TRUE(group->OnEachReplica(call).ok());
  EXPECT_EQ(called, 3);
  RefuseNone();
}

TEST(WatchesWithoutThreads, AreAnError) {
  Refuse(0, 1);
  const auto ignore = [](const LostConsumer&) {};
  EXPECT_EQ(OnLostConsumer::Start(ignore).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(OnLostConsumer::Start(ignore).ok());
  RefuseNone();
}

}  // namespace
}  // namespace penstock
