// SPDX-License-Identifier: Apache-2.0
// A trainer that checks the memory of its elements: reads COUNT elements of WORDS int64
// each over `ucx`, checks their bytes, and fails unless every one is lent out of
// memory that UCX has registered and this process has copied none of them.
//
//   slots_trainer grpc://HOST:PORT COUNT WORDS
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "dataplane/memory/copied.h"
#include "dataplane/transfer/ucx/memory.h"
#include "include/status_macros.h"
#include "tools/soak/numbers.h"

namespace penstock {
namespace {

bool IsRegistered(absl::Span<const std::byte> bytes, const transfer::ucx::Memory& memory) {
  return memory.Find(bytes) != nullptr;
}

absl::Status Read(const std::string& service, int64_t count, int64_t words) {
  ASSIGN_OR_RETURN(Iterator iterator, soak::Numbers(count, words)
                                          .Distribute({.processing_mode = ShardingPolicy::kDynamic,
                                                       .service = service,
                                                       .data_transfer_protocol = "ucx"})
                                          .MakeIterator());
  ASSIGN_OR_RETURN(transfer::ucx::Resources * resources, transfer::ucx::TheResources());
  const std::vector<std::byte> heap(words * sizeof(int64_t));
  if (IsRegistered(heap, *resources->memory)) {
    return absl::InternalError("memory of the heap passes for registered");
  }
  int64_t read = 0;
  for (;; ++read) {
    ASSIGN_OR_RETURN(std::optional<Element> element, iterator.Next());
    if (!element.has_value()) break;
    if (!soak::IsWhole(*element, words)) {
      return absl::DataLossError(
          absl::StrCat("element ", soak::NumberOf(*element), " has wrong bytes"));
    }
    const absl::Span<const int64_t> values = element->tensor(1).data<int64_t>();
    if (!IsRegistered({reinterpret_cast<const std::byte*>(values.data()), words * sizeof(int64_t)},
                      *resources->memory)) {
      return absl::InternalError(
          absl::StrCat("element ", soak::NumberOf(*element), " lies in no registered slot"));
    }
  }
  if (read != count) return absl::DataLossError(absl::StrCat(read, " elements of ", count));
  if (BytesCopied() != 0) return absl::InternalError(absl::StrCat(BytesCopied(), " bytes copied"));
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: slots_trainer SERVICE COUNT WORDS\n");
    return 2;
  }
  const absl::Status status = penstock::Read(argv[1], std::atoll(argv[2]), std::atoll(argv[3]));
  std::cout << "slots_trainer: " << status << std::endl;
  return status.ok() ? 0 : 1;
}
