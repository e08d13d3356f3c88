// SPDX-License-Identifier: Apache-2.0
// A dispatcher in this process. Tests drive it over real streams by hand (peers.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "penstock/server.h"
#include "tests/control/dispatcher/peers.h"

namespace penstock::control {

inline DatasetSummary Summary(uint64_t fingerprint, int64_t splits = 10, bool endless = false) {
  return {.fingerprint = fingerprint,
          .spec_text = "TensorSpec([], int64)",
          .cardinality = endless ? kInfinite : splits,
          .ends = !endless,
          .nodes = {{"Range#0", 1}, {"Batch#1", fingerprint}},
          .plan = {{.node = "Range#0", .count = splits}}};
}

class DispatcherTest : public ::testing::Test {
 protected:
  void Start(DispatcherConfig config = {}) {
    auto server = DispatchServer::Start(config);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    auto stub = DispatcherStub::Make(server_->target());
    ASSERT_TRUE(stub.ok()) << stub.status();
    stub_ = *std::move(stub);
  }
  // Starts another dispatcher at the same address and journal.
  void Restart(DispatcherConfig config) {
    config.port = server_->port();
    stub_.reset();
    server_.reset();
    Start(config);
  }

  RequestId NewRequest() { return {Incarnation(77), ++requests_}; }

  JobAnswer MakeJob(const std::string& name, ShardingPolicy mode = ShardingPolicy::kDynamic,
                    AckMode ack_mode = AckMode::kOnDelivery, int64_t splits = 10,
                    bool endless = false) {
    auto dataset = stub_->GetOrRegisterDataset({.request = NewRequest(),
                                                .definition = "definition",
                                                .summary = Summary(11, splits, endless)},
                                               {});
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    auto job = stub_->GetOrCreateJob({.request = NewRequest(),
                                      .name = name,
                                      .dataset_id = dataset->dataset_id,
                                      .terms = {.mode = mode, .ack_mode = ack_mode}},
                                     {});
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(JobAnswer());
  }

  // Returns a config with this test's own journal, the same in each call.
  DispatcherConfig Journaled() {
    if (folder_.empty()) {
      folder_ = ::testing::TempDir() + "/dispatcher_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name();
      std::filesystem::remove_all(folder_);
    }
    return {.work_dir = folder_, .fault_tolerant_mode = true};
  }

  std::string folder_;
  std::unique_ptr<DispatchServer> server_;
  std::unique_ptr<DispatcherStub> stub_;
  uint64_t requests_ = 0;
};

inline const CallOptions kOnce = {.timeout = absl::Seconds(20)};

}  // namespace penstock::control
