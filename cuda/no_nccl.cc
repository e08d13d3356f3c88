// SPDX-License-Identifier: Apache-2.0
// CollectiveOfNccl() of a build without CUDA.
#include "dataplane/replica/collective.h"

namespace penstock::replica {

absl::StatusOr<NcclRanks> CollectiveOfNccl(void*) {
  return absl::UnimplementedError(
      "this Penstock was built without CUDA, and knows no NCCL; build it with PENSTOCK_CUDA=ON, or "
      "connect the group's processes with ReplicaGroup::Connect");
}

}  // namespace penstock::replica
