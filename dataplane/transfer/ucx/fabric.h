// SPDX-License-Identifier: Apache-2.0
// What is wanted of UCX, without its headers. The library libpenstock_ucx.so alone
// implements this and links UCX; it is opened when `ucx` is first used (loader.h),
// so that a program starts without UCX, and with whichever release is there.
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

// Which of UCX's transports a link may use.
enum class Lanes {
  kRdma,  // rc and dc; ud for their wire-up
  kAny,
  kTcp,
};

// One send, receive or close under way. Belongs to whoever started it.
class Work {
 public:
  // The last call; inside Progress(), Close() or ~Worker(). Starts and closes nothing.
  virtual void OnDone(const absl::Status& status) = 0;

 protected:
  ~Work() = default;
};

// Memory that UCX has registered; nullptr: none.
using Handle = void*;
// Whose memory it is: UCX does not guess.
enum class MemoryType { kHost, kCuda };
// A message that was announced and whose data is still at its sender.
using Offered = void*;

// One UCX worker object: an address, and the peers it speaks to. All methods are for
// one thread at a time, but for Wake(). Every peer has UCX's peer-failure mode.
class Worker {
 public:
  using Peer = uint32_t;

  // Called inside Progress(); may start, receive and close nothing there.
  class Events {
   public:
    virtual ~Events() = default;
    // Both are gone when it returns.
    virtual void OnMessage(std::string_view head, absl::Span<const std::byte> data) = 0;
    // True: Receive() or Release() follows. False: it is dropped, which its sender
    // takes for success.
    virtual bool OnOffered(std::string_view head, size_t bytes, Offered offered) = 0;
    // Nothing goes to that peer any more, and it is to be closed.
    virtual void OnFailed(Peer peer, const absl::Status& status) = 0;
  };

  // All work that is still under way then may be done meanwhile, or never; its memory
  // is not touched any more. REQUIRES: a Flush() is done and no Progress() came behind it.
  virtual ~Worker() = default;

  virtual const std::string& address() const = 0;  // bytes for a peer's Connect()
  // Bytes that a message's head may have.
  virtual size_t max_head_bytes() const = 0;

  // Any thread: ends a Sleep(), or the next one.
  virtual void Wake() = 0;
  // True if something happened.
  virtual bool Progress() = 0;
  // Until something may have happened, at most so long.
  virtual void Sleep(int milliseconds) = 0;

  virtual absl::StatusOr<Peer> Connect(std::string_view address) = 0;
  // What it uses for that peer, as UCX calls it.
  struct Lane {
    std::string transport;  // "rc_mlx5"
    std::string device;     // "mlx5_0:1"
  };
  virtual std::vector<Lane> LanesOf(Peer peer) const = 0;
  // Ends whatever is under way with it. True: it is closed now, else `work` tells.
  virtual bool Close(Peer peer, Work& work) = 0;

  // Until whatever was begun, also by others who connect, has gone out or failed.
  virtual bool Flush(Work& work) = 0;

  // True: done already, `work` hears nothing. Else head and data stay until it does.
  struct Message {
    std::string_view head;
    absl::Span<const std::byte> data;
    Handle handle = nullptr;  // of the memory that `data` lies in
    bool announce = false;    // the receiver fetches the data, into where it wants
  };
  virtual absl::StatusOr<bool> Send(Peer peer, const Message& message, Work& work) = 0;
  virtual absl::StatusOr<bool> Receive(Offered offered, absl::Span<std::byte> into, MemoryType type,
                                       Handle handle, Work& work) = 0;
  virtual void Release(Offered offered) = 0;
};

// UCX with its settings, once in a process. Outlives workers and handles.
class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual const std::string& release() const = 0;  // of the library loaded: "1.13.1"
  virtual const std::string& path() const = 0;     // where it was loaded from
  // Whether a peer may be closed, and its worker object end, that never answered. UCX
  // before 1.14 aborts then (openucx/ucx#8175); so it does when it gives up by itself,
  // and never does here.
  virtual bool closes_unanswered() const = 0;
  // Whether it was built with CUDA, found its driver, and was opened so.
  virtual bool knows_cuda() const = 0;
  // `events` outlives the worker.
  virtual absl::StatusOr<std::unique_ptr<Worker>> MakeWorker(Worker::Events& events) = 0;
  // Any thread. ResourceExhausted if the process may lock no more memory.
  virtual absl::StatusOr<Handle> Register(absl::Span<std::byte> memory, MemoryType type) = 0;
  // What it takes registered memory for; nullopt: for neither.
  virtual absl::StatusOr<std::optional<MemoryType>> TypeOf(Handle handle) = 0;
  virtual void Unregister(Handle handle) = 0;
};

// What the library exports under kOpenFabric. The first argument is the caller's
// kFabricVersion: nullptr and FailedPrecondition if the library has another one. With `gpu`
// UCX is to know GPUs' memory, where it can.
// NotFound: UCX finds no such lanes on this machine.
inline constexpr uint32_t kFabricVersion = 5;
inline constexpr char kOpenFabric[] = "penstock_open_ucx";
using OpenFabric = Fabric*(uint32_t version, Lanes lanes, bool gpu, absl::Status* status);

}  // namespace penstock::transfer::ucx
