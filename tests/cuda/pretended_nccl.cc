// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/pretended_nccl.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "cuda/nccl_library.h"
#include "tests/cuda/pretended_world.h"

namespace penstock::pretended_nccl {
namespace {

using cuda::NcclComm;
using cuda::NcclConfig;
using pretended_cuda::Stream;
using pretended_cuda::World;

// Two values of ncclResult_t.
constexpr int kInvalidArgument = 4;
constexpr int kRemoteError = 6;

// One call; the calls of all ranks with the same number match. Each rank's stream waits for its own
// flag.
struct Call {
  std::map<int, std::vector<std::byte>> of_ranks;
  std::vector<std::byte> result;
  std::vector<std::shared_ptr<bool>> done;
};

struct SplitOfRank {
  int color, key;
  NcclComm* made;
};

struct Group {
  std::vector<int> origins;  // by rank: its rank in the trainer's communicator, which is its device
  std::shared_ptr<std::set<int>> lost;  // lost ranks of the trainer's communicator
  std::map<size_t, Call> calls;
  std::map<size_t, std::map<int, SplitOfRank>> splits;

  int size() const { return static_cast<int>(origins.size()); }
};

enum class State { kLives, kFinalized, kDestroyed, kAborted };

struct Comm {
  std::shared_ptr<Group> group;
  int rank;
  State state = State::kLives;
  size_t calls = 0, splits = 0;
  bool splitting = false, stuck = false;
  std::vector<std::shared_ptr<bool>> launched;  // flags that its device waits for
};

// Guarded by World's mutex. Nothing is ever freed, because handles may be used after their end.
struct Nccl {
  std::map<NcclComm, std::unique_ptr<Comm>> comms;
  bool stuck = false;
  int aborted = 0, destroyed = 0;
  std::condition_variable has_stuck;

  static Nccl& Get() {
    static Nccl& nccl = *new Nccl;
    return nccl;
  }
  NcclComm Add(std::shared_ptr<Group> group, int rank) {
    auto comm = std::make_unique<Comm>(Comm{.group = std::move(group), .rank = rank});
    const NcclComm handle = comm.get();
    comms[handle] = std::move(comm);
    return handle;
  }
  // Returns the communicator if it is alive or finalized. Otherwise records a violation and returns
  // nullptr.
  Comm* Find(World& world, NcclComm handle, const char* call) {
    const auto found = comms.find(handle);
    if (found == comms.end() || found->second->state >= State::kDestroyed) {
      world.Violate(std::string(call) + " of a communicator that is gone");
      return nullptr;
    }
    return found->second.get();
  }
};

int DeviceOf(const Comm& comm) {
  return comm.group->origins[static_cast<size_t>(comm.rank)];
}

bool HasLost(const Group& group) {
  return std::any_of(group.origins.begin(), group.origins.end(),
                     [&group](int origin) { return group.lost->contains(origin); });
}

bool HasUnfinished(const Comm& comm) {
  return std::any_of(comm.launched.begin(), comm.launched.end(),
                     [](const std::shared_ptr<bool>& done) { return !*done; });
}

// Calls `body` with the communicator, under the lock.
template <class Body>
int With(NcclComm handle, const char* call, Body body) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  Comm* const comm = Nccl::Get().Find(world, handle, call);
  return comm == nullptr ? kInvalidArgument : body(world, *comm);
}

std::vector<std::byte> Reduce(const Call& call, int op) {
  std::vector<std::byte> result = call.of_ranks.begin()->second;
  const size_t count = result.size() / sizeof(int64_t);
  const auto value_at = [](const std::vector<std::byte>& bytes, size_t i) {
    int64_t value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
  };
  for (auto rank = std::next(call.of_ranks.begin()); rank != call.of_ranks.end(); ++rank) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t a = value_at(result, i), b = value_at(rank->second, i);
      const int64_t value = op == cuda::kNcclSum   ? a + b
                            : op == cuda::kNcclMin ? std::min(a, b)
                                                   : std::max(a, b);
      std::memcpy(result.data() + i * sizeof value, &value, sizeof value);
    }
  }
  return result;
}

std::vector<std::byte> Concatenate(const Call& call) {
  std::vector<std::byte> result;
  for (const auto& [rank, bytes] : call.of_ranks)
    result.insert(result.end(), bytes.begin(), bytes.end());
  return result;
}

// Makes the device wait in the stream for the other ranks, and then write the result.
template <class Combine>
int Launch(const char* name, const void* from, size_t bytes, void* to, size_t result_bytes,
           NcclComm handle, cudaStream_t stream, Combine combine) {
  return With(handle, name, [&](World& world, Comm& comm) {
    world.Current(name);
    world.MustBeCurrent(DeviceOf(comm), name, "communicator");
    Stream* const in = world.Find(stream);
    if (in == nullptr || in->device != DeviceOf(comm)) return kInvalidArgument;
    if (Nccl::Get().stuck) {
      comm.stuck = true;
      Nccl::Get().has_stuck.notify_all();
      return cuda::kNcclInProgress;
    }
    Call& call = comm.group->calls[comm.calls++];
    const auto* const first = static_cast<const std::byte*>(from);
    call.of_ranks[comm.rank].assign(first, first + bytes);
    call.result.resize(result_bytes);  // only the first call resizes: the address stays
    call.done.push_back(std::make_shared<bool>(false));
    comm.launched.push_back(call.done.back());
    in->work.push_back({.to = static_cast<std::byte*>(to),
                        .from = call.result.data(),
                        .bytes = result_bytes,
                        .waits_for = call.done.back()});
    if (static_cast<int>(call.of_ranks.size()) == comm.group->size() && !HasLost(*comm.group)) {
      const std::vector<std::byte> result = combine(call);
      std::copy(result.begin(), result.end(), call.result.begin());
      for (const std::shared_ptr<bool>& done : call.done) *done = true;
    }
    return cuda::kNcclInProgress;
  });
}

// Called once all ranks have joined the split.
void FinishSplit(Group& group, const std::map<int, SplitOfRank>& of_ranks) {
  std::map<int, std::vector<std::pair<int, int>>> by_color;  // key and rank
  for (const auto& [rank, its] : of_ranks) by_color[its.color].push_back({its.key, rank});
  for (auto& [color, ranks] : by_color) {
    std::sort(ranks.begin(), ranks.end());
    auto part = std::make_shared<Group>(Group{.lost = group.lost});
    for (const auto& [key, rank] : ranks)
      part->origins.push_back(group.origins[static_cast<size_t>(rank)]);
    for (size_t i = 0; i < ranks.size(); ++i)
      *of_ranks.at(ranks[i].second).made = Nccl::Get().Add(part, static_cast<int>(i));
  }
}

}  // namespace

std::vector<void*> MakeCommunicator(int ranks) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  Nccl::Get().aborted = Nccl::Get().destroyed = 0;
  auto group = std::make_shared<Group>(Group{.lost = std::make_shared<std::set<int>>()});
  std::vector<void*> handles;
  for (int rank = 0; rank < ranks; ++rank) group->origins.push_back(rank);
  for (int rank = 0; rank < ranks; ++rank) handles.push_back(Nccl::Get().Add(group, rank));
  return handles;
}

void Lose(void* handle) {
  std::lock_guard lock(World::Get().mu);
  const Comm& comm = *Nccl::Get().comms.at(handle);
  comm.group->lost->insert(DeviceOf(comm));
}

StuckLaunches::StuckLaunches() {
  std::lock_guard lock(World::Get().mu);
  Nccl::Get().stuck = true;
}
StuckLaunches::~StuckLaunches() {
  std::lock_guard lock(World::Get().mu);
  Nccl::Get().stuck = false;
}

void StuckLaunches::Await() {
  World& world = World::Get();
  std::unique_lock lock(world.mu);
  Nccl& nccl = Nccl::Get();
  nccl.has_stuck.wait(lock, [&nccl] {
    return std::any_of(nccl.comms.begin(), nccl.comms.end(), [](const auto& comm) {
      return comm.second->stuck && comm.second->state == State::kLives;
    });
  });
}

int Aborted() {
  std::lock_guard lock(World::Get().mu);
  return Nccl::Get().aborted;
}
int Destroyed() {
  std::lock_guard lock(World::Get().mu);
  return Nccl::Get().destroyed;
}

}  // namespace penstock::pretended_nccl

// --- The functions of cuda/nccl_library.h --------------------------------------------------

using namespace penstock::pretended_nccl;  // NOLINT: what stands above
using penstock::cuda::kNcclInProgress;
using penstock::cuda::kNcclSuccess;

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22800;
  return kNcclSuccess;
}

const char* ncclGetErrorString(int result) {
  return result == kRemoteError ? "remote process exited" : "pretended";
}

int ncclCommCount(NcclComm handle, int* count) {
  return With(handle, "ncclCommCount", [&](World&, Comm& comm) {
    *count = comm.group->size();
    return kNcclSuccess;
  });
}

int ncclCommUserRank(NcclComm handle, int* rank) {
  return With(handle, "ncclCommUserRank", [&](World&, Comm& comm) {
    *rank = comm.rank;
    return kNcclSuccess;
  });
}

int ncclCommCuDevice(NcclComm handle, int* device) {
  return With(handle, "ncclCommCuDevice", [&](World&, Comm& comm) {
    *device = DeviceOf(comm);
    return kNcclSuccess;
  });
}

int ncclCommSplit(NcclComm handle, int color, int key, NcclComm* made, NcclConfig* config) {
  return With(handle, "ncclCommSplit", [&](World& world, Comm& comm) {
    world.Current("ncclCommSplit");
    world.MustBeCurrent(DeviceOf(comm), "ncclCommSplit", "communicator");
    if (config == nullptr || config->blocking != 0) return kInvalidArgument;
    std::map<int, SplitOfRank>& of_ranks = comm.group->splits[comm.splits++];
    of_ranks[comm.rank] = {color, key, made};
    comm.splitting = true;
    if (static_cast<int>(of_ranks.size()) < comm.group->size()) return kNcclInProgress;
    FinishSplit(*comm.group, of_ranks);
    for (auto& [other, its] : Nccl::Get().comms) {
      if (its->group == comm.group) its->splitting = false;
    }
    return kNcclInProgress;
  });
}

int ncclCommGetAsyncError(NcclComm handle, int* error) {
  return With(handle, "ncclCommGetAsyncError", [&](World&, Comm& comm) {
    *error = HasLost(*comm.group)                                     ? kRemoteError
             : comm.splitting || comm.stuck                           ? kNcclInProgress
             : comm.state == State::kFinalized && HasUnfinished(comm) ? kNcclInProgress
                                                                      : kNcclSuccess;
    return kNcclSuccess;
  });
}

int ncclCommFinalize(NcclComm handle) {
  return With(handle, "ncclCommFinalize", [&](World&, Comm& comm) {
    comm.state = State::kFinalized;
    return kNcclInProgress;
  });
}

int ncclCommDestroy(NcclComm handle) {
  return With(handle, "ncclCommDestroy", [&](World& world, Comm& comm) {
    if (comm.state != State::kFinalized || HasUnfinished(comm))
      world.Violate("ncclCommDestroy of a communicator with unfinished work");
    comm.state = State::kDestroyed;
    ++Nccl::Get().destroyed;
    return kNcclSuccess;
  });
}

int ncclCommAbort(NcclComm handle) {
  return With(handle, "ncclCommAbort", [&](World&, Comm& comm) {
    comm.state = State::kAborted;
    for (const std::shared_ptr<bool>& done : comm.launched) *done = true;
    ++Nccl::Get().aborted;
    return kNcclSuccess;
  });
}

int ncclAllReduce(const void* from, void* to, size_t count, int type, int op, NcclComm comm,
                  cudaStream_t stream) {
  if (type != penstock::cuda::kNcclInt64) return kInvalidArgument;
  const size_t bytes = count * sizeof(int64_t);
  return Launch("ncclAllReduce", from, bytes, to, bytes, comm, stream,
                [op](const Call& call) { return Reduce(call, op); });
}

int ncclAllGather(const void* from, void* to, size_t count_each, int type, NcclComm handle,
                  cudaStream_t stream) {
  if (type != penstock::cuda::kNcclUint8) return kInvalidArgument;
  int ranks = 0;
  if (const int failed = ncclCommCount(handle, &ranks); failed != kNcclSuccess) return failed;
  return Launch("ncclAllGather", from, count_each, to, count_each * static_cast<size_t>(ranks),
                handle, stream, Concatenate);
}

}  // extern "C"
