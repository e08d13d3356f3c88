// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/pool.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "dataplane/element/error_block.h"
#include "dataplane/memory/element_limit.h"
#include "dataplane/memory/heap_pool.h"
#include "penstock/check.h"

namespace penstock {

std::shared_ptr<Pool> Pool::Create(PoolOptions options) {
  return RegisteredPool(options, nullptr);
}

std::shared_ptr<Pool> RegisteredPool(PoolOptions options, std::shared_ptr<Registrar> registrar) {
  return std::shared_ptr<Pool>(new HeapPool(options, std::move(registrar)),
                               [](Pool* pool) { static_cast<HeapPool*>(pool)->Close(); });
}

Pool& DefaultPool() {
  static Pool& pool = *new HeapPool({});  // never ends: elements may live in other statics
  return pool;
}

Element OpenBlock::Seal(const Spec& spec) && {
  PENSTOCK_CHECK(writer.StringsComplete());
  return Element(std::move(loan), writer.block(), spec);
}

absl::StatusOr<OpenBlock> NewBlock(Pool& pool, const BlockLayout& layout, const Spec& spec,
                                   int64_t place) {
  const uint64_t bytes = layout.head_bytes() + layout.body_bytes();
  if (bytes > static_cast<uint64_t>(MostElementBytes()))
    return AboveElementLimit(absl::StrCat("an element of ", bytes, " bytes"));
  absl::StatusOr<Loan> loan = pool.LendBlockAt(place, layout.head_bytes(), layout.body_bytes());
  if (!loan.ok()) return loan.status();
  BlockWriter writer(layout, loan->bytes(), spec);
  return OpenBlock{.loan = *std::move(loan), .writer = writer};
}

absl::StatusOr<Element> MakeElement(Pool& pool, absl::Span<const Tensor> tensors, const Spec& spec,
                                    int64_t place) {
  PENSTOCK_CHECK(tensors.size() == spec.leaves().size());
  absl::StatusOr<BlockLayout> layout = LayoutOf(tensors);
  if (!layout.ok()) return layout.status();
  absl::StatusOr<OpenBlock> block = NewBlock(pool, *layout, spec, place);
  if (!block.ok()) return block.status();
  for (size_t i = 0; i < tensors.size(); ++i) block->writer.Copy(i, tensors[i]);
  return std::move(*block).Seal(spec);
}

absl::StatusOr<Element> MakeErrorBlock(Pool& pool, const Identity& identity,
                                       const absl::Status& error) {
  absl::StatusOr<Loan> loan = pool.Lend(ErrorBlockBytes(error));
  if (!loan.ok()) return loan.status();
  WriteErrorBlock(loan->bytes(), identity, error);
  std::byte* block = loan->bytes().data();
  return Element(*std::move(loan), block, Spec());
}

absl::StatusOr<Element> CopyInto(Pool& pool, const Element& element) {
  const absl::Span<const std::byte> from = element.block();
  if (from.empty()) return Element();
  absl::StatusOr<Loan> loan = pool.Lend(from.size());
  if (!loan.ok()) return loan.status();
  std::byte* to = loan->bytes().data();
  std::memcpy(to, from.data(), from.size());
  return Element(*std::move(loan), to, element.spec());
}

absl::StatusOr<Element> CopyOutOfFrame(Pool& pool, Element element) {
  if (element.loan().bytes().size() / 4 < element.block().size()) return element;
  return CopyInto(pool, element);
}

absl::StatusOr<Element> Element::Copy() const {
  return CopyInto(DefaultPool(), *this);
}

}  // namespace penstock
