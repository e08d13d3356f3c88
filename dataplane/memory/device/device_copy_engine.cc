// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/device_copy_engine.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock {
namespace {

constexpr size_t kPlaceAlignment = 256;                       // bytes; as for cudaMalloc()
constexpr size_t kMostWrapped = 64;                           // wrapped streams of the trainer
constexpr absl::Duration kEndPolls = absl::Microseconds(50);  // while a destructor waits

using DeviceEventPtr = std::unique_ptr<DeviceEvent>;

// Returns this thread's number, at least 1, which no other thread of this process has or had.
uint64_t ThisThread() {
  static std::atomic<uint64_t> threads = 0;
  thread_local const uint64_t mine = ++threads;
  return mine;
}

}  // namespace

// The device memory of one copy engine, and the host slots that it holds. Not thread-safe.
class CopyPlaces {
 public:
  static absl::StatusOr<std::unique_ptr<CopyPlaces>> Create(DeviceBackend& backend,
                                                            const DeviceCopyEngineOptions& options);

  // Begins to copy `element`'s body to a free place, and returns the place.
  absl::StatusOr<int> StartCopy(Element&& element);
  absl::Status ReadyOn(int place, DeviceStream& stream);
  absl::Status ReadBy(int place, DeviceStream& stream);
  // These two methods take the handle of a stream. LetGo() records an event on each stream that was
  // passed to ReadyOn() but not to ReadBy().
  absl::Status ReadyOn(int place, void* stream);
  absl::Status ReadBy(int place, void* stream);
  void LetGo(int place);
  std::optional<int> Reserve();
  void Hold(int place) { places_[place].held = true; }
  void Free(int place) { places_[place].reserved = false; }

  void Progress();
  int slots_held() const { return static_cast<int>(copying_.size()); }
  // Returns true if no work is in progress, so that all memory may be returned to the device.
  bool Idle() const;

  std::byte* address(int place) const {
    return static_cast<std::byte*>(memory_->address()) + place * place_bytes_;
  }
  size_t place_bytes() const { return place_bytes_; }
  size_t bytes() const { return memory_->bytes(); }
  DeviceCopyEngineCounters counters() const;
  const absl::Status& device_status() const { return device_status_; }

 private:
  // A stream's handle, and the thread that named the stream, because every thread uses the same
  // handle for its own default stream.
  struct Reader {
    void* stream;
    uint64_t thread = stream == PerThreadDefaultStream() ? ThisThread() : 0;
    // Returns a handle with which the calling thread can name a stream that waits for the reader.
    void* waits() const {
      return thread == 0 || thread == ThisThread() ? stream : LegacyDefaultStream();
    }
    friend bool operator==(const Reader&, const Reader&) = default;
  };
  struct Place {
    DeviceEventPtr copied;    // recorded after the copy
    bool unrecorded = false;  // the device has refused to record `copied` so far
    Element source;           // kept until `copied` is done
    bool reserved = false;    // for another writer
    bool held = false;        // by a DeviceElement
    bool spoilt = false;      // no event could be recorded for a reader, which may still be reading
    std::vector<DeviceEventPtr> readers;  // recorded on their streams, after their reads
    std::vector<Reader> streams;          // streams of readers that have no event yet

    bool free() const { return !source && !reserved && !held && !spoilt && readers.empty(); }
  };

  explicit CopyPlaces(DeviceBackend& backend, const DeviceCopyEngineOptions& options)
      : backend_(backend), options_(options) {}
  std::vector<Place>::iterator FindFree() {
    return std::find_if(places_.begin(), places_.end(),
                        [](const Place& place) { return place.free(); });
  }
  absl::StatusOr<DeviceEventPtr> SpareEvent();
  bool Done(DeviceEvent& event);
  absl::StatusOr<DeviceStream*> Wrapped(void* stream);
  void RecordCopy(Place& place);
  bool ReleaseSource(Place& place);  // returns false if the copy is not done
  void ReleaseReaders(Place& place);

  DeviceBackend& backend_;
  const DeviceCopyEngineOptions options_;
  size_t place_bytes_ = 0;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<DeviceStream> stream_;
  std::vector<Place> places_;
  std::deque<int> copying_;  // places with a source, in the order of their copies in the stream
  std::vector<DeviceEventPtr> spare_;
  std::vector<std::unique_ptr<DeviceStream>> wrapped_;  // streams of the trainer
  absl::Status failure_;                                // why the last event could not be recorded
  absl::Status device_status_;                          // status of the last event that was queried
  DeviceCopyEngineCounters counters_;
};

absl::StatusOr<std::unique_ptr<CopyPlaces>> CopyPlaces::Create(
    DeviceBackend& backend, const DeviceCopyEngineOptions& options) {
  if (options.places < 1 || options.place_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a device copy engine needs at least one place of at least one byte, got ",
                     options.places, " places of ", options.place_bytes, " bytes"));
  }
  std::unique_ptr<CopyPlaces> made(new CopyPlaces(backend, options));
  made->place_bytes_ = AlignUp(options.place_bytes, kPlaceAlignment);
  ASSIGN_OR_RETURN(made->memory_,
                   backend.Allocate(options.device, made->place_bytes_ * options.places));
  ASSIGN_OR_RETURN(made->stream_, backend.MakeStream(options.device));
  made->places_.resize(options.places);
  for (Place& place : made->places_) {
    ASSIGN_OR_RETURN(place.copied, made->SpareEvent());
    place.readers.reserve(2);
    place.streams.reserve(2);
  }
  // Most places have one reader. The event for it is made here, so that steps make no events.
  for (int i = 0; i < options.places; ++i) {
    ASSIGN_OR_RETURN(DeviceEventPtr reader, backend.MakeEvent(options.device));
    ++made->counters_.events;
    made->spare_.push_back(std::move(reader));
  }
  return made;
}

absl::StatusOr<DeviceEventPtr> CopyPlaces::SpareEvent() {
  if (!spare_.empty()) {
    DeviceEventPtr event = std::move(spare_.back());
    spare_.pop_back();
    return event;
  }
  ASSIGN_OR_RETURN(DeviceEventPtr event, backend_.MakeEvent(options_.device));
  ++counters_.events;
  return event;
}

absl::StatusOr<int> CopyPlaces::StartCopy(Element&& element) {
  RETURN_IF_ERROR(failure_);  // this slot would be stuck too
  const HeadPrefix& prefix = PrefixOf(element.block().data());
  const size_t bytes = prefix.body_bytes;
  if (bytes > place_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("an element with a body of ", bytes, " bytes does not fit in a place of ",
                     place_bytes_, " on the device; raise place_bytes"));
  }
  const auto found = FindFree();
  if (found == places_.end()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", places_.size(),
                     " places on the device are in use; release elements or raise places"));
  }
  const int place = static_cast<int>(found - places_.begin());
  const std::byte* body = element.block().data() + prefix.head_bytes;
  found->source = std::move(element);
  copying_.push_back(place);
  const absl::Status begun = stream_->CopyToDevice(address(place), body, bytes);
  // Recorded even if the device refused the copy, because the error may come from earlier work.
  RecordCopy(*found);
  RETURN_IF_ERROR(begun);
  RETURN_IF_ERROR(failure_);
  found->held = true;
  ++counters_.elements;
  counters_.bytes += static_cast<int64_t>(bytes);
  return place;
}

std::optional<int> CopyPlaces::Reserve() {
  const auto found = FindFree();
  if (found == places_.end()) return std::nullopt;
  found->reserved = true;
  return static_cast<int>(found - places_.begin());
}

absl::Status CopyPlaces::ReadyOn(int place, DeviceStream& stream) {
  return stream.WaitFor(*places_[place].copied);
}

absl::Status CopyPlaces::ReadBy(int place, DeviceStream& stream) {
  Place& its = places_[place];
  absl::StatusOr<DeviceEventPtr> event = SpareEvent();
  const absl::Status recorded = event.ok() ? stream.Record(**event) : event.status();
  if (recorded.ok()) {
    its.readers.push_back(*std::move(event));
  } else {
    its.spoilt = true;
    if (event.ok()) spare_.push_back(*std::move(event));
  }
  return recorded;
}

absl::StatusOr<DeviceStream*> CopyPlaces::Wrapped(void* stream) {
  for (const std::unique_ptr<DeviceStream>& known : wrapped_) {
    if (known->native() == stream) return known.get();
  }
  if (wrapped_.size() >= kMostWrapped) wrapped_.clear();
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceStream> made,
                   backend_.WrapStream(options_.device, stream));
  return wrapped_.emplace_back(std::move(made)).get();
}

absl::Status CopyPlaces::ReadyOn(int place, void* stream) {
  ASSIGN_OR_RETURN(DeviceStream * wrapped, Wrapped(stream));
  RETURN_IF_ERROR(ReadyOn(place, *wrapped));
  std::vector<Reader>& streams = places_[place].streams;
  const Reader reader{stream};
  if (std::find(streams.begin(), streams.end(), reader) == streams.end()) streams.push_back(reader);
  return absl::OkStatus();
}

absl::Status CopyPlaces::ReadBy(int place, void* stream) {
  std::erase(places_[place].streams, Reader{stream});
  absl::StatusOr<DeviceStream*> wrapped = Wrapped(stream);
  if (!wrapped.ok()) {
    places_[place].spoilt = true;
    return wrapped.status();
  }
  return ReadBy(place, **wrapped);
}

void CopyPlaces::LetGo(int place) {
  Place& its = places_[place];
  while (!its.streams.empty()) {
    const Reader reader = its.streams.back();
    its.streams.pop_back();
    ReadBy(place, reader.waits()).IgnoreError();  // after an error the place is spoilt
  }
  its.held = false;
}

void CopyPlaces::RecordCopy(Place& place) {
  failure_ = stream_->Record(*place.copied);
  place.unrecorded = !failure_.ok();
}

bool CopyPlaces::ReleaseSource(Place& place) {
  if (place.unrecorded) RecordCopy(place);  // still after the copy in the stream
  // A failed device may still read the slot, so it stays lent.
  if (place.unrecorded || !Done(*place.copied)) return false;
  place.source = Element();
  return true;
}

bool CopyPlaces::Done(DeviceEvent& event) {
  const absl::StatusOr<bool> done = event.Done();
  device_status_ = done.status();
  return done.value_or(false);
}

void CopyPlaces::ReleaseReaders(Place& place) {
  if (place.held) return;
  std::erase_if(place.readers, [&](DeviceEventPtr& event) {
    if (!Done(*event)) return false;
    spare_.push_back(std::move(event));
    return true;
  });
}

void CopyPlaces::Progress() {
  while (!copying_.empty() && ReleaseSource(places_[copying_.front()])) copying_.pop_front();
  if (!failure_.ok()) {
    for (const int place : copying_) {
      if (places_[place].unrecorded) RecordCopy(places_[place]);
    }
  }
  for (Place& place : places_) ReleaseReaders(place);
}

bool CopyPlaces::Idle() const {
  return std::all_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.free(); });
}

DeviceCopyEngineCounters CopyPlaces::counters() const {
  DeviceCopyEngineCounters counters = counters_;
  counters.slots_held = slots_held();
  counters.places_in_use = static_cast<int>(std::count_if(
      places_.begin(), places_.end(), [](const Place& place) { return !place.free(); }));
  counters.places_held = static_cast<int>(
      std::count_if(places_.begin(), places_.end(), [](const Place& place) { return place.held; }));
  return counters;
}

namespace {

// Places of engines that were destroyed before their copies were done. They are kept until the
// device is done.
struct LeftOver {
  Mutex mu;
  std::vector<std::unique_ptr<CopyPlaces>> places GUARDED_BY(mu);
};

LeftOver& TheLeftOver() {
  static LeftOver& left_over = *new LeftOver;  // a copy may outlive all statics
  return left_over;
}

}  // namespace

class DeviceCopyState {
 public:
  DeviceCopyState(std::unique_ptr<CopyPlaces> places, const DeviceCopyEngineOptions& options)
      : stop_within_(options.stop_within), device_(options.device), places_(std::move(places)) {}

  // Runs when the engine and the last of its elements are gone.
  ~DeviceCopyState() {
    WaitUntil([&] { return places_->Idle(); });
    if (places_->Idle()) return;
    LeftOver& left_over = TheLeftOver();
    MutexLock lock(left_over.mu);
    left_over.places.push_back(std::move(places_));
  }

  // Calls `f` with the lock held.
  template <class F>
  auto With(F f) {
    MutexLock lock(mu_);
    return f(*places_);
  }
  // Calls `f` in the same way, after querying the device and releasing all slots and places that
  // are done.
  template <class F>
  auto WithProgress(F f) {
    MutexLock lock(mu_);
    places_->Progress();
    return f(*places_);
  }

  // Called when the engine ends; its elements may live on.
  void Stop() {
    WaitUntil([&] { return With([](CopyPlaces& places) { return places.slots_held() == 0; }); });
  }

  // Needs no lock, because callers read only constant data through it.
  const CopyPlaces& places() const { return *places_; }
  std::byte* address(int place) const { return places_->address(place); }
  int device() const { return device_; }

 private:
  template <class Condition>
  void WaitUntil(Condition condition) {
    const absl::Time until = BootTime() + stop_within_;
    for (WithProgress([](CopyPlaces&) {}); !condition() && BootTime() < until;
         WithProgress([](CopyPlaces&) {})) {
      Sleep(kEndPolls);
    }
  }

  const absl::Duration stop_within_;
  const int device_;
  Mutex mu_;
  std::unique_ptr<CopyPlaces> places_;  // the pointee is guarded by mu_
};

// --- The element -----------------------------------------------------------------------

DeviceElement::DeviceElement(DeviceElement&& other) noexcept
    : state_(std::move(other.state_)), place_(other.place_), head_(std::move(other.head_)) {}

DeviceElement& DeviceElement::operator=(DeviceElement&& other) noexcept {
  if (this != &other) {
    LetGo();
    state_ = std::move(other.state_);
    place_ = other.place_;
    head_ = std::move(other.head_);
  }
  return *this;
}

DeviceElement::~DeviceElement() {
  LetGo();
}

void DeviceElement::LetGo() {
  const std::shared_ptr<DeviceCopyState> state = std::exchange(state_, nullptr);
  if (state == nullptr) return;
  state->With([&](CopyPlaces& places) { places.LetGo(place_); });
}

Tensor DeviceElement::tensor(size_t i) const {
  const Tensor host = head_.tensor(i);
  if (!host.present() || host.dtype() == kString) return host;
  const std::byte* block = head_.block().data();
  const std::byte* data = state_->address(place_) + TableOf(block)[i].data_offset;
  Tensor tensor(host.dtype(), host.dims(), data);
  if (host.kind() == TensorSpec::Kind::kSparse) {
    tensor.SetSparse(host.indices(), host.dense_shape());
  } else if (host.kind() == TensorSpec::Kind::kRagged) {
    absl::Span<const int64_t> splits[Tensor::kMaxRaggedRank];
    for (int level = 0; level < host.ragged_rank(); ++level) splits[level] = host.row_splits(level);
    tensor.SetRagged(absl::MakeConstSpan(splits, host.ragged_rank()));
  }
  return tensor;
}

Tensor DeviceElement::operator[](std::string_view key) const {
  const std::optional<Spec::Found> found = spec().Find(key);
  PENSTOCK_CHECK(found.has_value() && found->spec->kind() == Spec::Kind::kLeaf);
  return tensor(found->first_leaf);
}

int DeviceElement::device() const {
  return state_->device();
}

absl::Status DeviceElement::ReadyOn(void* stream) const {
  PENSTOCK_CHECK(state_ != nullptr);
  return state_->With([&](CopyPlaces& places) { return places.ReadyOn(place_, stream); });
}

absl::Status DeviceElement::ReadBy(void* stream) const {
  PENSTOCK_CHECK(state_ != nullptr);
  return state_->With([&](CopyPlaces& places) { return places.ReadBy(place_, stream); });
}

absl::Status DeviceElement::ReadyOn(DeviceStream& stream) const {
  PENSTOCK_CHECK(state_ != nullptr);
  return state_->With([&](CopyPlaces& places) { return places.ReadyOn(place_, stream); });
}

absl::Status DeviceElement::ReadBy(DeviceStream& stream) const {
  PENSTOCK_CHECK(state_ != nullptr);
  return state_->With([&](CopyPlaces& places) { return places.ReadBy(place_, stream); });
}

// --- The engine --------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<DeviceCopyEngine>> DeviceCopyEngine::Create(
    DeviceBackend& backend, const DeviceCopyEngineOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<CopyPlaces> places, CopyPlaces::Create(backend, options));
  return std::unique_ptr<DeviceCopyEngine>(
      new DeviceCopyEngine(std::make_shared<DeviceCopyState>(std::move(places), options)));
}

DeviceCopyEngine::~DeviceCopyEngine() {
  state_->Stop();
}

absl::StatusOr<DeviceElement> DeviceCopyEngine::CopyToDevice(Element element) {
  PENSTOCK_CHECK(element);
  // The head stays on the host. Copying it does not count as copying an element.
  const size_t head_bytes = PrefixOf(element.block().data()).head_bytes;
  ASSIGN_OR_RETURN(Loan loan, DefaultPool().Lend(head_bytes));
  std::byte* head = loan.bytes().data();
  std::memcpy(head, element.block().data(), head_bytes);
  const Spec spec = element.spec();
  ASSIGN_OR_RETURN(const int place, state_->WithProgress([&](CopyPlaces& places) {
    return places.StartCopy(std::move(element));
  }));
  return DeviceElement(state_, place, Element(std::move(loan), head, spec));
}

std::optional<int> DeviceCopyEngine::ReservePlace() {
  return state_->WithProgress([](CopyPlaces& places) { return places.Reserve(); });
}

absl::Span<std::byte> DeviceCopyEngine::place(int place) const {
  return {state_->address(place), state_->places().place_bytes()};
}

absl::Span<std::byte> DeviceCopyEngine::places() const {
  return {state_->address(0), state_->places().bytes()};
}

DeviceElement DeviceCopyEngine::Adopt(int place, Element head) {
  state_->With([&](CopyPlaces& places) { places.Hold(place); });
  return DeviceElement(state_, place, std::move(head));
}

void DeviceCopyEngine::FreePlace(int place) {
  state_->With([&](CopyPlaces& places) { places.Free(place); });
}

int DeviceCopyEngine::Progress() {
  return state_->WithProgress([](CopyPlaces& places) { return places.slots_held(); });
}

int DeviceCopyEngine::ProgressLeftOver() {
  LeftOver& left_over = TheLeftOver();
  std::vector<std::unique_ptr<CopyPlaces>> done;  // destroyed after the lock is released
  MutexLock lock(left_over.mu);
  int held = 0;
  std::erase_if(left_over.places, [&](std::unique_ptr<CopyPlaces>& places) {
    places->Progress();
    held += places->slots_held();
    if (!places->Idle()) return false;
    done.push_back(std::move(places));
    return true;
  });
  return held;
}

absl::Status DeviceCopyEngine::device_status() const {
  return state_->WithProgress([](CopyPlaces& places) { return places.device_status(); });
}

DeviceCopyEngineCounters DeviceCopyEngine::counters() const {
  return state_->WithProgress([](CopyPlaces& places) { return places.counters(); });
}

}  // namespace penstock
