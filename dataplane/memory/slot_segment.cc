// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/slot_segment.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/check.h"

namespace penstock {

ReaderView::ReaderView(ReaderView&& other) noexcept
    : here_(other.here_), memory_(std::exchange(other.memory_, {})), layout_(other.layout_) {}

ReaderView& ReaderView::operator=(ReaderView&& other) noexcept {
  if (this != &other) {
    Unmap();
    here_ = other.here_;
    memory_ = std::exchange(other.memory_, {});
    layout_ = other.layout_;
  }
  return *this;
}

ReaderView::~ReaderView() {
  Unmap();
}

void ReaderView::Unmap() {
  if (!memory_.empty() && here_) ::munmap(memory_.data(), memory_.size());
  memory_ = {};
}

absl::StatusOr<ReaderView> ReaderView::Map(const SharedSegment& segment, const SlotLayout& layout) {
  PENSTOCK_CHECK(layout.body_bytes % kPageBytes == 0);
  PENSTOCK_CHECK(layout.bytes() == segment.memory().size());
  constexpr int kReadWrite = PROT_READ | PROT_WRITE;
  void* memory =
      ::mmap(nullptr, layout.bytes(), kReadWrite, MAP_SHARED | MAP_POPULATE, segment.fd(), 0);
  bool mapped = memory != MAP_FAILED;
  ReaderView view;
  view.layout_ = layout;
  if (mapped) view.memory_ = absl::MakeSpan(static_cast<std::byte*>(memory), layout.bytes());
  for (uint32_t slot = 0; mapped && slot < layout.slots; ++slot) {
    void* head = view.body(slot) - kHeadRoom;
    mapped = ::mmap(head, kHeadRoom, kReadWrite,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) == head;
  }
  if (!mapped) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", layout.slots, " shared slots: errno ", errno,
                     "; vm.max_map_count bounds how many a process may have"));
  }
  ::madvise(memory, layout.bytes(), MADV_DONTFORK);
  return view;
}

}  // namespace penstock
