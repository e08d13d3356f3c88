// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/heap_pool.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/huge_pages.h"
#include "dataplane/memory/numa.h"
#include "dataplane/memory/shared_segment.h"
#include "penstock/check.h"

namespace penstock {
namespace {

constexpr size_t kSmallestSlot = 256;                // bytes; head and body of one scalar take 192
constexpr size_t kUsualSegment = size_t{256} << 10;  // bytes; a larger slot gets its own segment
constexpr size_t kMaxSlotsPerSegment = 256;
// Each registration costs a call to the device, and entries in its tables.
constexpr size_t kRegisteredSegment = size_t{8} << 20;  // bytes
// The number of single-slot segments that are kept: one is read while another is filled.
constexpr int kKeptOwnSegments = 2;
// A pool may hold twice the bytes that it has lent, plus this many, before it frees unused
// segments.
constexpr int64_t kMayLieIdle = int64_t{256} << 20;  // bytes
// When a thread other than the borrower returns a slot of at least this size, the slot is set aside
// (FreeSlots::Rest()) instead of being reused at once. Smaller slots are used so briefly that
// setting them aside would cost more than it saves.
constexpr size_t kSmallestResting = size_t{16} << 10;  // bytes
constexpr size_t kBeyondAnyMachine = size_t{1} << 40;  // bytes; an untrusted size may be any number

// Returns an address that identifies this thread among the running threads.
const void* ThisThread() {
  thread_local const char mine = 0;
  return &mine;
}

}  // namespace

// A slot's bookkeeping, separate from its memory. The bookkeeping takes one cache line, so that
// holders of neighbouring slots do not share a line.
struct alignas(64) HeapPool::HeapSlot : Slot {
  HeapSlot* next_free = nullptr;
  Segment* segment = nullptr;
  const void* lent_by = nullptr;  // the thread
  int size_class = 0;
};

struct HeapPool::Segment {
  std::byte* memory = nullptr;
  bool mapped = false;  // with mmap(), else allocated
  size_t bytes = 0;
  std::unique_ptr<HeapSlot[]> slots;
  size_t slot_count = 0;
  size_t free_count = 0;  // guarded by its class's lock
  std::unique_ptr<Registration> registration;

  ~Segment() {
    if (memory == nullptr) return;
    registration.reset();
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    mapped ? static_cast<void>(::munmap(memory, bytes)) : std::free(memory);
  }
};

struct alignas(64) HeapPool::SizeClass {
  mutable Mutex mu;
  std::optional<FreeSlots<HeapSlot>> free GUARDED_BY(mu);
  HeapSlot* kept GUARDED_BY(mu) = nullptr;  // of the last class; the last returned is first
  std::vector<std::unique_ptr<Segment>> segments GUARDED_BY(mu);
  int64_t lent GUARDED_BY(mu) = 0;
  int64_t returned GUARDED_BY(mu) = 0;
  int64_t bytes_lent GUARDED_BY(mu) = 0;
};

int HeapPool::ClassOf(size_t bytes) {
  if (bytes <= kSmallestSlot) return 0;
  const int log = std::bit_width(bytes - 1);  // 2^(log-1) < bytes ≤ 2^log
  const int power = 2 * (log - std::bit_width(kSmallestSlot) + 1);
  const int size_class = bytes <= (size_t{3} << (log - 2)) ? power - 1 : power;
  return std::min(size_class, kClasses);
}

size_t HeapPool::ClassBytes(int size_class) {
  const size_t power = kSmallestSlot << (size_class / 2);
  return size_class % 2 == 0 ? power : power / 2 * 3;
}

HeapPool::HeapPool(PoolOptions options, std::shared_ptr<Registrar> registrar)
    : options_(options),
      take_(options.max_bytes == 0 ? &FreeSlots<HeapSlot>::Take : &FreeSlots<HeapSlot>::TakeAny),
      registrar_(std::move(registrar)),
      classes_(std::make_unique<std::array<SizeClass, kClasses + 1>>()) {
  for (int c = 0; c < kClasses; ++c) {
    SizeClass& its = (*classes_)[c];
    MutexLock lock(its.mu);
    if (ClassBytes(c) < kSmallestResting) {
      its.free.emplace();
    } else {
      its.free.emplace(ClassBytes(c));
    }
  }
}

HeapPool::~HeapPool() = default;

absl::StatusOr<Loan> HeapPool::Lend(size_t bytes) {
  const int size_class = ClassOf(bytes);
  if (size_class == kClasses) return LendOwnSegment(bytes);
  if (Loan free = LendFree((*classes_)[size_class], take_)) return free;
  return Grow(size_class);
}

Loan HeapPool::LendFree(SizeClass& its, TakeSlot take) {
  HeapSlot* slot;
  {
    MutexLock lock(its.mu);
    slot = (*its.free.*take)();
    if (slot == nullptr) return Loan();
    --slot->segment->free_count;
    ++its.lent;
  }
  ASAN_UNPOISON_MEMORY_REGION(slot->data, slot->bytes);
  slot->lent_by = ThisThread();
  slot->holders.store(1, std::memory_order_relaxed);
  return Loan(slot);
}

absl::StatusOr<Loan> HeapPool::Grow(int size_class) {
  SizeClass& its = (*classes_)[size_class];
  const size_t slot_bytes = ClassBytes(size_class);
  MutexLock growing(grow_mu_);
  // Another thread may have grown the class, or returned a slot.
  if (Loan free = LendFree(its, take_)) return free;
  const size_t usual = registrar_ != nullptr ? kRegisteredSegment : kUsualSegment;
  size_t count = std::clamp<size_t>(usual / slot_bytes, 1, kMaxSlotsPerSegment);
  if (options_.max_bytes != 0) {
    const size_t left = options_.max_bytes - std::min<size_t>(options_.max_bytes, reserved_.load());
    count = std::clamp<size_t>(left / slot_bytes, 1, count);
  }
  if (absl::Status reserved = Reserve(count * slot_bytes); !reserved.ok()) return reserved;
  absl::StatusOr<std::unique_ptr<Segment>> segment = NewSegment(count, slot_bytes, size_class);
  if (!segment.ok()) {
    if (Loan resting = LendFree(its, &FreeSlots<HeapSlot>::TakeAny)) return resting;
    return segment.status();
  }
  HeapSlot* slots = (*segment)->slots.get();
  ASAN_POISON_MEMORY_REGION((*segment)->memory + slot_bytes, (*segment)->bytes - slot_bytes);
  (*segment)->free_count = count - 1;  // the first is lent immediately
  slots[0].lent_by = ThisThread();
  slots[0].holders.store(1, std::memory_order_relaxed);
  MutexLock lock(its.mu);
  for (size_t i = count - 1; i > 0; --i) its.free->Put(slots[i]);
  ++its.lent;
  its.segments.push_back(*std::move(segment));
  return Loan(&slots[0]);
}

absl::StatusOr<Loan> HeapPool::LendOwnSegment(size_t bytes) {
  if (bytes > kBeyondAnyMachine) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a slot of ", bytes, " bytes exceeds the memory of any machine"));
  }
  if (Loan kept = LendKept(bytes)) return kept;
  bytes = AlignUp(bytes, kBlockAlignment);
  {
    MutexLock growing(grow_mu_);
    if (absl::Status reserved = Reserve(bytes); !reserved.ok()) return reserved;
  }
  // Done without the lock, because allocating and registering this much memory is slow.
  absl::StatusOr<std::unique_ptr<Segment>> segment = NewSegment(1, bytes, kClasses);
  if (!segment.ok()) return segment.status();
  HeapSlot& slot = (*segment)->slots[0];
  slot.holders.store(1, std::memory_order_relaxed);
  SizeClass& own = (*classes_)[kClasses];
  MutexLock lock(own.mu);
  ++own.lent;
  own.bytes_lent += static_cast<int64_t>(slot.bytes);
  own.segments.push_back(*std::move(segment));
  return Loan(&slot);
}

Loan HeapPool::LendKept(size_t bytes) {
  SizeClass& own = (*classes_)[kClasses];
  MutexLock lock(own.mu);
  for (HeapSlot** link = &own.kept; *link != nullptr; link = &(*link)->next_free) {
    HeapSlot* const slot = *link;
    if (slot->bytes < bytes || slot->bytes / 3 * 2 > bytes) continue;
    *link = slot->next_free;
    --slot->segment->free_count;
    ++own.lent;
    own.bytes_lent += static_cast<int64_t>(slot->bytes);
    ASAN_UNPOISON_MEMORY_REGION(slot->data, slot->bytes);
    slot->holders.store(1, std::memory_order_relaxed);
    return Loan(slot);
  }
  return Loan();
}

absl::StatusOr<std::unique_ptr<HeapPool::Segment>> HeapPool::NewSegment(size_t count,
                                                                        size_t slot_bytes,
                                                                        int size_class) {
  const size_t bytes = count * slot_bytes;
  auto segment = std::make_unique<Segment>();
  // The effect of madvise() stays with an address range, so this memory is mapped separately from
  // the heap.
  segment->mapped = bytes >= kHugePageBytes;
  const size_t alignment = registrar_ != nullptr ? kPageBytes : kBlockAlignment;
  void* const memory =
      segment->mapped ? MapAligned(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)
                      : std::aligned_alloc(alignment, AlignUp(bytes, alignment));
  if (memory == nullptr || memory == MAP_FAILED) {
    reserved_.fetch_sub(static_cast<int64_t>(bytes));
    return absl::ResourceExhaustedError(
        absl::StrCat("the system has no memory for a segment of ", bytes, " bytes"));
  }
  segment->memory = static_cast<std::byte*>(memory);
  segment->bytes = bytes;
  if (segment->mapped) {
    PreferHuge(absl::MakeSpan(segment->memory, bytes));
    PreferMemoryNode(absl::MakeSpan(segment->memory, bytes));
  }
  if (registrar_ != nullptr) {
    auto registration = registrar_->Register(absl::MakeSpan(segment->memory, bytes));
    if (!registration.ok()) {
      reserved_.fetch_sub(static_cast<int64_t>(bytes));
      return registration.status();
    }
    segment->registration = *std::move(registration);
    if (segment->registration != nullptr) registrations_.fetch_add(1, std::memory_order_relaxed);
  }
  segment->slot_count = count;
  segment->slots = std::make_unique<HeapSlot[]>(count);
  for (size_t i = 0; i < count; ++i) {
    HeapSlot& slot = segment->slots[i];
    slot.data = segment->memory + i * slot_bytes;
    slot.bytes = slot_bytes;
    slot.owner = this;
    slot.segment = segment.get();
    slot.size_class = size_class;
  }
  segments_allocated_.fetch_add(1, std::memory_order_relaxed);
  return segment;
}

absl::Status HeapPool::Reserve(size_t bytes) {
  const auto fits = [&] {
    return options_.max_bytes == 0 ||
           bytes <= options_.max_bytes - std::min<size_t>(options_.max_bytes, reserved_.load());
  };
  if (!fits() || TooMuchLiesIdle()) ReleaseFreeSegments();
  if (!fits()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a slot of ", bytes, " bytes does not fit: ", reserved_.load(), " of the pool's ",
        options_.max_bytes, " bytes are in use; release elements or raise max_bytes"));
  }
  reserved_.fetch_add(static_cast<int64_t>(bytes));
  return absl::OkStatus();
}

bool HeapPool::TooMuchLiesIdle() const {
  const int64_t reserved = reserved_.load();
  return reserved > kMayLieIdle && reserved > 2 * counters().bytes_lent + kMayLieIdle;
}

void HeapPool::ReleaseFreeSegments() {
  const auto idle = [](const Segment& segment) { return segment.free_count == segment.slot_count; };
  for (SizeClass& its : *classes_) {
    std::vector<std::unique_ptr<Segment>> freed;  // destroyed after the lock is released
    MutexLock lock(its.mu);
    if (its.free.has_value()) {
      its.free->RemoveIf([&](const HeapSlot& slot) { return idle(*slot.segment); });
    }
    if (!its.free.has_value()) its.kept = nullptr;  // all kept segments are idle
    const auto first =
        std::partition(its.segments.begin(), its.segments.end(),
                       [&](const std::unique_ptr<Segment>& segment) { return !idle(*segment); });
    freed.assign(std::make_move_iterator(first), std::make_move_iterator(its.segments.end()));
    its.segments.erase(first, its.segments.end());
    for (const std::unique_ptr<Segment>& segment : freed) {
      reserved_.fetch_sub(static_cast<int64_t>(segment->bytes));
    }
  }
}

void HeapPool::TakeBack(Slot* returned) noexcept {
  auto* slot = static_cast<HeapSlot*>(returned);
  SizeClass& its = (*classes_)[slot->size_class];
  std::unique_ptr<Segment> own;  // destroyed after the lock is released
  bool closed;
  ASAN_POISON_MEMORY_REGION(slot->data, slot->bytes);
  const bool elsewhere = slot->lent_by != ThisThread();
  {
    MutexLock lock(its.mu);
    if (slot->size_class == kClasses) {
      slot->next_free = std::exchange(its.kept, slot);
    } else {
      elsewhere ? its.free->Rest(*slot) : its.free->Put(*slot);
    }
    ++slot->segment->free_count;
    ++its.returned;
    if (slot->size_class == kClasses) own = TakeOldestKept(its, slot->bytes);
    closed = closed_;
  }
  own.reset();
  if (closed && remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

std::unique_ptr<HeapPool::Segment> HeapPool::TakeOldestKept(SizeClass& own, size_t returned) {
  own.mu.AssertHeld();
  own.bytes_lent -= static_cast<int64_t>(returned);
  HeapSlot** link = &own.kept;
  for (int kept = 0; kept < kKeptOwnSegments && *link != nullptr; ++kept) {
    link = &(*link)->next_free;
  }
  if (*link == nullptr) return nullptr;
  auto at = std::find_if(own.segments.begin(), own.segments.end(),
                         [&](const auto& segment) { return segment.get() == (*link)->segment; });
  std::unique_ptr<Segment> oldest = std::move(*at);
  own.segments.erase(at);
  *link = nullptr;
  reserved_.fetch_sub(static_cast<int64_t>(oldest->bytes));
  return oldest;
}

PoolCounters HeapPool::counters() const {
  PoolCounters sum;
  for (int c = 0; c <= kClasses; ++c) {
    const SizeClass& its = (*classes_)[c];
    MutexLock lock(its.mu);
    sum.slots_lent += its.lent;
    sum.slots_returned += its.returned;
    sum.bytes_lent += c == kClasses
                          ? its.bytes_lent
                          : (its.lent - its.returned) * static_cast<int64_t>(ClassBytes(c));
  }
  sum.segments_allocated = segments_allocated_.load(std::memory_order_relaxed);
  sum.registrations = registrations_.load(std::memory_order_relaxed);
  sum.bytes_reserved = reserved_.load(std::memory_order_relaxed);
  return sum;
}

void HeapPool::Close() {
  int64_t lent = 0;
  for (SizeClass& its : *classes_) its.mu.lock();
  for (SizeClass& its : *classes_) lent += its.lent - its.returned;
  // One more, so that a slot that is returned during this call cannot delete the pool.
  remaining_.store(lent + 1);
  closed_ = true;
  for (SizeClass& its : *classes_) its.mu.unlock();
  if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace penstock
