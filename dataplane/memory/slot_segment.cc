// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/slot_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/heap_pool.h"
#include "dataplane/memory/huge_pages.h"
#include "penstock/check.h"

namespace penstock {
namespace {

constexpr size_t kSmallestBody = 64 << 10;    // bytes; smaller elements travel in frames
constexpr size_t kLargestSegment = 64 << 20;  // bytes, unless the segment has only one slot
constexpr uint64_t kMaxBody = uint64_t{1} << 40;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;

// Returns true if any page in the range is this process's own rather than the mapped file's
// (pagemap, see proc(5)), or if this is not known.
bool AnyOwnPage(const std::byte* memory, size_t bytes) {
  constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62;
  constexpr uint64_t kOfFile = uint64_t{1} << 61;
  constexpr uint64_t kMappedOnce = uint64_t{1} << 56;
  static const Descriptor& pagemap =
      *new Descriptor(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::array<uint64_t, 512> pages;
  const uintptr_t first = reinterpret_cast<uintptr_t>(memory) / kPageBytes;
  for (size_t done = 0; done < bytes / kPageBytes;) {
    const size_t count = std::min(pages.size(), bytes / kPageBytes - done);
    const auto length = static_cast<ssize_t>(count * sizeof(uint64_t));
    if (::pread(pagemap.get(), pages.data(), count * sizeof(uint64_t),
                static_cast<off_t>((first + done) * sizeof(uint64_t))) != length) {
      return true;
    }
    for (size_t i = 0; i < count; ++i) {
      if ((pages[i] & (kPresent | kSwapped)) == 0 || (pages[i] & kOfFile) != 0) continue;
      // Linux before 6.11 does not set kOfFile for huge pages. The file's huge pages are mapped
      // more than once, because the file's owner maps them too.
      if ((pages[i] & kSwapped) != 0 || (pages[i] & kMappedOnce) != 0) return true;
    }
    done += count;
  }
  return false;
}

}  // namespace

SlotLayout LayoutFor(size_t bytes, uint64_t count) {
  const int size_class = HeapPool::ClassOf(std::max(bytes, kSmallestBody));
  SlotLayout layout;
  layout.body_bytes = AlignUp(
      size_class < HeapPool::kClasses ? HeapPool::ClassBytes(size_class) : bytes, kPageBytes);
  const size_t fit = std::max<size_t>(kLargestSegment / layout.slot_bytes(), 1);
  layout.slots =
      static_cast<uint32_t>(std::clamp<uint64_t>(count, 1, std::min<uint64_t>(fit, kMaxSlots)));
  return layout;
}

bool IsPossible(uint64_t slots, uint64_t body_bytes) {
  return slots > 0 && slots <= kMaxSlots && body_bytes > 0 && body_bytes % kPageBytes == 0 &&
         body_bytes <= kMaxBody;
}

SlotView::SlotView(SlotView&& other) noexcept
    : in_creator_(other.in_creator_),
      memory_(std::exchange(other.memory_, {})),
      layout_(other.layout_),
      private_(other.private_) {}

SlotView& SlotView::operator=(SlotView&& other) noexcept {
  if (this != &other) {
    Unmap();
    in_creator_ = other.in_creator_;
    memory_ = std::exchange(other.memory_, {});
    layout_ = other.layout_;
    private_ = other.private_;
  }
  return *this;
}

SlotView::~SlotView() {
  Unmap();
}

void SlotView::Unmap() {
  if (!memory_.empty() && in_creator_) ::munmap(memory_.data(), memory_.size());
  memory_ = {};
}

absl::StatusOr<SlotView> SlotView::Map(int segment, const SlotLayout& layout) {
  PENSTOCK_CHECK(layout.body_bytes % kPageBytes == 0);
  void* memory = MapAligned(layout.bytes(), kReadWrite, MAP_SHARED, segment);
  bool mapped = memory != MAP_FAILED;
  SlotView view;
  view.layout_ = layout;
  if (mapped) view.memory_ = absl::MakeSpan(static_cast<std::byte*>(memory), layout.bytes());
  for (uint32_t slot = 0; mapped && slot < layout.slots; ++slot) {
    void* head = view.body(slot) - kHeadRoom;
    mapped =
        ::mmap(head, kHeadRoom, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == head;
  }
  if (!mapped) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", layout.slots, " shared slots: errno ", errno,
                     "; vm.max_map_count limits the mappings of a process"));
  }
  // Done after the heads are mapped, because their mappings split mappings of huge pages.
  bool populated = false;
#ifdef MADV_POPULATE_WRITE
  populated = ::madvise(memory, layout.bytes(), MADV_POPULATE_WRITE) == 0;
#endif
  for (size_t page = 0; !populated && page < layout.bytes(); page += kPageBytes) {
    static_cast<void>(
        *static_cast<volatile std::byte*>(view.memory_.data() + page));  // Linux < 5.14
  }
  ::madvise(memory, layout.bytes(), MADV_DONTFORK);
  return view;
}

absl::StatusOr<SlotView> SlotView::MapPrivate(const Descriptor& segment, const SlotLayout& layout) {
  PENSTOCK_CHECK(layout.body_bytes % kPageBytes == 0);
  void* memory = MapAligned(layout.bytes(), kReadWrite, MAP_PRIVATE, segment.get());
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", layout.slots, " slots of another process: errno ", errno));
  }
  ::madvise(memory, layout.bytes(), MADV_DONTFORK);
  SlotView view;
  view.layout_ = layout;
  view.memory_ = absl::MakeSpan(static_cast<std::byte*>(memory), layout.bytes());
  view.private_ = true;
  return view;
}

void SlotView::DropWritten(uint32_t slot) const {
  PENSTOCK_CHECK(private_);
  if (AnyOwnPage(body(slot), layout_.body_bytes)) {
    ::madvise(body(slot), layout_.body_bytes, MADV_DONTNEED);
  }
}

}  // namespace penstock
