// SPDX-License-Identifier: Apache-2.0
// Lost messages: the wire breaks after any byte, either way, and both ends know which of the
// other's messages they can rely on.
#include "tests/dataplane/transfer/wire.h"

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {
namespace {

constexpr Index kCount = 150;

int64_t BytesOf(Index index) {
  return (index * 7919) % 9000;
}

class BrokenWire : public TransportConformance {
 protected:
  // Sends as many of kCount elements as the wire lets through, then compares what each end has
  // seen.
  void SendOver(Wire::Bounds bounds) {
    Worker worker(transport_);
    Index sent = 0;  // used by events of one link
    worker.on_accept = [&](WorkerEnd& end) {
      end.on_credits = [&](SendLink& link, Credits granted) {
        for (int64_t i = 0; i < granted.count && sent < kCount; ++i) {
          if (!link.Send(Blob(sent, BytesOf(sent))).ok()) return;
          ++sent;
        }
        link.Flush();
      };
    };
    auto client = std::make_shared<ClientEnd>();
    {
      Wire wire(worker.address(), bounds);
      auto link = transport_.Dial(wire.address(), Options(BlobSpec()), client);
      ASSERT_TRUE(link.ok()) << link.status();
      for (int i = 0; i < 10; ++i) (*link)->Grant({kCount / 10});
      const absl::Status reason = client->AwaitClosed();
      EXPECT_EQ(reason.code(), absl::StatusCode::kUnavailable) << reason;
    }
    worker.Stop();  // no events from here on

    Index next = 0;
    for (const Element& element : client->TakeElements()) {
      ASSERT_TRUE(IsBlob(element, next, BytesOf(next))) << next;
      ++next;
    }
    const std::vector<std::shared_ptr<WorkerEnd>> ends = worker.links();
    if (ends.empty()) {
      EXPECT_EQ(next, 0);
      return;
    }
    ASSERT_EQ(ends.size(), 1u);
    // Elements that the worker regards as received were received; all others are in doubt.
    const int64_t received = ends[0]->received();
    EXPECT_LE(received, next);
    EXPECT_LE(next, sent);
    std::vector<Index> in_doubt(sent - received);
    std::iota(in_doubt.begin(), in_doubt.end(), received);
    EXPECT_EQ(ends[0]->unconfirmed(), in_doubt);
  }
};

TEST_P(BrokenWire, BreaksAfterAnyByteToTheClient) {
  std::mt19937_64 random(1);
  std::vector<int64_t> bytes = {1, 2, 8, 9, 40, 100};
  for (int i = 0; i < 30; ++i) bytes.push_back(static_cast<int64_t>(random() % 600'000));
  for (int64_t to_client : bytes) {
    SCOPED_TRACE(absl::StrCat("broken behind byte ", to_client, " to the client"));
    SendOver({.to_client = to_client, .reset = to_client % 2 == 0});
  }
}

TEST_P(BrokenWire, BreaksAfterAnyByteToTheWorker) {
  std::mt19937_64 random(2);
  std::vector<int64_t> bytes = {1, 2, 8, 9, 40};
  for (int i = 0; i < 20; ++i) bytes.push_back(static_cast<int64_t>(random() % 2000));
  for (int64_t to_worker : bytes) {
    SCOPED_TRACE(absl::StrCat("broken behind byte ", to_worker, " to the worker"));
    // If everything fits, the wire breaks the other way.
    SendOver({.to_client = 600'000, .to_worker = to_worker, .reset = to_worker % 2 == 0});
  }
}

std::vector<std::string> ProtocolsOverSockets() {
  std::vector<std::string> names = TransportNames();
  std::erase_if(names, [](const std::string& name) { return name != "tcp" && name != "grpc"; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Over, BrokenWire, testing::ValuesIn(ProtocolsOverSockets()),
                         [](const auto& its) { return its.param; });

}  // namespace
}  // namespace penstock::transfer
