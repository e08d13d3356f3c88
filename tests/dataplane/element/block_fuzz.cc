// SPDX-License-Identifier: Apache-2.0
// Untrusted bytes as a block and as a frame: a block that passes the check is read in full. The
// corpus has the output of block_corpus.cc and the findings of earlier runs.
#include <cstdint>
#include <cstring>

#include "dataplane/element/block.h"
#include "dataplane/element/device_block_check.h"
#include "dataplane/element/error_block.h"
#include "dataplane/element/frame.h"
#include "dataplane/memory/pool.h"
#include "penstock/check.h"
#include "tests/dataplane/element/sample.h"

namespace penstock {
namespace {

// Touches every value, part and string; the sum keeps the reads.
uint64_t ReadAll(const Element& element) {
  uint64_t sum = 0;
  for (size_t i = 0; i < element.size(); ++i) {
    const Tensor tensor = element.tensor(i);
    if (!tensor.present()) continue;
    const auto* bytes = static_cast<const uint8_t*>(tensor.raw());
    for (size_t k = 0; k < tensor.byte_count(); ++k) sum += bytes[k];
    for (int64_t s = 0; tensor.dtype() == kString && s < tensor.element_count(); ++s)
      for (const char byte : tensor.string(s)) sum += static_cast<uint8_t>(byte);
    for (int level = 0; level < tensor.ragged_rank(); ++level)
      for (const int64_t row : tensor.row_splits(level)) sum += row;
    if (tensor.kind() != TensorSpec::Kind::kSparse) continue;
    for (const int64_t index : tensor.indices()) sum += index;
  }
  return sum + element.ToString().size();
}

void Read(const Element& element) {
  element.identity();
  if (IsError(element)) {
    PENSTOCK_CHECK(!ReadErrorBlock(element).ok());
  } else if ((PrefixOf(element.block().data()).flags & kFlagEnd) == 0) {
    volatile uint64_t sum = ReadAll(element);
    static_cast<void>(sum);
  }
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;  // NOLINT
  static const Spec& spec = *new Spec(SampleSpec());
  // A real slot is larger than the received bytes, and the rest must not be read. Here the slot has
  // just the size of the bytes.
  const size_t slot_bytes = AlignUp(std::max<size_t>(size, 1), kBlockAlignment);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kBlockAlignment, slot_bytes));
  if (size > 0) std::memcpy(memory, data, size);
  struct OneSlot final : SlotOwner {
    void TakeBack(Slot* slot) noexcept override { std::free(slot->data); }
  } owner;
  Slot slot;
  slot.data = memory;
  slot.bytes = slot_bytes;
  slot.owner = &owner;
  slot.holders = 1;
  Loan loan(&slot);
  const bool whole = CheckBlock(absl::MakeConstSpan(memory, size), spec).ok();
  if (whole) Read(Element(loan.Share(), memory, spec));
  // Checks only the head, with a body of any size elsewhere.
  static const Spec& flat = *new Spec(TensorSpec{kInt64, Shape()});
  for (const size_t body_bytes : {size_t{0}, size_t{64}, size - size % 64})
    CheckBlockHead(absl::MakeConstSpan(memory, size), body_bytes, flat).IgnoreError();
  absl::StatusOr<FrameReader> frame = FrameReader::Open(std::move(loan), size, spec);
  if (!frame.ok()) return 0;
  for (;;) {
    absl::StatusOr<std::optional<Element>> element = frame->Next();
    if (!element.ok() || !*element) return 0;
    Read(**element);
  }
}
