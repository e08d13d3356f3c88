// SPDX-License-Identifier: Apache-2.0
// The interface to UCX, without its headers. Only the library libpenstock_ucx.so implements this
// interface and is linked against UCX. The library is opened when `ucx` is first used (loader.h),
// so that a program also starts where UCX is not installed, and with any release of UCX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock::transfer::ucx {

// The UCX transports that a link may use.
enum class Lanes {
  kRdma,  // rc and dc, with ud for their wire-up
  kAny,
  kTcp,
};

// One pending send, receive or close. Owned by the object that started it.
class Work {
 public:
  // The last call on the object, made inside Progress(), Close() or ~Worker(). OnDone() must not
  // start or close anything.
  virtual void OnDone(const absl::Status& status) = 0;

 protected:
  ~Work() = default;
};

// Memory that UCX has registered; nullptr: none.
using Handle = void*;
// The caller names the kind of memory, because UCX does not detect it here.
enum class MemoryType { kHost, kCuda };
// A message that was announced and whose data is still at its sender.
using Offered = void*;

// One UCX worker object: an address, and the peers with which it exchanges messages. All methods
// except Wake() are for one thread at a time. Every peer is in UCX's peer-failure mode.
class Worker {
 public:
  using Peer = uint32_t;

  // Called inside Progress(). Events must not start, receive or close anything.
  class Events {
   public:
    virtual ~Events() = default;
    // `head` and `data` are invalid after OnMessage() returns.
    virtual void OnMessage(std::string_view head, absl::Span<const std::byte> data) = 0;
    // If OnOffered() returns true, Receive() or Release() must follow. If it returns false, the
    // message is dropped, and the message's sender sees success.
    virtual bool OnOffered(std::string_view head, size_t bytes, Offered offered) = 0;
    // Nothing more can be sent to the peer, which must then be closed.
    virtual void OnFailed(Peer peer, const absl::Status& status) = 0;
  };

  // Pending work completes inside the destructor or never; the memory of that work is not used
  // afterwards. REQUIRES: a Flush() is done and no Progress() was called after it.
  virtual ~Worker() = default;

  virtual const std::string& address() const = 0;  // bytes for a peer's Connect()
  // Returns the maximum size of a message's head in bytes.
  virtual size_t max_head_bytes() const = 0;

  // Any thread. Ends the current Sleep() or, if there is none, the next Sleep().
  virtual void Wake() = 0;
  // Returns true if there was an event.
  virtual bool Progress() = 0;
  // Waits until there may be an event, for at most `milliseconds`.
  virtual void Sleep(int milliseconds) = 0;

  virtual absl::StatusOr<Peer> Connect(std::string_view address) = 0;
  // One transport and device that the worker object uses for a peer, by UCX's names.
  struct Lane {
    std::string transport;  // "rc_mlx5"
    std::string device;     // "mlx5_0:1"
  };
  virtual std::vector<Lane> LanesOf(Peer peer) const = 0;
  // Ends everything that is in progress with the peer. Returns true if the peer is closed now;
  // otherwise `work` reports the close.
  virtual bool Close(Peer peer, Work& work) = 0;

  // Completes when everything that was begun, including by peers that are connecting, has been sent
  // or has failed. Returns true if it has completed already; otherwise `work` reports the
  // completion.
  virtual bool Flush(Work& work) = 0;

  struct Message {
    std::string_view head;
    absl::Span<const std::byte> data;
    Handle handle = nullptr;  // for the memory of `data`
    bool announce = false;    // the receiver fetches the data into its own memory
  };
  // Returns true if the send is already done; `work` is then not called. Otherwise head and data
  // must stay valid until `work` is called.
  virtual absl::StatusOr<bool> Send(Peer peer, const Message& message, Work& work) = 0;
  virtual absl::StatusOr<bool> Receive(Offered offered, absl::Span<std::byte> into, MemoryType type,
                                       Handle handle, Work& work) = 0;
  virtual void Release(Offered offered) = 0;
};

// UCX with its settings, one per process. Outlives workers and handles.
class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual const std::string& release() const = 0;  // of the loaded library: "1.13.1"
  virtual const std::string& path() const = 0;     // the file it was loaded from
  // Returns true if a peer that never answered may be closed, and the worker object that connected
  // to that peer may be destroyed. UCX before 1.14 aborts in that case (openucx/ucx#8175). Such a
  // release would also abort if UCX itself gave up on a peer, which never happens here.
  virtual bool closes_unanswered() const = 0;
  // Returns true if UCX was built with CUDA, found CUDA's driver, and was opened for GPU memory.
  virtual bool knows_cuda() const = 0;
  // `events` must outlive the worker.
  virtual absl::StatusOr<std::unique_ptr<Worker>> MakeWorker(Worker::Events& events) = 0;
  // Any thread. ResourceExhausted if the process may lock no more memory.
  virtual absl::StatusOr<Handle> Register(absl::Span<std::byte> memory, MemoryType type) = 0;
  // Returns the type that UCX has recorded for registered memory; nullopt if the type is neither
  // kHost nor kCuda.
  virtual absl::StatusOr<std::optional<MemoryType>> TypeOf(Handle handle) = 0;
  virtual void Unregister(Handle handle) = 0;
};

inline constexpr uint32_t kFabricVersion = 5;
inline constexpr char kOpenFabric[] = "penstock_open_ucx";
// The function that the library exports under kOpenFabric. `version` is the caller's
// kFabricVersion: nullptr and FailedPrecondition if the library's kFabricVersion is different. If
// `gpu` is true and UCX was built with CUDA, UCX recognizes GPU memory. NotFound if UCX finds no
// device for `lanes` on this machine.
using OpenFabric = Fabric*(uint32_t version, Lanes lanes, bool gpu, absl::Status* status);

}  // namespace penstock::transfer::ucx
