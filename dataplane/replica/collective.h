// SPDX-License-Identifier: Apache-2.0
// The seam to what carries values between the processes of a group: NCCL (cuda/),
// or the processes themselves (host_collective.h). Few calls, of small values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock::replica {

enum class CollectiveOp : uint8_t { kSum = 0, kMin = 1, kMax = 2 };

// One rank's end of a communicator. As in NCCL, calls of all ranks are matched by
// their order alone: each makes the same ones in the same order.
//
// Start(), Finish(), AllGather() and Split() are for one thread at a time, and never
// for a thread that others wait for (a transport's, a reader's): they wait for the
// slowest rank. AsyncError() and Abort() are for any thread, at any time.
//
// Once a rank is lost or aborts, every call of the others that it has not answered
// fails, now and ever after: Unavailable naming the rank, or what Abort() said.
// Destroying one before all ranks are done with it is such an abort.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Begins to reduce `values` over all ranks, place by place, and returns at once.
  virtual absl::Status Start(CollectiveOp op, absl::Span<const int64_t> values) = 0;
  // The values of the oldest reduction that was started and not finished, once all
  // ranks have started theirs. FailedPrecondition if there is none.
  virtual absl::StatusOr<std::vector<int64_t>> Finish() = 0;

  // What every rank gives, by rank; lengths may differ. REQUIRES: all reductions are
  // finished.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes) = 0;
  // A communicator of the ranks that name the same `color` ≥ 0, in their order here,
  // which fails by itself. REQUIRES: all reductions are finished.
  virtual absl::StatusOr<std::unique_ptr<Collective>> Split(int color) = 0;

  // What ended this communicator; OK while nothing is known. Never waits.
  virtual absl::Status AsyncError() const = 0;
  // Ends it for all ranks, which hear `why`. What waits here returns.
  virtual void Abort(const absl::Status& why) = 0;
};

// A communicator of all ranks of an NCCL communicator, and the CUDA device that it
// uses in this process.
struct NcclRanks {
  std::unique_ptr<Collective> own;
  int device = 0;
};
// Splits it off `communicator` (an ncclComm_t), which must outlive it; all ranks call
// this. The linker chooses what stands behind it (cuda/): Unimplemented without CUDA,
// FailedPrecondition where libnccl.so.2 cannot be opened or is too old.
absl::StatusOr<NcclRanks> CollectiveOfNccl(void* communicator);

}  // namespace penstock::replica
