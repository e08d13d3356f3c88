// SPDX-License-Identifier: Apache-2.0
// A device in host memory. Its streams do nothing until the test says so, and do it
// in the order the test says: late, in any order between streams, or never.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/memory/device.h"

namespace penstock {

class FakeDevice final : public DeviceBackend {
 public:
  explicit FakeDevice(int devices = 1);
  ~FakeDevice() override;

  // --- What the test says ------------------------------------------------------------

  // Streams whose next piece of work could be done now; a stream that waits for an
  // event is none of them.
  size_t Ready() const;
  // Does the next piece of work of one of them. REQUIRES: which < Ready().
  void Step(size_t which);
  // Does all that can be done.
  void Run();
  // The same again and again as work comes, until `stop` is set: on a thread of its own.
  void RunUntil(const std::atomic<bool>& stop);
  void Wake();  // who waits in RunUntil() looks at its `stop`

  // The same for tests that keep a time of their own: the next piece of each such stream.
  struct ReadyWork {
    int64_t stream = 0;  // its number
    int device = 0;
    size_t bytes = 0;  // that it copies; 0: it only reaches a place
    bool to_host = false;
  };
  std::vector<ReadyWork> ListReady() const;
  void StepStream(int64_t stream);  // REQUIRES: it is ready

  // From now on nothing is done, and every event and call says `why`.
  void Fail(absl::Status why);
  // The device is reset: what its streams had is dropped, and all events are done.
  void Recover();

  enum class Call { kAllocate, kMakeEvent, kCopy, kRecord, kPageLock };
  // The next such call fails with `why`. A copy or record that fails is not done.
  void FailNext(Call call, absl::Status why);

  // As in a process that uses no device: until memory, a stream or an event of one is made, and
  // page-locking before is a misuse.
  void SayUnused();
  // What Allocate() gives from now on is said to be of that kind.
  void SayKind(MemoryKind kind);
  void SayPciAddress(std::string address);  // of all its devices; they are on no bus before

  // --- What the test sees --------------------------------------------------------------

  // Whether some copy that is not done yet reads or writes host memory there.
  bool Touches(const void* memory, size_t bytes) const;
  int64_t page_locked_bytes() const;
  int64_t host_waits() const;   // calls of DeviceEvent::Wait()
  int64_t queries() const;      // calls of DeviceEvent::Done()
  int64_t allocations() const;  // of device memory, so far
  // What a real device does not forgive, in words: memory given back or no longer
  // page-locked under a copy, an event destroyed before its place was reached.
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
  // Whether this thread is in a WithContext() of any fake device.
  static bool HasContext();

  static constexpr size_t kMemoryBytes = size_t{1} << 30;  // of each device

  struct World;  // what streams, events and memory share, and may outlive the FakeDevice

 private:
  class PageLock;
  const std::shared_ptr<World> world_;
  const std::unique_ptr<PageLock> page_lock_;
};

}  // namespace penstock
