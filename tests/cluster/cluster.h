// SPDX-License-Identifier: Apache-2.0
// A dispatcher and workers in this process, on real sockets of loopback.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "control/dispatcher/server/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"

namespace penstock {

class Cluster {
 public:
  explicit Cluster(int workers, DispatcherConfig config = {},
                   protocol::Broken broken = protocol::Broken::kNone)
      : config_(std::move(config)), broken_(broken) {
    StartDispatcher();
    for (int i = 0; i < workers; ++i) AddWorker();
  }
  ~Cluster() {
    for (auto& worker : workers_) worker->Stop();
    if (dispatcher_) dispatcher_->Stop();
  }

  std::string service() const { return dispatcher_->target(); }
  DispatchServer& dispatcher() { return *dispatcher_; }
  WorkerServer& worker(size_t i) { return *workers_[i]; }
  size_t size() const { return workers_.size(); }

  void AddWorker(WorkerConfig config = {}) {
    config.dispatcher_address = service();
    config.heartbeat_interval = absl::Milliseconds(100);
    absl::StatusOr<std::unique_ptr<WorkerServer>> worker = WorkerServer::Start(std::move(config));
    ASSERT_TRUE(worker.ok()) << worker.status();
    workers_.push_back(*std::move(worker));
  }
  void RemoveWorker(size_t i) {
    workers_[i]->Stop();
    workers_.erase(workers_.begin() + i);
  }
  // Stops the dispatcher and starts another on the same port and journal.
  void RestartDispatcher() {
    StopDispatcher();
    StartDispatcher();
  }
  void StopDispatcher() {
    config_.port = dispatcher_->port();
    dispatcher_->Stop();
    dispatcher_.reset();
  }
  void StartDispatcher() {
    config_.heartbeat_interval = absl::Milliseconds(100);
    absl::StatusOr<std::unique_ptr<DispatchServer>> dispatcher =
        control::StartDispatchServer(config_, broken_);
    ASSERT_TRUE(dispatcher.ok()) << dispatcher.status();
    dispatcher_ = *std::move(dispatcher);
  }

  // Returns options that distribute through this cluster.
  DistributeOptions Options(ShardingPolicy mode, std::string job_name = "") const {
    return {.processing_mode = mode, .service = service(), .job_name = std::move(job_name)};
  }

 private:
  DispatcherConfig config_;
  protocol::Broken broken_;
  std::unique_ptr<DispatchServer> dispatcher_;
  std::vector<std::unique_ptr<WorkerServer>> workers_;
};

// Returns all int64 scalars of one pass, in the order they came. An error fails the test.
inline std::vector<int64_t> ReadAll(Iterator& it) {
  std::vector<int64_t> values;
  while (true) {
    absl::StatusOr<std::optional<Element>> element = it.Next();
    EXPECT_TRUE(element.ok()) << element.status();
    if (!element.ok() || !element->has_value()) return values;
    values.push_back((*element)->tensor(0).scalar<int64_t>());
  }
}

inline std::vector<int64_t> ReadAll(const Dataset& dataset) {
  absl::StatusOr<Iterator> it = dataset.MakeIterator();
  EXPECT_TRUE(it.ok()) << it.status();
  return it.ok() ? ReadAll(*it) : std::vector<int64_t>();
}

inline std::vector<int64_t> Sorted(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

// 0 … count - 1.
inline std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// Returns an iterator over the dataset. An error fails the test.
inline Iterator IteratorOf(const Dataset& dataset) {
  absl::StatusOr<Iterator> it = dataset.MakeIterator();
  EXPECT_TRUE(it.ok()) << it.status();
  return *std::move(it);
}

// Returns the error of making its iterator, or else of the first step.
inline absl::Status FirstError(const Dataset& dataset) {
  absl::StatusOr<Iterator> it = dataset.MakeIterator();
  return it.ok() ? it->Next().status() : it.status();
}

}  // namespace penstock
