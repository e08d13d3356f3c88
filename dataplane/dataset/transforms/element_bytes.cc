// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/element_bytes.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "include/status_macros.h"

namespace penstock {

std::string_view BytesOf(const Element& element) {
  const absl::Span<std::byte> block = element.block();
  return {reinterpret_cast<const char*>(block.data()), block.size()};
}

absl::StatusOr<Element> ElementFromBytes(Pool& pool, std::string_view bytes, const Spec& spec) {
  if (bytes.size() < sizeof(HeadPrefix)) return absl::DataLossError("too short for an element");
  ASSIGN_OR_RETURN(Loan loan, pool.Lend(bytes.size()));
  const absl::Span<std::byte> memory = loan.bytes().first(bytes.size());
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  const absl::StatusOr<size_t> size = CheckBlock(memory, spec);
  if (!size.ok()) return absl::DataLossError(size.status().message());
  const auto* head = reinterpret_cast<const HeadPrefix*>(memory.data());
  if (*size != bytes.size() || (head->flags & (kFlagEnd | kFlagError)) != 0)
    return absl::DataLossError("the bytes are not an element");
  return Element(std::move(loan), memory.data(), spec);
}

}  // namespace penstock
