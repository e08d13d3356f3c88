// SPDX-License-Identifier: Apache-2.0
// A device in host memory. Its streams do their work only when the test says so, and in the order
// the test says: late, in any order between streams, or never.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/memory/device/device.h"

namespace penstock {

class FakeDevice final : public DeviceBackend {
 public:
  explicit FakeDevice(int devices = 1);
  ~FakeDevice() override;

  // --- Control by the test -----------------------------------------------------------

  // Returns the number of streams whose next piece of work could be done now. A stream that waits
  // for an event does not count.
  size_t Ready() const;
  // Does the next piece of work of one of them. REQUIRES: which < Ready().
  void Step(size_t which);
  // Does all work that can be done.
  void Run();
  // Does all work repeatedly, until `stop` is set. Runs on a thread of its own.
  void RunUntil(const std::atomic<bool>& stop);
  void Wake();  // makes RunUntil() check its `stop`

  // The next piece of work of a ready stream, for tests with simulated time.
  struct ReadyWork {
    int64_t stream = 0;  // its number
    int device = 0;
    size_t bytes = 0;  // size of its copy; 0: it only reaches a place
    bool to_host = false;
  };
  std::vector<ReadyWork> ListReady() const;
  void StepStream(int64_t stream);  // REQUIRES: it is ready

  // Stops all work; every event and call returns `why` from now on.
  void Fail(absl::Status why);
  // Resets the device: drops the work of its streams; all events are done.
  void Recover();

  enum class Call { kAllocate, kMakeEvent, kCopy, kRecord, kPageLock };
  // Makes the next such call fail with `why`. A copy or record that fails is not done.
  void FailNext(Call call, absl::Status why);

  // Acts as in a process that uses no device yet, until memory, a stream or an event of one is
  // made. Page-locking before that is a misuse.
  void SayUnused();
  // Makes later memory of Allocate() report that kind.
  void SayKind(MemoryKind kind);
  void SayPciAddress(std::string address);  // of all its devices; before, they are on no bus

  // --- Observation by the test ---------------------------------------------------------

  // Returns whether an unfinished copy reads or writes host memory there.
  bool Touches(const void* memory, size_t bytes) const;
  int64_t page_locked_bytes() const;
  int64_t host_waits() const;   // calls of DeviceEvent::Wait()
  int64_t queries() const;      // calls of DeviceEvent::Done()
  int64_t allocations() const;  // of device memory, so far
  // Returns uses that a real device does not forgive: memory freed or no longer page-locked during
  // a copy, an event destroyed before its place was reached.
  std::vector<std::string> Misuses() const;

  // --- The backend -----------------------------------------------------------------------

  std::string_view name() const override { return "fake"; }
  absl::StatusOr<int> Count() override;
  std::optional<int> InUse() override;
  absl::StatusOr<DeviceInfo> Describe(int device) override;
  Registrar& page_lock() override;
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int device, size_t bytes) override;
  absl::StatusOr<std::unique_ptr<DeviceStream>> MakeStream(int device) override;
  absl::StatusOr<std::unique_ptr<DeviceStream>> WrapStream(int device, void* native) override;
  absl::StatusOr<std::unique_ptr<DeviceEvent>> MakeEvent(int device) override;
  absl::Status WithContext(int device, absl::FunctionRef<absl::Status()> call) override;
  absl::StatusOr<MemoryKind> KindOf(const void* address) override;
  // True if this thread is inside a WithContext() of any fake device.
  static bool HasContext();

  static constexpr size_t kMemoryBytes = size_t{1} << 30;  // of each device

  struct World;  // shared by streams, events and memory; may outlive the FakeDevice

 private:
  class PageLock;
  const std::shared_ptr<World> world_;
  const std::unique_ptr<PageLock> page_lock_;
};

}  // namespace penstock
