// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/side_by_side.h"

#include <thread>
#include <vector>

namespace penstock::replica {

absl::Status SideBySide(int count, const std::function<absl::Status(int)>& fn) {
  std::vector<absl::Status> results(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int i = 1; i < count; ++i)
    threads.emplace_back([&fn, &results, i] { results[static_cast<size_t>(i)] = fn(i); });
  if (count > 0) results[0] = fn(0);
  for (std::thread& thread : threads) thread.join();
  absl::Status status;
  for (const absl::Status& result : results) status.Update(result);
  return status;
}

}  // namespace penstock::replica
