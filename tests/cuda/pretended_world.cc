// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/pretended_world.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::pretended_cuda {
namespace {

std::string DeviceName(int device) {
  return "device " + std::to_string(device);
}

// Returns the entry that begins at or before `address` and holds all `bytes`.
template <class Entries>
auto* FindIn(Entries& entries, const void* address, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(address);
  auto after = entries.upper_bound(at);
  if (after == entries.begin()) return static_cast<decltype(&after->second)>(nullptr);
  --after;
  const bool inside =
      at + bytes <= after->first + after->second.bytes && at < after->first + after->second.bytes;
  return inside ? &after->second : nullptr;
}

bool Overlap(const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// A stream does a piece of work at one in this many chances. Slow enough that a trainer is a step
// ahead of its device now and then.
constexpr unsigned kSlowness = 4;

bool CanDoNext(const Stream& stream) {
  if (stream.work.empty()) return false;
  const Work& next = stream.work.front();
  return next.waits_for == nullptr || *next.waits_for;
}

void DoNext(Stream& stream) {
  if (!CanDoNext(stream)) return;
  const Work& next = stream.work.front();
  if (next.bytes > 0) std::memcpy(next.to, next.from, next.bytes);
  if (next.reaches != nullptr) *next.reaches = true;
  stream.work.pop_front();
}

}  // namespace

World& World::Get() {
  static World& world = *new World;  // threads may outlive all statics
  return world;
}

Thread& World::thread() {
  thread_local Thread mine;
  if (mine.process != process) mine = Thread{.process = process};
  return mine;
}

void World::NeedContext(int device, const char* call) {
  if (contexts[device]) return;
  contexts[device] = true;
  if (!machine.named.contains(device)) {
    Violate(std::string(call) + " made a context on " + DeviceName(device) +
            ", which the program has not named");
  }
}

int World::Current(const char* call) {
  std::vector<int>& stack = thread().contexts;
  if (stack.empty()) {
    Violate(std::string(call) + " without a current context");
    NeedContext(0, call);
    stack.push_back(0);
  }
  return stack.back();
}

void World::MustBeCurrent(int device, const char* call, const char* what) {
  const int current = thread().contexts.back();
  if (current == device) return;
  Violate(std::string(call) + " under the context of " + DeviceName(current) + ": the " + what +
          " is of " + DeviceName(device));
}

void World::Invalidate(Capture& capture, const std::string& why) {
  capture.invalid = true;
  Violate(why);
}

bool World::Forbidden(const char* call) {
  const cudaStreamCaptureMode mode = thread().mode;
  if (mode == cudaStreamCaptureModeRelaxed) return false;
  bool forbidden = false;
  for (auto& [handle, stream] : streams) {
    if (!stream->capture.has_value()) continue;
    Capture& capture = *stream->capture;
    const bool mine = capture.thread == std::this_thread::get_id();
    const bool heeded =
        mine ? capture.mode != cudaStreamCaptureModeRelaxed
             : capture.mode == cudaStreamCaptureModeGlobal && mode == cudaStreamCaptureModeGlobal;
    if (!heeded) continue;
    forbidden = true;
    Invalidate(capture, std::string(call) + " while " + (mine ? "this" : "another") +
                            " thread captures, not in relaxed mode");
  }
  return forbidden;
}

Event* World::Find(cudaEvent_t event) {
  const auto found = events.find(event);
  return found == events.end() ? nullptr : found->second.get();
}

Stream* World::Find(cudaStream_t stream) {
  const auto found = streams.find(stream);
  return found == streams.end() ? nullptr : found->second.get();
}

const Allocation* World::FindMemory(const void* address, size_t bytes) const {
  return FindIn(memory, address, bytes);
}

const PageLocked* World::FindPageLocked(const void* address, size_t bytes) const {
  return FindIn(page_locked, address, bytes);
}

bool World::InUse(const void* address, size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(address);
  return std::any_of(all_streams.begin(), all_streams.end(), [&](const Stream* stream) {
    return std::any_of(stream->work.begin(), stream->work.end(), [&](const Work& work) {
      return work.bytes > 0 &&
             (Overlap(work.to, work.bytes, at, bytes) || Overlap(work.from, work.bytes, at, bytes));
    });
  });
}

void World::MustNotBeInUse(const void* address, size_t bytes, const char* call) {
  if (InUse(address, bytes)) {
    Violate(std::string(call) + " of memory that a copy which is not done uses");
  }
}

void World::Advance() {
  for (Stream* const stream : all_streams) {
    if (generator() % kSlowness == 0) DoNext(*stream);
  }
  std::erase_if(destroyed, [&](const std::unique_ptr<Stream>& stream) {
    if (!stream->work.empty()) return false;
    std::erase(all_streams, stream.get());
    return true;
  });
}

void World::Run() {
  const auto can_go_on = [](const Stream* stream) { return CanDoNext(*stream); };
  while (std::any_of(all_streams.begin(), all_streams.end(), can_go_on)) Advance();
}

cudaError_t World::Do(const char* call, unsigned kinds,
                      const std::function<cudaError_t(World& world, int device)>& body) {
  return DoWithout([&](World& world) {
    const int device = Current(call);
    if ((kinds & kUnsafe) != 0 && Forbidden(call)) return cudaErrorStreamCaptureUnsupported;
    if ((kinds & kWaits) != 0 && in_step) {
      Violate(std::string(call) + " inside a step: it waits for the device");
    }
    return body(world, device);
  });
}

cudaError_t World::DoWithout(const std::function<cudaError_t(World& world)>& body) {
  std::lock_guard lock(mu);
  started = true;
  const cudaError_t error = body(*this);
  if (error != cudaSuccess) thread().last_error = error;
  return error;
}

// --- Functions for tests ---------------------------------------------------------------

void Begin(const Machine& machine) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  world.machine = machine;
  ++world.process;
  world.started = world.in_step = false;
  world.generator.seed(1);
  world.violations.clear();
  world.contexts.assign(machine.devices, false);
  world.all_streams.clear();
  world.destroyed.clear();
  world.streams.clear();
  world.events.clear();
  world.memory.clear();
  world.page_locked.clear();
  world.host_own.clear();
}

std::vector<std::string> Violations() {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  return world.violations;
}

std::vector<std::string> TakeViolations() {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  return std::exchange(world.violations, {});
}

Step::Step() {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  world.in_step = true;
}

Step::~Step() {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  world.in_step = false;
}

bool HasContext(int device) {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  return world.contexts.at(device);
}

size_t Pending() {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  size_t pending = 0;
  for (const Stream* stream : world.all_streams) pending += stream->work.size();
  return pending;
}

void RunAll() {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  world.Run();
}

bool ThreadIsUntouched() {
  World& world = World::Get();
  std::lock_guard lock(world.mu);
  const Thread& mine = world.thread();
  return mine.contexts.empty() && mine.mode == cudaStreamCaptureModeGlobal;
}

}  // namespace penstock::pretended_cuda
