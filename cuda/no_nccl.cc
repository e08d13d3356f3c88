// SPDX-License-Identifier: Apache-2.0
// CollectiveOfNccl() of a build without CUDA.
#include "dataplane/replica/collective/collective.h"

namespace penstock::replica {

absl::StatusOr<NcclRanks> CollectiveOfNccl(void*) {
  return absl::UnimplementedError(
      "this build has no NCCL support because it was built without CUDA; build it with "
      "PENSTOCK_CUDA=ON, or connect the group's processes with ReplicaGroup::Connect");
}

}  // namespace penstock::replica
