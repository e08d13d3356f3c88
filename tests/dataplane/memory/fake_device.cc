// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/memory/fake_device.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock {
namespace {

// The recordings of one event: how many there were, and how many were reached.
struct Mark {
  int64_t recorded = 0;
  int64_t reached = 0;
};

// One piece of a stream's work.
struct Work {
  enum class Kind { kCopy, kRecord, kWait } kind;
  std::shared_ptr<Mark> mark;  // kRecord, kWait
  int64_t recording = 0;
  void* to = nullptr;  // kCopy
  const void* from = nullptr;
  size_t bytes = 0;
  bool to_host = false;
};

struct Queue {
  int64_t number = 0;
  int device = 0;
  void* named = nullptr;        // its handle, if it is one of CUDA's names of default streams
  std::thread::id thread = {};  // its thread, if each thread has its own stream of that name
  std::deque<Work> work = {};
};

bool IsNamed(const void* native) {
  return native == LegacyDefaultStream() || native == PerThreadDefaultStream();
}

thread_local int contexts = 0;  // that this thread is in

bool Overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto from = reinterpret_cast<uintptr_t>(a), other = reinterpret_cast<uintptr_t>(b);
  return from < other + b_bytes && other < from + a_bytes;
}

// Pieces of memory by their first address.
class Ranges {
 public:
  void Add(const void* at, size_t bytes) { ranges_[at] = bytes; }
  void Remove(const void* at) { ranges_.erase(at); }
  bool Touch(const void* at, size_t bytes) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
      return Overlap(range.first, range.second, at, bytes);
    });
  }
  bool Contain(const void* at, size_t bytes) const {
    const auto after = ranges_.upper_bound(at);
    if (after == ranges_.begin()) return false;
    const auto& [begin, length] = *std::prev(after);
    const size_t offset = static_cast<const std::byte*>(at) - static_cast<const std::byte*>(begin);
    return offset <= length && bytes <= length - offset;
  }

 private:
  std::map<const void*, size_t> ranges_;
};

}  // namespace

struct FakeDevice::World {
  mutable std::mutex mu;
  std::condition_variable came;  // signals work, or a reason to look
  // All members below are guarded by mu.
  int devices;
  std::vector<std::shared_ptr<Queue>> queues;
  Ranges memory;
  Ranges locked;
  int64_t locked_bytes = 0;
  std::vector<size_t> allocated;  // by device
  absl::Status failure;
  std::map<Call, absl::Status> next;
  std::vector<std::string> misuses;
  MemoryKind kind = MemoryKind::kDevice;  // that Allocate() memory reports
  std::string pci_address;
  bool used = true;  // by this process
  int64_t host_waits = 0;
  int64_t queries = 0;
  int64_t allocations = 0;
  int64_t streams = 0;

  absl::Status TakeFailure(Call call) {
    if (!failure.ok()) return failure;
    auto found = next.find(call);
    if (found == next.end()) return absl::OkStatus();
    const absl::Status why = found->second;
    next.erase(found);
    return why;
  }

  absl::Status CheckDevice(int device) const {
    if (!failure.ok()) return failure;
    if (device >= 0 && device < devices) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("no fake device ", device, " of ", devices));
  }

  static bool Blocked(const Queue& queue) {
    if (queue.work.empty()) return true;
    const Work& next = queue.work.front();
    return next.kind == Work::Kind::kWait && next.mark->reached < next.recording;
  }

  std::vector<std::shared_ptr<Queue>> ReadyQueues() const {
    std::vector<std::shared_ptr<Queue>> ready;
    if (!failure.ok()) return ready;
    for (const auto& queue : queues) {
      if (!Blocked(*queue)) ready.push_back(queue);
    }
    return ready;
  }

  void Do(Queue& queue) {
    const Work work = queue.work.front();
    queue.work.pop_front();
    if (work.kind == Work::Kind::kCopy) std::memcpy(work.to, work.from, work.bytes);
    if (work.kind == Work::Kind::kRecord) work.mark->reached = work.recording;
    came.notify_all();  // another stream may wait for the event
  }

  void DoAll() {
    for (auto ready = ReadyQueues(); !ready.empty(); ready = ReadyQueues()) {
      for (const auto& queue : ready) {
        while (!Blocked(*queue)) Do(*queue);
      }
    }
  }

  void Add(Queue& queue, Work work) {
    queue.work.push_back(std::move(work));
    came.notify_all();
  }

  // Returns the stream of that name; the calling thread's own, if each thread has one.
  std::shared_ptr<Queue> NamedQueue(int device, void* native) {
    const std::thread::id thread =
        native == PerThreadDefaultStream() ? std::this_thread::get_id() : std::thread::id();
    for (const auto& queue : queues) {
      if (queue->named == native && queue->device == device && queue->thread == thread)
        return queue;
    }
    return queues.emplace_back(std::make_shared<Queue>(
        Queue{.number = ++streams, .device = device, .named = native, .thread = thread}));
  }

  // Makes the legacy default stream wait for the present work of all threads' default streams.
  void WaitForThreads(Queue& legacy) {
    for (const auto& queue : queues) {
      if (queue->named != PerThreadDefaultStream() || queue->device != legacy.device) continue;
      const auto mark = std::make_shared<Mark>(Mark{.recorded = 1});
      Add(*queue, {.kind = Work::Kind::kRecord, .mark = mark, .recording = 1});
      Add(legacy, {.kind = Work::Kind::kWait, .mark = mark, .recording = 1});
    }
  }

  bool InWork(const void* at, size_t bytes) const {
    for (const auto& queue : queues) {
      for (const Work& work : queue->work) {
        if (work.kind != Work::Kind::kCopy) continue;
        if (Overlap(work.to, work.bytes, at, bytes) || Overlap(work.from, work.bytes, at, bytes)) {
          return true;
        }
      }
    }
    return false;
  }
};

namespace {

using World = FakeDevice::World;

class FakeMemory final : public DeviceMemory {
 public:
  FakeMemory(std::shared_ptr<World> world, int device, void* address, size_t bytes)
      : DeviceMemory(address, bytes), world_(std::move(world)), device_(device) {}
  ~FakeMemory() override {
    std::lock_guard lock(world_->mu);
    if (world_->InWork(address(), bytes())) {
      world_->misuses.push_back("device memory was given back with a copy under way");
    }
    world_->memory.Remove(address());
    world_->allocated[device_] -= bytes();
    std::free(address());
  }

 private:
  const std::shared_ptr<World> world_;
  const int device_;
};

class FakeEvent final : public DeviceEvent {
 public:
  explicit FakeEvent(std::shared_ptr<World> world) : world_(std::move(world)) {}
  ~FakeEvent() override {
    std::lock_guard lock(world_->mu);
    if (world_->failure.ok() && mark_->reached < mark_->recorded) {
      world_->misuses.push_back("an event was destroyed before its place was reached");
    }
  }

  absl::StatusOr<bool> Done() override {
    std::lock_guard lock(world_->mu);
    ++world_->queries;
    RETURN_IF_ERROR(world_->failure);
    return mark_->reached == mark_->recorded;
  }

  absl::Status Wait() override {
    std::lock_guard lock(world_->mu);
    ++world_->host_waits;
    while (mark_->reached < mark_->recorded) {
      RETURN_IF_ERROR(world_->failure);
      const auto ready = world_->ReadyQueues();
      if (ready.empty()) return absl::InternalError("its streams wait for each other");
      world_->Do(*ready.front());
    }
    return world_->failure;
  }

  const std::shared_ptr<Mark>& mark() const { return mark_; }

 private:
  const std::shared_ptr<World> world_;
  const std::shared_ptr<Mark> mark_ = std::make_shared<Mark>();
};

class FakeStream final : public DeviceStream {
 public:
  FakeStream(std::shared_ptr<World> world, std::shared_ptr<Queue> queue)
      : world_(std::move(world)), queue_(std::move(queue)) {}

  absl::Status CopyToDevice(void* device, const void* host, size_t bytes) override {
    return Copy(device, host, bytes, device, host, /*to_host=*/false);
  }
  absl::Status CopyToHost(void* host, const void* device, size_t bytes) override {
    return Copy(host, device, bytes, device, host, /*to_host=*/true);
  }

  absl::Status Record(DeviceEvent& event) override {
    std::lock_guard lock(world_->mu);
    RETURN_IF_ERROR(world_->TakeFailure(FakeDevice::Call::kRecord));
    if (queue_->named == LegacyDefaultStream()) world_->WaitForThreads(*queue_);
    Queue& queue = Mine();
    const std::shared_ptr<Mark>& mark = static_cast<FakeEvent&>(event).mark();
    world_->Add(queue, {.kind = Work::Kind::kRecord, .mark = mark, .recording = ++mark->recorded});
    return absl::OkStatus();
  }

  absl::Status WaitFor(const DeviceEvent& event) override {
    std::lock_guard lock(world_->mu);
    RETURN_IF_ERROR(world_->failure);
    const std::shared_ptr<Mark>& mark = static_cast<const FakeEvent&>(event).mark();
    world_->Add(Mine(), {.kind = Work::Kind::kWait, .mark = mark, .recording = mark->recorded});
    return absl::OkStatus();
  }

  // REQUIRES: the world's lock is held.
  Queue& Mine() {
    if (queue_->named != PerThreadDefaultStream()) return *queue_;
    return *world_->NamedQueue(queue_->device, queue_->named);
  }

  void* native() const override { return queue_->named != nullptr ? queue_->named : queue_.get(); }

 private:
  absl::Status Copy(void* to, const void* from, size_t bytes, const void* device, const void* host,
                    bool to_host) {
    std::lock_guard lock(world_->mu);
    RETURN_IF_ERROR(world_->TakeFailure(FakeDevice::Call::kCopy));
    if (bytes == 0) return absl::OkStatus();
    if (!world_->memory.Contain(device, bytes)) {
      return absl::InvalidArgumentError("a copy's device memory is not the device's");
    }
    if (world_->memory.Touch(host, bytes)) {
      return absl::InvalidArgumentError("a copy's host memory is the device's");
    }
    // As in CUDA: registered wholly or not at all.
    if (world_->locked.Touch(host, bytes) && !world_->locked.Contain(host, bytes)) {
      return absl::InvalidArgumentError("a copy's host memory is page-locked in part");
    }
    world_->Add(
        Mine(),
        {.kind = Work::Kind::kCopy, .to = to, .from = from, .bytes = bytes, .to_host = to_host});
    return absl::OkStatus();
  }

  const std::shared_ptr<World> world_;
  const std::shared_ptr<Queue> queue_;  // its work goes on without the stream
};

class FakeLocked final : public Registration {
 public:
  FakeLocked(std::shared_ptr<World> world, absl::Span<std::byte> memory)
      : Registration(memory), world_(std::move(world)) {}
  ~FakeLocked() override {
    std::lock_guard lock(world_->mu);
    if (world_->InWork(memory().data(), memory().size())) {
      world_->misuses.push_back("memory was let loose with a copy under way");
    }
    world_->locked.Remove(memory().data());
    world_->locked_bytes -= static_cast<int64_t>(memory().size());
  }

 private:
  const std::shared_ptr<World> world_;
};

}  // namespace

class FakeDevice::PageLock final : public Registrar {
 public:
  explicit PageLock(std::shared_ptr<World> world) : world_(std::move(world)) {}

  std::string_view name() const override { return "page-lock for the fake device"; }
  absl::StatusOr<std::unique_ptr<Registration>> Register(absl::Span<std::byte> memory) override {
    std::lock_guard lock(world_->mu);
    RETURN_IF_ERROR(world_->CheckDevice(0));
    RETURN_IF_ERROR(world_->TakeFailure(Call::kPageLock));
    if (!world_->used) {
      world_->misuses.push_back("page-locking made a context on a device that nobody named");
    }
    if (memory.empty()) return absl::InvalidArgumentError("there are no bytes to page-lock");
    if (world_->locked.Touch(memory.data(), memory.size())) {
      return absl::AlreadyExistsError("that memory is page-locked already");
    }
    world_->locked.Add(memory.data(), memory.size());
    world_->locked_bytes += static_cast<int64_t>(memory.size());
    return std::make_unique<FakeLocked>(world_, memory);
  }

 private:
  const std::shared_ptr<World> world_;
};

FakeDevice::FakeDevice(int devices)
    : world_(std::make_shared<World>()), page_lock_(std::make_unique<PageLock>(world_)) {
  world_->devices = devices;
  world_->allocated.resize(devices);
}

FakeDevice::~FakeDevice() = default;

size_t FakeDevice::Ready() const {
  std::lock_guard lock(world_->mu);
  return world_->ReadyQueues().size();
}

void FakeDevice::Step(size_t which) {
  std::lock_guard lock(world_->mu);
  const auto ready = world_->ReadyQueues();
  PENSTOCK_CHECK(which < ready.size());
  world_->Do(*ready[which]);
}

void FakeDevice::Run() {
  std::lock_guard lock(world_->mu);
  world_->DoAll();
}

void FakeDevice::RunUntil(const std::atomic<bool>& stop) {
  std::unique_lock lock(world_->mu);
  while (true) {
    world_->DoAll();
    if (stop) return;
    world_->came.wait(lock);
  }
}

void FakeDevice::Wake() {
  std::lock_guard lock(world_->mu);
  world_->came.notify_all();
}

std::vector<FakeDevice::ReadyWork> FakeDevice::ListReady() const {
  std::lock_guard lock(world_->mu);
  std::vector<ReadyWork> list;
  for (const auto& queue : world_->ReadyQueues()) {
    const Work& work = queue->work.front();
    list.push_back({queue->number, queue->device, work.bytes, work.to_host});
  }
  return list;
}

void FakeDevice::StepStream(int64_t stream) {
  std::lock_guard lock(world_->mu);
  for (const auto& queue : world_->ReadyQueues()) {
    if (queue->number == stream) return world_->Do(*queue);
  }
  PENSTOCK_CHECK(false);
}

void FakeDevice::SayUnused() {
  std::lock_guard lock(world_->mu);
  world_->used = false;
}

std::optional<int> FakeDevice::InUse() {
  std::lock_guard lock(world_->mu);
  if (!world_->used || world_->devices == 0) return std::nullopt;
  return 0;
}

void FakeDevice::SayKind(MemoryKind kind) {
  std::lock_guard lock(world_->mu);
  world_->kind = kind;
}

void FakeDevice::SayPciAddress(std::string address) {
  std::lock_guard lock(world_->mu);
  world_->pci_address = std::move(address);
}

int64_t FakeDevice::host_waits() const {
  std::lock_guard lock(world_->mu);
  return world_->host_waits;
}

int64_t FakeDevice::queries() const {
  std::lock_guard lock(world_->mu);
  return world_->queries;
}

int64_t FakeDevice::allocations() const {
  std::lock_guard lock(world_->mu);
  return world_->allocations;
}

void FakeDevice::Fail(absl::Status why) {
  std::lock_guard lock(world_->mu);
  world_->failure = std::move(why);
}

void FakeDevice::Recover() {
  std::lock_guard lock(world_->mu);
  world_->failure = absl::OkStatus();
  for (const auto& queue : world_->queues) {
    for (const Work& work : queue->work) {
      if (work.kind == Work::Kind::kRecord) work.mark->reached = work.recording;
    }
    queue->work.clear();
  }
}

void FakeDevice::FailNext(Call call, absl::Status why) {
  std::lock_guard lock(world_->mu);
  world_->next[call] = std::move(why);
}

bool FakeDevice::Touches(const void* memory, size_t bytes) const {
  std::lock_guard lock(world_->mu);
  return world_->InWork(memory, bytes);
}

int64_t FakeDevice::page_locked_bytes() const {
  std::lock_guard lock(world_->mu);
  return world_->locked_bytes;
}

std::vector<std::string> FakeDevice::Misuses() const {
  std::lock_guard lock(world_->mu);
  return world_->misuses;
}

absl::StatusOr<int> FakeDevice::Count() {
  std::lock_guard lock(world_->mu);
  if (world_->devices == 0) return absl::NotFoundError("no GPU: the fake has none");
  return world_->devices;
}

absl::StatusOr<DeviceInfo> FakeDevice::Describe(int device) {
  std::lock_guard lock(world_->mu);
  RETURN_IF_ERROR(world_->CheckDevice(device));
  return DeviceInfo{
      .name = "fake", .memory_bytes = kMemoryBytes, .pci_address = world_->pci_address};
}

Registrar& FakeDevice::page_lock() {
  return *page_lock_;
}

absl::StatusOr<std::unique_ptr<DeviceMemory>> FakeDevice::Allocate(int device, size_t bytes) {
  std::lock_guard lock(world_->mu);
  RETURN_IF_ERROR(world_->CheckDevice(device));
  RETURN_IF_ERROR(world_->TakeFailure(Call::kAllocate));
  if (bytes > kMemoryBytes - world_->allocated[device]) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the fake device has no ", bytes, " bytes left"));
  }
  ++world_->allocations;
  world_->used = true;
  constexpr size_t kAlignment = 256;  // as cudaMalloc()
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* address = std::aligned_alloc(kAlignment, std::max(rounded, kAlignment));
  PENSTOCK_CHECK(address != nullptr);
  world_->memory.Add(address, bytes);
  world_->allocated[device] += bytes;
  return std::make_unique<FakeMemory>(world_, device, address, bytes);
}

absl::StatusOr<std::unique_ptr<DeviceStream>> FakeDevice::MakeStream(int device) {
  std::lock_guard lock(world_->mu);
  RETURN_IF_ERROR(world_->CheckDevice(device));
  world_->used = true;
  // Removes queues of destroyed streams once their work is done.
  std::erase_if(world_->queues,
                [](const auto& queue) { return queue.use_count() == 1 && queue->work.empty(); });
  auto queue = std::make_shared<Queue>(Queue{.number = ++world_->streams, .device = device});
  world_->queues.push_back(queue);
  return std::make_unique<FakeStream>(world_, std::move(queue));
}

absl::StatusOr<std::unique_ptr<DeviceStream>> FakeDevice::WrapStream(int device, void* native) {
  std::lock_guard lock(world_->mu);
  RETURN_IF_ERROR(world_->CheckDevice(device));
  if (IsNamed(native)) {
    return std::make_unique<FakeStream>(world_, world_->NamedQueue(device, native));
  }
  for (const auto& queue : world_->queues) {
    if (queue.get() == native) return std::make_unique<FakeStream>(world_, queue);
  }
  return absl::InvalidArgumentError("that is no stream of the fake device");
}

absl::StatusOr<std::unique_ptr<DeviceEvent>> FakeDevice::MakeEvent(int device) {
  std::lock_guard lock(world_->mu);
  RETURN_IF_ERROR(world_->CheckDevice(device));
  RETURN_IF_ERROR(world_->TakeFailure(Call::kMakeEvent));
  world_->used = true;
  return std::make_unique<FakeEvent>(world_);
}

absl::Status FakeDevice::WithContext(int device, absl::FunctionRef<absl::Status()> call) {
  {
    std::lock_guard lock(world_->mu);
    RETURN_IF_ERROR(world_->CheckDevice(device));
    world_->used = true;
  }
  ++contexts;
  const absl::Status status = call();
  --contexts;
  return status;
}

bool FakeDevice::HasContext() {
  return contexts > 0;
}

absl::StatusOr<MemoryKind> FakeDevice::KindOf(const void* address) {
  std::lock_guard lock(world_->mu);
  if (world_->memory.Touch(address, 1)) return world_->kind;
  return world_->locked.Touch(address, 1) ? MemoryKind::kPageLocked : MemoryKind::kHost;
}

}  // namespace penstock
