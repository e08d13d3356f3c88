// SPDX-License-Identifier: Apache-2.0
// Large datasets at the dispatcher's port, fetched in pieces by many callers at once.
#include "control/dispatcher/server/dataset_pieces.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "control/observe/metrics.h"
#include "control/rpc/dataset_fetcher.h"
#include "control/rpc/status_grpc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/server/port_fixture.h"
#include "tests/control/observe/count_refused.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

int64_t PiecesUnderWay() {
  return ProcessMetrics().GetGauge("penstock_dispatcher_dataset_pieces", "").value();
}

// Returns bytes no piece of which equals another.
std::string Numbers(size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) absl::StrAppend(&text, i, " ");
  text.resize(bytes);
  return text;
}

wire::DatasetRequest RequestFor(const std::string& id, uint32_t part, uint64_t offset) {
  wire::DatasetRequest request;
  request.set_dataset_id(id);
  request.mutable_piece()->set_part(part);
  request.mutable_piece()->set_offset(offset);
  return request;
}

class DatasetPiecesTest : public PortTest {
 protected:
  absl::StatusOr<wire::GetDatasetAnswer> Ask(
      const wire::DatasetRequest& request,
      std::chrono::milliseconds timeout = std::chrono::minutes(2)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    wire::GetDatasetAnswer answer;
    const grpc::Status status = stub_->GetDataset(&context, request, &answer);
    if (!status.ok()) return FromGrpc(status);
    return answer;
  }
  absl::StatusOr<GetDatasetAnswer> Fetch(DatasetFetcher& fetcher, const std::string& id) {
    return fetcher.Fetch(id, 0,
                         [this](const wire::DatasetRequest& request) { return Ask(request); });
  }
};

TEST_F(DatasetPiecesTest, ALargeDatasetArrivesAsItWasRegistered) {
  Start({});
  RegisterDatasetRequest dataset = {.dataset_id = "large", .definition = Numbers(5'000'000)};
  dataset.summary.fingerprint = 7;
  dataset.summary.plan = {{.node = "Files#0", .count = 1}};
  for (int i = 0; i < 200'000; ++i)
    dataset.summary.plan[0].files.push_back(absl::StrCat("file", i));
  ASSERT_TRUE(Register(dataset).ok());
  DatasetFetcher fetcher;
  const auto fetched = Fetch(fetcher, "large");
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->dataset_id, "large");
  EXPECT_TRUE(fetched->definition == dataset.definition);
  EXPECT_TRUE(fetched->summary == dataset.summary);
}

TEST_F(DatasetPiecesTest, ManyCallersFetchALargeDefinitionAtOnce) {
  constexpr int kCallers = 50;
  constexpr size_t kBytes = size_t{20} << 20;
  Start({.dataset_pieces = 4});
  const std::string definition = Numbers(kBytes);
  ASSERT_TRUE(Register({.dataset_id = "large", .definition = definition}).ok());
  std::atomic<int64_t> most = 0;
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&] {
        for (size_t offset = 0; offset < kBytes; offset += kDatasetPieceBytes) {
          const auto answer = Ask(RequestFor("large", 1, offset));
          ASSERT_TRUE(answer.ok()) << answer.status();
          const std::string_view piece =
              std::string_view(definition).substr(offset, kDatasetPieceBytes);
          ASSERT_TRUE(answer->piece() == piece) << "at " << offset;
          const int64_t now = PiecesUnderWay();
          for (int64_t before = most; before < now && !most.compare_exchange_weak(before, now);) {
          }
        }
        ++right;
      });
    }
  }
  EXPECT_EQ(right, kCallers);
  EXPECT_LE(most, 4);
  EXPECT_TRUE(Eventually([] { return PiecesUnderWay() == 0; }));
}

// The caller gives its answers no room, so the dispatcher holds them.
TEST_F(DatasetPiecesTest, ACallThatWaitsHoldsNoPiece) {
  Start({.dataset_pieces = 4, .dataset_piece_time = absl::Milliseconds(100)});
  ASSERT_TRUE(Register("large", 5 << 20).ok());
  const DeafCaller deaf(
      listener_->port(),
      WithoutAWindow() +
          Calls("GetDataset", 30, RequestFor("large", 1, 1 << 20).SerializeAsString()));
  EXPECT_TRUE(Eventually([] { return PiecesUnderWay() == 4; }));
  // Another caller gets its piece all the same, after PortLimits::dataset_piece_time.
  EXPECT_TRUE(Ask(RequestFor("large", 1, 0)).ok());
  EXPECT_LE(PiecesUnderWay(), 4);
}

TEST_F(DatasetPiecesTest, ACallAfterTooManyThatWaitIsAskedToRepeat) {
  Start({.dataset_pieces = 1, .dataset_piece_time = absl::Hours(1), .waiting_dataset_pieces = 2});
  ASSERT_TRUE(Register("large", 5 << 20).ok());
  const std::string request = RequestFor("large", 1, 0).SerializeAsString();
  auto deaf = std::make_unique<DeafCaller>(listener_->port(),
                                           WithoutAWindow() + Calls("GetDataset", 1, request));
  EXPECT_TRUE(Eventually([] { return PiecesUnderWay() == 1; }));
  const int64_t before = RefusedSoFar("dispatcher", "too_many");
  auto others = std::make_unique<DeafCaller>(listener_->port(),
                                             WithoutAWindow() + Calls("GetDataset", 30, request));
  EXPECT_TRUE(Eventually([&] { return RefusedSoFar("dispatcher", "too_many") == before + 28; }));
  const absl::Status refused = Ask(RequestFor("large", 1, 0)).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("2 calls wait"));
  others.reset();
  deaf.reset();
  EXPECT_TRUE(Eventually([&] { return Ask(RequestFor("large", 1, 0)).ok(); }));
}

// The place is not free, so a call that enters the queue waits until its deadline.
TEST_F(DatasetPiecesTest, ACancelledCallWaitsForNoPlace) {
  Start({.dataset_pieces = 1, .dataset_piece_time = absl::Hours(1), .waiting_dataset_pieces = 1});
  ASSERT_TRUE(Register("large", 5 << 20).ok());
  const std::string request = RequestFor("large", 1, 0).SerializeAsString();
  const DeafCaller deaf(listener_->port(), WithoutAWindow() + Calls("GetDataset", 1, request));
  EXPECT_TRUE(Eventually([] { return PiecesUnderWay() == 1; }));
  for (int i = 0; i < 3; ++i) {  // each is cancelled in the queue, of which it takes the only place
    EXPECT_TRUE(Eventually([&] {
      const auto code = Ask(RequestFor("large", 1, 0), std::chrono::milliseconds(50)).status();
      EXPECT_FALSE(code.ok());
      return absl::IsDeadlineExceeded(code);
    }));
  }
  EXPECT_EQ(PiecesUnderWay(), 1);
}

TEST_F(DatasetPiecesTest, ACallerThatKnowsNoPiecesGetsTheWholeDataset) {
  Start({});
  ASSERT_TRUE(Register("large", 5 << 20).ok());
  wire::DatasetRequest request;
  request.set_dataset_id("large");
  const auto answer = Ask(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->definition().size(), 5u << 20);
  EXPECT_EQ(answer->parts_size(), 0);
}

TEST_F(DatasetPiecesTest, ASmallDatasetIsOneAnswer) {
  Start({});
  ASSERT_TRUE(Register("small", 1000).ok());
  const auto answer = Ask(RequestFor("small", 0, 0));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->definition().size(), 1000u);
}

TEST_F(DatasetPiecesTest, APieceThatDoesNotExistIsRefused) {
  Start({});
  ASSERT_TRUE(Register("large", 5 << 20).ok());
  for (const auto& request : {RequestFor("large", 3, 0), RequestFor("large", 1, 5 << 20),
                              RequestFor("large", 2, uint64_t{1} << 60)}) {
    EXPECT_EQ(Ask(request).status().code(), absl::StatusCode::kInvalidArgument)
        << request.DebugString();
  }
  EXPECT_EQ(Ask(RequestFor("none", 1, 0)).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DatasetPiecesTest, EndsWhileCallsWait) {
  Start({.dataset_pieces = 1});
  ASSERT_TRUE(Register("large", 5 << 20).ok());
  const DeafCaller deaf(
      listener_->port(),
      WithoutAWindow() + Calls("GetDataset", 30, RequestFor("large", 1, 0).SerializeAsString()));
  EXPECT_TRUE(Eventually([] { return PiecesUnderWay() == 1; }));
  listener_.reset();
  EXPECT_TRUE(Eventually([] { return PiecesUnderWay() == 0; }));
}

}  // namespace
}  // namespace penstock::control
