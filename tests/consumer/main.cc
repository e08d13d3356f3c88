// SPDX-License-Identifier: Apache-2.0
// Reads ten elements, in process and through a service of its own.
#include <cstdio>

#include "penstock/penstock.h"

namespace ps = penstock;

absl::Status Run() {
  ps::Dataset squares = ps::Dataset::Range(10).Map([](auto x) { return x * x; });
  for (absl::StatusOr<ps::Element>& element : squares.Elements()) {
    if (!element.ok()) return element.status();
    std::printf("%lld ", static_cast<long long>(element->tensor(0).scalar<int64_t>()));
  }
  PENSTOCK_ASSIGN_OR_RETURN(auto dispatcher, ps::DispatchServer::Start());
  PENSTOCK_ASSIGN_OR_RETURN(auto worker,
                            ps::WorkerServer::Start({.dispatcher_address = dispatcher->target()}));
  PENSTOCK_ASSIGN_OR_RETURN(ps::Iterator it,
                            squares
                                .Distribute({.processing_mode = ps::ShardingPolicy::kDynamic,
                                             .service = dispatcher->target()})
                                .MakeIterator());
  int64_t sum = 0;
  while (true) {
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<ps::Element> element, it.Next());
    if (!element) break;
    sum += element->tensor(0).scalar<int64_t>();
  }
  std::printf("sum %lld\n", static_cast<long long>(sum));
  return sum == 285 ? absl::OkStatus() : absl::InternalError("the sum is wrong");
}

int main() {
  if (absl::Status status = Run(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
