// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/shared_pool.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/element/block.h"
#include "dataplane/element/frame.h"
#include "dataplane/memory/copied.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// The first segment of a size has this many slots; each further segment of that size has as many
// slots as all the earlier ones together.
constexpr uint64_t kFirstSlots = 4;

// All segments of the process's pools, by their begin address.
struct Registry {
  std::atomic<size_t> count{0};
  SharedMutex mu;
  std::map<const std::byte*, std::shared_ptr<const SharedPool::Segment>> segments;  // guarded by mu
};

Registry& TheRegistry() {
  static Registry& registry = *new Registry;  // pools may live in other statics
  return registry;
}

void Register(const std::shared_ptr<const SharedPool::Segment>& segment) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mu);
  registry.segments.emplace(segment->memory.memory().data(), segment);
  registry.count = registry.segments.size();
}

void Unregister(const SharedPool::Segment& segment) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mu);
  registry.segments.erase(segment.memory.memory().data());
  registry.count = registry.segments.size();
}

}  // namespace

struct SharedPool::SharedSlot : Slot {
  std::byte* body = nullptr;
  Owned* of = nullptr;
  SharedSlot* next_free = nullptr;
  size_t present = 0;  // bytes of its body; the borrower may raise it
};

struct SharedPool::Owned {
  std::shared_ptr<Segment> segment = std::make_shared<Segment>();
  std::unique_ptr<SharedSlot[]> slots;
  uint32_t free = 0;

  ~Owned() {
    if (slots == nullptr) return;
    Unregister(*segment);
    segment->given_up = true;
  }
};

std::shared_ptr<SharedPool> SharedPool::Create(const Options& options) {
  return {new SharedPool(options), [](SharedPool* pool) { pool->Close(); }};
}

SharedPool::SharedPool(const Options& options) : options_(options) {}

SharedPool::~SharedPool() = default;

std::optional<SharedPool::Place> SharedPool::Find(absl::Span<const std::byte> block) {
  Registry& registry = TheRegistry();
  if (registry.count.load(std::memory_order_relaxed) == 0) return std::nullopt;
  Place place;
  {
    std::shared_lock lock(registry.mu);
    auto behind = registry.segments.upper_bound(block.data());
    if (behind == registry.segments.begin()) return std::nullopt;
    place.segment = std::prev(behind)->second;
  }
  const absl::Span<const std::byte> memory = place.segment->memory.memory();
  const SlotLayout& layout = place.segment->layout;
  const auto offset = static_cast<size_t>(block.data() - memory.data());
  if (offset >= memory.size()) return std::nullopt;
  place.slot = static_cast<uint32_t>(offset / layout.slot_bytes());
  const size_t body = layout.body_offset(place.slot);
  place.head_bytes = PrefixOf(block.data()).head_bytes;
  if (offset + place.head_bytes != body || block.size() > place.head_bytes + layout.body_bytes) {
    return std::nullopt;
  }
  return place;
}

absl::StatusOr<Loan> SharedPool::Lend(size_t bytes) {
  // A shared slot needs the position of the body, which is known only for a block.
  return DefaultPool().Lend(bytes);
}

absl::StatusOr<Loan> SharedPool::LendBlock(size_t head_bytes, size_t body_bytes) {
  if (head_bytes + body_bytes >= kFrameBelow && head_bytes <= kHeadRoom) {
    if (Loan loan = LendFree(head_bytes, body_bytes)) return loan;
    if (Grow(body_bytes)) {
      // If no slot is free, other threads have taken all the new slots.
      if (Loan loan = LendFree(head_bytes, body_bytes)) return loan;
    }
  }
  return DefaultPool().Lend(head_bytes + body_bytes);
}

Loan SharedPool::LendFree(size_t head_bytes, size_t body_bytes) {
  SharedSlot* slot;
  {
    MutexLock lock(mu_);
    slot = TakeFree(body_bytes);
    if (slot == nullptr) return Loan();
    ++counters_.slots_lent;
    counters_.bytes_lent += static_cast<int64_t>(slot->of->segment->layout.slot_bytes());
    ++lent_;
  }
  slot->data = slot->body - head_bytes;
  slot->bytes = head_bytes + slot->of->segment->layout.body_bytes;
  slot->holders.store(1, std::memory_order_relaxed);
  Loan loan(slot);
  return MakePresent(*slot, body_bytes).ok() ? std::move(loan) : Loan();
}

absl::Status SharedPool::MakePresent(SharedSlot& slot, size_t body_bytes) {
  if (body_bytes <= slot.present) return absl::OkStatus();
  const size_t present = AlignUp(body_bytes, kPageBytes);
  const size_t before = slot.present == 0 ? kHeadRoom : 0;
  RETURN_IF_ERROR(slot.of->segment->memory.MakePresent(
      absl::MakeSpan(slot.body + slot.present - before, before + present - slot.present)));
  slot.present = present;
  return absl::OkStatus();
}

SharedPool::SharedSlot* SharedPool::TakeFree(size_t body_bytes) {
  // A slot of twice the size is better than none.
  for (auto list = free_.lower_bound(body_bytes);
       list != free_.end() && list->first / 2 <= std::max(body_bytes, kFrameBelow); ++list) {
    SharedSlot* slot = list->second;
    if (slot == nullptr) continue;
    list->second = slot->next_free;
    --slot->of->free;
    return slot;
  }
  return nullptr;
}

void SharedPool::PutFree(SharedSlot& slot) {
  SharedSlot*& first = free_[slot.of->segment->layout.body_bytes];
  slot.next_free = std::exchange(first, &slot);
  ++slot.of->free;
}

SlotLayout SharedPool::Reserve(size_t body_bytes, std::vector<std::unique_ptr<Owned>>& gone) {
  SlotLayout layout = LayoutFor(body_bytes, 1);
  uint64_t slots = 0;
  for (const auto& owned : segments_) {
    if (owned->segment->layout.body_bytes == layout.body_bytes) {
      slots += owned->segment->layout.slots;
    }
  }
  layout = LayoutFor(body_bytes, std::max(slots, kFirstSlots));
  const auto left = [this]() REQUIRES(mu_) {
    return options_.max_bytes - static_cast<size_t>(counters_.bytes_reserved);
  };
  for (size_t i = 0; i < segments_.size() && left() < layout.bytes();) {
    Owned& owned = *segments_[i];
    if (owned.free < owned.segment->layout.slots) {
      ++i;
      continue;
    }
    for (SharedSlot** link = &free_[owned.segment->layout.body_bytes]; *link != nullptr;) {
      SharedSlot** next = &(*link)->next_free;
      if ((*link)->of == &owned) {
        *link = *next;
      } else {
        link = next;
      }
    }
    counters_.bytes_reserved -= static_cast<int64_t>(owned.segment->layout.bytes());
    gone.push_back(std::move(segments_[i]));
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  layout.slots =
      static_cast<uint32_t>(std::min<size_t>(layout.slots, left() / layout.slot_bytes()));
  counters_.bytes_reserved += static_cast<int64_t>(layout.bytes());
  return layout;
}

bool SharedPool::Grow(size_t body_bytes) {
  if (!in_creator_) return false;
  std::vector<std::unique_ptr<Owned>> gone;
  SlotLayout layout;
  {
    MutexLock lock(mu_);
    layout = Reserve(body_bytes, gone);
  }
  gone.clear();
  if (layout.slots == 0) return false;
  absl::StatusOr<SharedSegment> memory =
      SharedSegment::Create(layout.bytes(), SharedSegment::Writers::kOwner);
  MutexLock lock(mu_);
  if (!memory.ok()) {
    counters_.bytes_reserved -= static_cast<int64_t>(layout.bytes());
    return false;
  }
  auto owned = std::make_unique<Owned>();
  owned->segment->memory = *std::move(memory);
  owned->segment->layout = layout;
  owned->segment->max_loan_bytes = options_.max_loan_bytes;
  owned->slots = std::make_unique<SharedSlot[]>(layout.slots);
  for (uint32_t i = layout.slots; i-- > 0;) {
    SharedSlot& slot = owned->slots[i];
    slot.body = owned->segment->memory.memory().data() + layout.body_offset(i);
    slot.owner = this;
    slot.of = owned.get();
    PutFree(slot);
  }
  Register(owned->segment);
  segments_.push_back(std::move(owned));
  ++counters_.segments_allocated;
  return true;
}

void SharedPool::TakeBack(Slot* returned) noexcept {
  if (!in_creator_) return;
  auto* slot = static_cast<SharedSlot*>(returned);
  bool last;
  {
    MutexLock lock(mu_);
    PutFree(*slot);
    ++counters_.slots_returned;
    counters_.bytes_lent -= static_cast<int64_t>(slot->of->segment->layout.slot_bytes());
    last = --lent_ == 0 && closed_;
  }
  if (last) delete this;
}

void SharedPool::Close() {
  bool last;
  {
    MutexLock lock(mu_);
    closed_ = true;
    last = lent_ == 0;
  }
  if (last) delete this;
}

PoolCounters SharedPool::counters() const {
  MutexLock lock(mu_);
  return counters_;
}

Element InSharedSlot(Pool& pool, Element element) {
  const absl::Span<const std::byte> block = element.block();
  if (block.size() < kFrameBelow || SharedPool::Find(block).has_value()) return element;
  const HeadPrefix& prefix = PrefixOf(block.data());
  absl::StatusOr<Loan> loan = pool.LendBlock(prefix.head_bytes, prefix.body_bytes);
  if (!loan.ok()) return element;
  std::byte* const copy = loan->bytes().data();
  CopyCounted(copy, block.data(), block.size());
  return Element(*std::move(loan), copy, element.spec());
}

}  // namespace penstock
