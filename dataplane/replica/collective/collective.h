// SPDX-License-Identifier: Apache-2.0
// The interface that carries values between the processes of a group, implemented with NCCL (cuda/)
// and with connections between the processes (host_collective.h). Meant for few calls with small
// values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/replica.h"

namespace penstock::replica {

enum class CollectiveOp : uint8_t { kSum = 0, kMin = 1, kMax = 2 };

// One rank's end of a communicator. As in NCCL, the calls of all ranks are matched only by their
// order, so all ranks must make the same calls in the same order.
//
// Start(), Finish(), AllGather() and Split() are called by one thread at a time. These methods wait
// for the slowest rank, so never call them on a thread that other threads wait for (a transport's
// or a reader's). AsyncError() and Abort() may be called on any thread, at any time.
//
// Once a rank is lost or aborts, every call of another rank that needs the lost rank fails, and so
// does every later call: with Unavailable naming the lost rank, or with the status passed to
// Abort(). Destroying an end before all ranks have finished with the communicator counts as an
// abort.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Begins an elementwise reduction of `values` over all ranks, and returns at once.
  virtual absl::Status Start(CollectiveOp op, absl::Span<const int64_t> values) = 0;
  // Returns the result of the oldest unfinished reduction, once all ranks have started that
  // reduction. FailedPrecondition if no reduction is unfinished.
  virtual absl::StatusOr<std::vector<int64_t>> Finish() = 0;

  // Returns every rank's bytes, by rank. The lengths may differ. REQUIRES: all reductions are
  // finished.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes) = 0;
  // Makes a communicator of the ranks that pass equal values of `color` ≥ 0, in their order in this
  // communicator. The new communicator fails independently of this one. REQUIRES: all reductions
  // are finished.
  virtual absl::StatusOr<std::unique_ptr<Collective>> Split(int color) = 0;

  // Returns the error that ended this communicator; OK while no error is known. Never waits.
  virtual absl::Status AsyncError() const = 0;
  // Ends the communicator for all ranks, with the error `why`. Waiting calls return.
  virtual void Abort(const absl::Status& why) = 0;
};

// The group's connection; nullptr without Connect() or FromNccl().
class ReplicaGroupAccess {
 public:
  static Collective* Connection(const ReplicaGroup& group) { return group.collective_.get(); }
};
inline Collective* CollectiveOf(const ReplicaGroup& group) {
  return ReplicaGroupAccess::Connection(group);
}

// A communicator of all ranks of an NCCL communicator, and the CUDA device of the NCCL communicator
// in this process.
struct NcclRanks {
  std::unique_ptr<Collective> own;
  int device = 0;
};
// Splits a communicator off `communicator` (an ncclComm_t), which must outlive the result. All
// ranks must call this. The linker chooses the implementation (cuda/). Returns Unimplemented
// without CUDA, FailedPrecondition if libnccl.so.2 cannot be opened or is too old.
absl::StatusOr<NcclRanks> CollectiveOfNccl(void* communicator);

}  // namespace penstock::replica
