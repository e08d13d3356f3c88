// SPDX-License-Identifier: Apache-2.0
// A session between a dispatcher and a worker that the test plays.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "control/observe/metrics.h"
#include "control/sync/clock.h"
#include "dataplane/client/session/session.h"
#include "dataplane/memory/pool.h"
#include "gtest/gtest.h"
#include "tests/dataplane/client/fake_dispatcher.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::client {

inline constexpr PartitionId kPartition(1);
inline constexpr WorkerId kWorker(9);
// For tests that wait until it has passed.
inline constexpr absl::Duration kShortTimeout = absl::Milliseconds(400);

class SessionTest : public testing::Test {
 protected:
  explicit SessionTest(std::string protocol = "local")
      : protocol_(std::move(protocol)), worker_(**transfer::FindTransport(protocol_)) {}
  ~SessionTest() override {
    stop_.request_stop();
    session_.reset();
  }

  control::Welcome Welcome(absl::Duration lease = absl::Hours(1)) const {
    control::Welcome welcome = {.iteration = IterationId(6),
                                .life = {.journal = 1, .id = 2, .term = Term(1)},
                                .token = token_,
                                .terms = {.mode = ShardingPolicy::kDynamic, .ack_mode = ack_mode_},
                                .heartbeat_interval = heartbeat_interval_,
                                .lease = lease,
                                .placements = placements_,
                                .version = version_,
                                .partial = partial_};
    if (order_ == MergeOrder::kDeterministic) welcome.passed.resize(placements_.size());
    return welcome;
  }
  control::Membership Membership(Placement placement = Placement(1)) const {
    const transfer::TransportOffer offer = worker_.offer(protocol_);
    return {.version = 1,
            .partitions = {{kPartition, placement, kWorker}},
            .workers = {{kWorker, "w:1", {{offer.protocol, offer.address, offer.compatibility}}}}};
  }

  void Begin(std::optional<IndicesByPartition> state = std::nullopt,
             absl::Duration lease = absl::Hours(1), absl::Duration timeout = absl::Minutes(1),
             bool served = true) {
    SessionOptions options;
    options.distribute.max_outstanding_requests = 8;
    options.distribute.timeout = timeout;
    if (consumers_.has_value()) options.delivery.consumer_index = 0;
    options.delivery.num_consumers = consumers_;
    options.delivery.order = order_;
    options.spec = Scalar(kInt64);
    options.job = {.job = JobId(5), .name = "j", .token = token_};
    options.client = ClientId(3);
    options.incarnation = Incarnation(4);
    options.state = std::move(state);
    options.stop = stop_.get_token();
    options.events = events_;
    options.transport_preference = transport_preference_;
    options.delivers_later = delivers_later_;
    options.delivery.early_end = early_end_;
    absl::StatusOr<std::unique_ptr<Session>> begun =
        Session::Begin(std::move(options), dispatcher_);
    ASSERT_TRUE(begun.ok()) << begun.status();
    session_ = *std::move(begun);
    dispatcher_.Heard<control::ClientHello>();
    dispatcher_.Say(Welcome(lease));
    if (served) dispatcher_.Say(Membership());
  }
  // Returns the worker's end of link number `i`, once it has credits.
  std::shared_ptr<transfer::WorkerEnd> Link(size_t i = 0) {
    std::shared_ptr<transfer::WorkerEnd> end = worker_.Link(i);
    EXPECT_NE(end, nullptr);
    EXPECT_TRUE(end->AwaitGranted(1));
    return end;
  }
  static Identity IdentityOf(Index index, Placement placement = Placement(1)) {
    return {.job = JobId(5),
            .iteration = IterationId(6),
            .partition = kPartition,
            .placement = placement,
            .index = index};
  }
  static absl::Status Send(transfer::SendLink& link, Index index,
                           Placement placement = Placement(1)) {
    Element element = *MakeElement(DefaultPool(), {Tensor(kInt64, {}, &index)}, Scalar(kInt64));
    element.set_identity(IdentityOf(index, placement));
    return link.Send(std::move(element));
  }
  int64_t NextValue() {
    absl::StatusOr<std::optional<Element>> element = session_->Next();
    EXPECT_TRUE(element.ok()) << element.status();
    if (!element.ok() || !element->has_value()) return -1;
    return (*element)->tensor(0).scalar<int64_t>();
  }

  // Waits for this many more heartbeats. They are sent in rounds of the agent that began after this
  // call.
  bool HeartbeatsGoOn(size_t count = 3) {
    const size_t next = dispatcher_.Count<control::ClientHeartbeat>() + count;
    return dispatcher_.Heard<control::ClientHeartbeat>(next).counter != 0;
  }
  bool HeartbeatsGoOnFor(absl::Duration time) {
    const absl::Time end = BootTime() + time;
    while (BootTime() < end) {
      if (!HeartbeatsGoOn()) return false;
    }
    return HeartbeatsGoOn();
  }

  // Collects that set from the reports; waits until it equals `wanted`.
  template <class Set>
  bool Reported(Set control::PartitionReport::*set, const IndexSet& wanted) {
    IndexSet said;
    for (size_t i = 0; i < 100; ++i) {
      for (const control::PartitionReport& of : dispatcher_.Heard<control::Report>(i).partitions)
        said.Add(of.*set);
      if (said == wanted) return true;
    }
    return false;
  }

  AckMode ack_mode_ = AckMode::kOnDelivery;
  absl::Duration heartbeat_interval_ = absl::Milliseconds(5);
  uint32_t version_ = control::VersionRange().max;                         // of the dispatcher
  std::vector<control::Fence> placements_ = {{kPartition, Placement(1)}};  // in its Welcome
  bool partial_ = false;
  bool delivers_later_ = false;
  bool early_end_ = false;
  std::string token_ = "sesame";      // of the job; workers know it
  std::optional<int64_t> consumers_;  // the session is number 0 of them
  MergeOrder order_ = MergeOrder::kAny;
  transfer::TransportPreference transport_preference_;
  std::stop_source stop_;
  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  const std::string protocol_;
  transfer::Worker worker_;
  FakeDispatcher dispatcher_;
  std::unique_ptr<Session> session_;
};

}  // namespace penstock::client
