// SPDX-License-Identifier: Apache-2.0
// Elements arrive as they were sent, in order.
#include "gmock/gmock.h"
#include "tests/dataplane/element/sample.h"
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

}  // namespace

TEST_P(TransportConformance, ElementsAreReceivedInTheOrderTheyWereSent) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  constexpr Index kCount = 5000;
  link->Grant({kCount});
  ASSERT_TRUE(worker->AwaitGranted(kCount));
  for (Index i = 0; i < kCount; ++i) ASSERT_TRUE(worker->link().Send(Number(i)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(kCount));
  EXPECT_EQ(client->indices(), UpTo(kCount));
  Index next = 0;
  for (const Element& element : client->TakeElements()) {
    ASSERT_EQ(element.tensor(0).scalar<int64_t>(), next);
    ASSERT_EQ(element.identity(), IdentityOf(next++));
  }
  EXPECT_TRUE(worker->AwaitReceived(kCount));
}

TEST_P(TransportConformance, ElementsOfEverySizeArriveWhole) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, BlobSpec());
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  const std::vector<int64_t> sizes = {
      0, 1, 63, 64, 65, 4095, 65'535, 65'536, 3, 1 << 20, (1 << 20) + 1, 16 << 20, 17};
  link->Grant({static_cast<int64_t>(sizes.size())});
  ASSERT_TRUE(worker->AwaitGranted(sizes.size()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_TRUE(worker->link().Send(Blob(i, sizes[i])).ok());
  }
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(sizes.size()));
  EXPECT_EQ(client->indices(), UpTo(sizes.size()));
  Index index = 0;
  for (const Element& element : client->TakeElements()) {
    EXPECT_TRUE(IsBlob(element, index, sizes[index])) << sizes[index] << " bytes";
    ++index;
  }
}

TEST_P(TransportConformance, CompressedElementsArriveWhole) {
  const std::vector<int64_t> sizes = {1, 100, 5000, 300'000, 1 << 20, 40, 2'000'000};
  for (LinkCompression compression :
       {LinkCompression::kAuto, LinkCompression::kSnappy, LinkCompression::kLz4}) {
    auto client = std::make_shared<ClientEnd>();
    DialOptions options = Options(BlobSpec());
    options.hello.compression = compression;
    auto link = transport_.Dial(worker_.address(), options, client);
    ASSERT_TRUE(link.ok()) << link.status();
    std::shared_ptr<WorkerEnd> worker = worker_.Link(static_cast<int>(compression) - 1);
    ASSERT_NE(worker, nullptr);
    (*link)->Grant({static_cast<int64_t>(sizes.size())});
    ASSERT_TRUE(worker->AwaitGranted(sizes.size()));
    for (size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_TRUE(worker->link().Send(Blob(i, sizes[i])).ok());
    }
    worker->link().Flush();
    ASSERT_TRUE(client->AwaitCount(sizes.size()));
    Index index = 0;
    for (const Element& element : client->TakeElements()) {
      EXPECT_TRUE(IsBlob(element, index, sizes[index])) << sizes[index] << " bytes";
      ++index;
    }
    EXPECT_TRUE(worker->AwaitReceived(sizes.size()));
  }
}

TEST_P(TransportConformance, AnElementWithoutTensorsIsAnElement) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, Spec());
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({1});
  ASSERT_TRUE(worker->AwaitGranted(1));
  Element empty = *MakeElement(*sender_pool_, {}, Spec());
  empty.set_identity(IdentityOf(0));
  ASSERT_TRUE(worker->link().Send(std::move(empty)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(1));
  EXPECT_EQ(client->TakeElements()[0].size(), 0u);
}

TEST_P(TransportConformance, AnErrorStandsInTheElementsPlace) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({3});
  ASSERT_TRUE(worker->AwaitGranted(3));
  ASSERT_TRUE(worker->link().Send(Number(0)).ok());
  ASSERT_TRUE(worker->link().Send({IdentityOf(1), absl::DataLossError("train-3 at byte 77")}).ok());
  ASSERT_TRUE(worker->link().Send(Number(2)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(3));
  EXPECT_EQ(client->indices(), UpTo(3));
  EXPECT_THAT(client->errors(), ElementsAre(absl::DataLossError("train-3 at byte 77")));
  EXPECT_TRUE(worker->AwaitReceived(3));
}

TEST_P(TransportConformance, ErrorsInARowKeepTheirOrder) {
  constexpr Index kErrors = 50;
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({kErrors});
  ASSERT_TRUE(worker->AwaitGranted(kErrors));
  for (Index i = 0; i < kErrors; ++i) {
    ASSERT_TRUE(worker->link().Send({IdentityOf(i), absl::DataLossError("bad")}).ok());
  }
  ASSERT_TRUE(client->AwaitCount(kErrors));
  EXPECT_EQ(client->indices(), UpTo(kErrors));
  EXPECT_TRUE(worker->AwaitReceived(kErrors));
}

// Members of a group share an element. Its head has the first member's index.
TEST_P(TransportConformance, ReceiptsNameTheIdentity) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({4});
  ASSERT_TRUE(worker->AwaitGranted(4));
  const auto bytes = static_cast<int64_t>(Number(0).block().size());
  ASSERT_TRUE(worker->link().Send(Number(0)).ok());
  ASSERT_TRUE(worker->link().Send({IdentityOf(1), Number(0)}).ok());
  ASSERT_TRUE(worker->link().Send({IdentityOf(2), absl::DataLossError("bad")}).ok());
  ASSERT_TRUE(worker->link().Send({IdentityOf(3), Number(2)}).ok());
  worker->link().Flush();
  ASSERT_TRUE(worker->AwaitReceived(4));
  const std::vector<Acknowledged> received = worker->acknowledged();
  for (Index i = 0; i < 4; ++i) {
    EXPECT_EQ(received[i].identity, IdentityOf(i));
    EXPECT_EQ(received[i].bytes, i == 2 ? 0 : bytes);
  }
  EXPECT_THAT(client->indices(), ElementsAre(0, 0, 2, 2));
}

TEST_P(TransportConformance, FlushSendsIncompleteFrames) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({1000});
  ASSERT_TRUE(worker->AwaitGranted(1000));
  for (Index i = 0; i < 3; ++i) {  // one more element each time, with most of the credits left
    ASSERT_TRUE(worker->link().Send(Number(i)).ok());
    worker->link().Flush();
    ASSERT_TRUE(client->AwaitCount(i + 1));
  }
}

TEST_P(TransportConformance, AnElementOfAnotherSpecEndsTheLink) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, Scalar(kFloat32));
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({1});
  ASSERT_TRUE(worker->AwaitGranted(1));
  ASSERT_TRUE(worker->link().Send(Number(0)).ok());
  worker->link().Flush();
  EXPECT_EQ(client->AwaitClosed().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(worker->AwaitClosed().ok());
  EXPECT_THAT(worker->unconfirmed(), ElementsAre(0));
  EXPECT_THAT(client->indices(), IsEmpty());
}

TEST_P(TransportConformance, AnElementAboveTheLimitEndsTheLink) {
  auto client = std::make_shared<ClientEnd>();
  DialOptions options = Options(BlobSpec());
  options.max_element_bytes = 100'000;
  auto link = transport_.Dial(worker_.address(), options, client);
  ASSERT_TRUE(link.ok()) << link.status();
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  (*link)->Grant({2});
  ASSERT_TRUE(worker->AwaitGranted(2));
  ASSERT_TRUE(worker->link().Send(Blob(0, 99'000)).ok());
  ASSERT_TRUE(worker->link().Send(Blob(1, 100'001)).ok());
  worker->link().Flush();
  absl::Status reason = client->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kDataLoss) << reason;
  EXPECT_THAT(std::string(reason.message()), HasSubstr("100000"));
  EXPECT_THAT(client->indices(), ElementsAre(0));
}

// A test of its own, in the slow tier.
TEST_P(TransportConformance, AnElementOf256MiBArrivesWhole) {
  constexpr int64_t kBytes = 256 << 20;
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, BlobSpec());
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({3});
  ASSERT_TRUE(worker->AwaitGranted(3));
  for (Index i = 0; i < 3; ++i) {
    const int64_t bytes = i == 1 ? kBytes : 1000;
    ASSERT_TRUE(worker->link().Send(Blob(i, bytes)).ok());
    worker->link().Flush();
    ASSERT_TRUE(client->AwaitCount(i + 1));
    EXPECT_TRUE(IsBlob(client->TakeElements()[0], i, bytes));
  }
  EXPECT_TRUE(worker->AwaitReceived(3));
}

TEST_P(TransportConformance, LeavesOfEveryKindArriveWhole) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, SampleSpec());
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({50});
  ASSERT_TRUE(worker->AwaitGranted(50));
  for (Index i = 0; i < 50; ++i) {
    Element element = SampleElement();
    element.set_identity(IdentityOf(i));
    ASSERT_TRUE(worker->link().Send(std::move(element)).ok());
  }
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(50));
  const Element expected = SampleElement();
  for (const Element& element : client->TakeElements()) {
    ASSERT_EQ(element.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(element.tensor(i).ToString(100), expected.tensor(i).ToString(100)) << i;
    }
    EXPECT_EQ(element["bytes"].string(), "bytes");
    EXPECT_EQ(element["words"].string(2), "you");
    EXPECT_THAT(element["words"].row_splits(0), ElementsAre(0, 1, 3));
    EXPECT_THAT(element["ragged"].row_splits(1), ElementsAre(0, 1, 1, 3));
  }
}

TEST_P(TransportConformance, StringsOfEveryLengthArriveWhole) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, Spec(Bytes()));
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  const std::vector<size_t> lengths = {0, 1, 4096, 65'535, 1 << 20, 0, 3};
  link->Grant({static_cast<int64_t>(lengths.size())});
  ASSERT_TRUE(worker->AwaitGranted(lengths.size()));
  std::vector<std::string> sent;
  for (size_t i = 0; i < lengths.size(); ++i) {
    sent.emplace_back(lengths[i], static_cast<char>('a' + i));
    const uint64_t offsets[] = {0, lengths[i]};
    Element element = *MakeElement(
        *sender_pool_, {Tensor(kString, {}, offsets, sent.back().data())}, Spec(Bytes()));
    element.set_identity(IdentityOf(i));
    ASSERT_TRUE(worker->link().Send(std::move(element)).ok());
  }
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(lengths.size()));
  std::vector<std::string> received;
  for (const Element& element : client->TakeElements()) {
    received.emplace_back(element.tensor(0).string());
  }
  EXPECT_TRUE(received == sent);
}

TEST_P(TransportConformance, AnElementOf200TensorsArrivesWhole) {
  constexpr int kTensors = 200;
  std::vector<Spec> members(kTensors, Spec(Dense(kFloat32, {kUnknownDim})));
  const Spec spec = Spec::Tuple(members);
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, spec);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({20});
  ASSERT_TRUE(worker->AwaitGranted(20));
  for (Index i = 0; i < 20; ++i) {
    std::vector<std::vector<float>> values(kTensors);
    std::vector<int64_t> dims(kTensors);
    std::vector<Tensor> tensors;
    for (int t = 0; t < kTensors; ++t) {
      values[t].assign((t * i) % 1500, static_cast<float>(1000 * i + t));
      dims[t] = static_cast<int64_t>(values[t].size());
      tensors.emplace_back(kFloat32, absl::MakeConstSpan(&dims[t], 1), values[t].data());
    }
    Element element = *MakeElement(*sender_pool_, tensors, spec);
    element.set_identity(IdentityOf(i));
    ASSERT_TRUE(worker->link().Send(std::move(element)).ok());
  }
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(20));
  Index i = 0;
  for (const Element& element : client->TakeElements()) {
    ASSERT_EQ(element.size(), static_cast<size_t>(kTensors));
    for (int t = 0; t < kTensors; ++t) {
      const absl::Span<const float> values = element.tensor(t).data<float>();
      ASSERT_EQ(static_cast<Index>(values.size()), (t * i) % 1500);
      for (float value : values) ASSERT_EQ(value, static_cast<float>(1000 * i + t));
    }
    ++i;
  }
}

}  // namespace penstock::transfer
