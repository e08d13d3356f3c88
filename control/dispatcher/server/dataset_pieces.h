// SPDX-License-Identifier: Apache-2.0
// Answers calls that ask for a piece of a large dataset (control/rpc/dataset_fetcher.h), a limited
// number of them at once, in the order in which they came. A limited number of others wait, and
// hold no bytes of their answers. Includes gRPC; for service.cc only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "absl/time/time.h"
#include "control/dispatcher/server/dataset_parts.h"
#include "control/dispatcher/server/port_bounds.h"
#include "control/dispatcher/server/server_call.h"
#include "control/proto/messages_proto.h"
#include "control/state/state.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock::control {

// Any thread may call any method. A thread of its own makes the answers.
class DatasetPieces {
 public:
  explicit DatasetPieces(const PortLimits& limits) : limits_(limits) {}
  ~DatasetPieces();  // REQUIRES: no call waits

  // Finishes the call, now or later. InvalidArgument if the dataset has no such piece. Unavailable
  // if too many calls wait.
  void Answer(ServerCall* call, std::shared_ptr<const DatasetRecord> dataset,
              const wire::DatasetPieceRequest& piece);

 private:
  struct Waiting {
    ServerCall* call;
    std::shared_ptr<const DatasetRecord> dataset;
    wire::DatasetPieceRequest piece;
  };
  struct Lease;  // of an answer: its parts, and its place among the answers that are under way
  struct Queue {
    Mutex mu;
    Condition changed;
    std::deque<Waiting> waiting GUARDED_BY(mu);
    // When the answers that are under way began, by a number of each.
    std::map<uint64_t, absl::Time> under_way GUARDED_BY(mu);
    uint64_t last GUARDED_BY(mu) = 0;
    bool stopping GUARDED_BY(mu) = false;
  };

  void Run();
  // Returns the first waiting call that is cancelled, which needs no place; if there is none, the
  // oldest one if it has a place. Returns the end if there is no such call.
  std::deque<Waiting>::iterator Next() REQUIRES(queue_->mu);
  // Waits until there is a next call. Returns false if no further one is asked for.
  bool AwaitNext(MutexLock& lock) REQUIRES(queue_->mu);
  void AnswerOne(const Waiting& waiting, uint64_t number);

  const PortLimits limits_;
  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();  // gRPC may outlive this object
  Thread thread_;          // started by the first call; guarded by queue_->mu until then
  KeptDatasetParts kept_;  // used only by the thread
};

}  // namespace penstock::control
