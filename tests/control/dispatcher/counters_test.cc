// SPDX-License-Identifier: Apache-2.0
// The counters of a dispatcher, as a scraper sees them.
#include "control/dispatcher/monitoring/counters.h"

#include <memory>
#include <string>

#include "control/dispatcher/core.h"
#include "control/observe/metrics.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/deaf.h"
#include "tests/control/dispatcher/fixed_tokens.h"

namespace penstock::control {
namespace {

class CountersTest : public ::testing::Test {
 protected:
  CountersTest() {
    CoreOptions options;
    options.now = [] { return absl::UnixEpoch(); };
    options.random = [this] { return ++random_; };
    options.job_tokens = FixedTokens;
    options.port_refuses = [](const std::string&) { return false; };
    options.events = SilentEventLog();
    core_ = Core::Open(std::move(options), OpenMemoryJournal()).value();
    DatasetSummary summary;
    summary.plan.push_back({.node = "Range#0", .count = 10});
    core_->RegisterDataset({.dataset_id = "numbers", .summary = summary},
                           [](const auto& answer) { EXPECT_TRUE(answer.ok()) << answer.status(); });
  }

  JobAnswer Job(const std::string& name, const JobTerms& terms) {
    JobAnswer job;
    core_->GetOrCreateJob({.name = name, .dataset_id = "numbers", .terms = terms},
                          [&](const auto& answer) {
                            ASSERT_TRUE(answer.ok()) << answer.status();
                            job = *answer;
                          });
    return job;
  }
  void Reads(const JobAnswer& job, uint64_t client, uint64_t incarnation, int64_t consumer = -1) {
    core_->OnMessage(core_->OpenClient(std::make_shared<Deaf<ClientDown>>()),
                     ClientHello{.job = job.job,
                                 .client = ClientId(client),
                                 .incarnation = Incarnation(incarnation),
                                 .consumer = consumer,
                                 .token = job.token});
  }
  static int64_t Value(const std::string& name, const Labels& labels) {
    return ProcessMetrics().GetCounter(name, "", labels).value();
  }

  uint64_t random_ = 0;
  std::unique_ptr<Core> core_;
};

TEST_F(CountersTest, WorkersThatJoinAndAreLost) {
  const auto joined = [] {
    return Value("penstock_dispatcher_events_total", {{"event", "joined"}});
  };
  const auto lost = [] { return Value("penstock_dispatcher_events_total", {{"event", "lost"}}); };
  const int64_t joined_before = joined(), lost_before = lost();
  for (uint64_t id : {1, 2, 2}) {  // the second stream of a worker does not count as another worker
    const auto worker = core_->OpenWorker(std::make_shared<Deaf<WorkerDown>>());
    core_->OnMessage(worker, WorkerHello{.worker = WorkerId(id), .address = "worker:1"});
    if (id == 1) core_->OnMessage(worker, WorkerLeave{});
  }
  EXPECT_EQ(joined() - joined_before, 2);
  EXPECT_EQ(lost() - lost_before, 1);
}

TEST_F(CountersTest, CountNewClientsByKindOfReading) {
  const auto count = [](const char* mode, const char* target, const char* coordinated) {
    return Value("penstock_dispatcher_iterators_total",
                 {{"mode", mode}, {"target_workers", target}, {"coordinated", coordinated}});
  };
  const int64_t off_before = count("OFF", "auto", "no"), any_before = count("DYNAMIC", "any", "no"),
                rounds_before = count("OFF", "auto", "yes");
  const JobAnswer plain = Job("plain", {});
  Reads(plain, 5, 1);
  Reads(plain, 5, 1);  // its stream broke
  Reads(plain, 6, 1);
  Reads(Job("all", {.mode = ShardingPolicy::kDynamic, .target_workers = TargetWorkers::kAny}), 7,
        1);
  const JobAnswer rounds = Job("rounds", {.num_consumers = 2});
  Reads(rounds, 8, 1, 0);
  Reads(rounds, 9, 1, 1);
  EXPECT_EQ(count("OFF", "auto", "no") - off_before, 2);
  EXPECT_EQ(count("DYNAMIC", "any", "no") - any_before, 1);
  EXPECT_EQ(count("OFF", "auto", "yes") - rounds_before, 2);
}

}  // namespace
}  // namespace penstock::control
