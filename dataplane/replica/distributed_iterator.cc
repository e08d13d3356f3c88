// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/distributed_iterator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/sync/clock.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"
#include "dataplane/dataset/engine/epochs.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/memory/device/gpu_direct_pool.h"
#include "dataplane/memory/device/page_locked_pool.h"
#include "dataplane/replica/collective/collective.h"
#include "dataplane/replica/parallel_for.h"
#include "include/status_macros.h"
#include "penstock/fingerprint.h"

namespace penstock::replica {
namespace {

// "PSDI": distinguishes a state of a distributed iterator from other bytes.
constexpr std::string_view kStateMagic = "PSDI";
constexpr uint64_t kStateVersion = 2;

// Returns the seed of a pass from the seed of the first pass.
uint64_t SeedOfPass(uint64_t seed, int64_t pass) {
  return pass == 0 ? seed : Fingerprint(static_cast<uint64_t>(pass), Fingerprint(seed));
}

// Saved in states and compared when they are restored, so the wording is part of their format.
std::string LayoutText(const DistributedDataset::Plan& plan) {
  return absl::StrCat("process ", plan.group.process(), " of processes with ",
                      absl::StrJoin(plan.group.replicas_of_process(), ", "), " replica(s), ",
                      plan.pipelines.size(), " pipeline(s) each");
}

std::string_view BehindMagic(const State& state) {
  const std::string_view bytes = state.bytes;
  return bytes.substr(std::min(bytes.size(), kStateMagic.size()));
}

// Returns the number of steps after the delivered step that may be on their way to devices.
int DepthOf(const DistributedDataset::Plan& plan) {
  constexpr int64_t kMostByDefault = 4;  // device memory is scarce
  return plan.device_depth.value_or(
      static_cast<int>(std::min(plan.options.per_replica_buffer_size, kMostByDefault)));
}

// Returns true if the host never reads the bodies of the elements that this pipeline reads.
bool BodiesMayStayAway(const DistributedDataset::Plan& plan, const PipelineInput& input) {
  const PartialBatches policy = plan.options.partial_batches;
  const bool fills_up = policy == PartialBatches::kPad || policy == PartialBatches::kRepeat;
  return plan.maps.empty() && plan.options.replicas_per_element == 1 && input.replicas == 1 &&
         (plan.coordinated || !fills_up);
}

// Returns nullptr if all values stay in host memory.
std::shared_ptr<const DevicePrefetchQueues> QueuesOf(const DistributedDataset::Plan& plan,
                                                     int depth) {
  auto queues = std::make_shared<DevicePrefetchQueues>();
  bool any = false;
  for (const Device& device : plan.whole.devices()) {
    const bool on_gpu = plan.options.fetch_to_device && device.kind == Device::Kind::kGpu;
    any = any || on_gpu;
    if (on_gpu) PageLocking::ForProcess().UseDevice(device.index);
    const DevicePrefetchQueueOptions options{.device = device.index, .depth = depth};
    queues->push_back(on_gpu ? std::make_unique<DevicePrefetchQueue>(LinkedDeviceBackend(), options)
                             : nullptr);
  }
  if (!any) return nullptr;
  size_t first = 0;
  for (const PipelineInput& input : plan.pipelines) {
    const std::unique_ptr<DevicePrefetchQueue>& queue =
        (*queues)[first * static_cast<size_t>(plan.options.replicas_per_element)];
    first += static_cast<size_t>(input.replicas);
    if (queue != nullptr && BodiesMayStayAway(plan, input)) EnableGpuDirect(*queue);
  }
  return queues;
}

absl::Status Stopped() {
  return absl::CancelledError("the iterator was stopped");
}

absl::Status CheckOutside(std::string_view what) {
  if (!InReplicaFunction()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(std::string(what),
                   " was called inside a function passed to Run, where each replica would "
                   "call it separately; call it outside that function, and pass the values to "
                   "Run"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepIterator>> StepIterator::Start(
    std::shared_ptr<const DistributedDataset::Plan> plan) {
  const int64_t pass = plan->passes->fetch_add(1);
  const uint64_t seed = plan->seeded ? SeedOfPass(plan->seed, pass) : RandomNumber();
  std::unique_ptr<StepIterator> iterator(new StepIterator(plan, seed, pass));
  const int depth = DepthOf(*plan);
  iterator->queues_ = QueuesOf(*plan, depth);
  if (iterator->queues_ != nullptr) {
    ASSIGN_OR_RETURN(iterator->progress_, CopyCompletionThread::Start(iterator->queues_));
    iterator->output_pool_ = &PageLockedPool();
  }
  int first = 0;
  for (const PipelineInput& input : plan->pipelines) {
    Dataset reading = input.dataset;
    int64_t buffer = input.buffer;
    Pool* read_into = plan->maps.empty() ? iterator->output_pool_ : &DefaultPool();
    if (iterator->queues_ != nullptr && plan->maps.empty()) {
      reading = AddDevicePrefetch(reading, iterator->queues_, first, input.replicas,
                                  plan->options.replicas_per_element);
      buffer = std::max<int64_t>(buffer, int64_t{depth} * input.replicas);
      const auto replica = static_cast<size_t>(first * plan->options.replicas_per_element);
      const std::unique_ptr<DevicePrefetchQueue>& queue = (*iterator->queues_)[replica];
      if (queue != nullptr && queue->gpu_direct_pool() != nullptr)
        read_into = queue->gpu_direct_pool();
    }
    ASSIGN_OR_RETURN(
        iterator->pipelines_.emplace_back(),
        Pipeline::Start(input, Buffered(reading, buffer), *plan, seed, pass, *read_into));
    first += input.replicas;
  }
  return iterator;
}

absl::Status StepIterator::Each(const std::function<absl::Status(size_t)>& fn) const {
  return ParallelFor(static_cast<int>(pipelines_.size()),
                     [&fn](int n) { return fn(static_cast<size_t>(n)); });
}

absl::StatusOr<std::optional<DistributedValues>> StepIterator::Next() {
  RETURN_IF_ERROR(CheckOutside("Next"));
  if (stop_.stop_requested()) return Stopped();
  RETURN_IF_ERROR(restore_failed_);
  RETURN_IF_ERROR(Meet());
  if (over_ || (plan_->limited && step_ == plan_->steps)) return std::nullopt;
  absl::StatusOr<std::optional<DistributedValues>> values = Step();
  // An error counts as a step, because it is returned in place of a step.
  const bool end = values.ok() && !values->has_value();
  if (!end && !absl::IsCancelled(values.status())) ++step_;
  over_ = over_ || end;
  return values;
}

absl::Status StepIterator::CheckStep(int64_t step) const {
  if (step == step_) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("step ", step, " was requested, but step ", step_, " is next"));
}

absl::Status StepIterator::Meet() {
  if (met_) return absl::OkStatus();
  RETURN_IF_ERROR(AwaitOthers([this] { return MeetOthers(); }));
  met_ = true;
  return absl::OkStatus();
}

absl::Status StepIterator::AwaitOthers(absl::FunctionRef<absl::Status()> wait) {
  if (stop_.stop_requested()) return Stopped();
  absl::Status status;
  {
    const std::stop_callback abandon(stop_.get_token(), [this] { AbandonOthers(); });
    status = wait();
  }
  return stop_.stop_requested() ? Stopped() : status;
}

absl::Status StepIterator::MeetOthers() {
  if (plan_->aligned) {
    ASSIGN_OR_RETURN(aligner_, StepAligner::Make(plan_->group,
                                                 {.partial_batches = plan_->options.partial_batches,
                                                  .first_step = step_,
                                                  .must_match = plan_->must_match}));
    has_aligner_ = true;
    return absl::OkStatus();
  }
  std::vector<std::pair<std::string, std::string>> alike = plan_->must_match;
  alike.emplace_back("partial_batches",
                     absl::StrCat(static_cast<int>(plan_->options.partial_batches)));
  alike.emplace_back("the next step", absl::StrCat(step_));
  return replica_internal::CheckAlike(plan_->group, alike);
}

absl::StatusOr<bool> StepIterator::GoesOn(bool any, bool all) {
  const PartialBatches policy = plan_->options.partial_batches;
  const bool needs_all = policy == PartialBatches::kDrop || policy == PartialBatches::kError;
  if (aligner_.has_value()) {
    const bool has = needs_all ? all : any;
    over_ = true;  // reset below if the other processes go on too
    RETURN_IF_ERROR(aligner_->Start(has));
    ++unanswered_;
    // If no step has to be dropped, this process runs every step for which it has data, without
    // waiting for the other processes' answers about this step.
    for (; unanswered_ > (has && !needs_all ? 1 : 0); --unanswered_) {
      absl::StatusOr<bool> goes_on = false;
      RETURN_IF_ERROR(AwaitOthers([&] {
        goes_on = aligner_->Finish();
        return goes_on.status();
      }));
      if (!*goes_on) return false;
    }
    over_ = false;
    return true;
  }
  if (all) return true;
  if (!needs_all) return any || plan_->limited;
  if (policy == PartialBatches::kDrop && !plan_->limited) return false;
  if (!any && !plan_->limited) return false;
  over_ = true;
  return absl::OutOfRangeError(
      plan_->limited ? absl::StrCat("the data of this process ended at step ", step_,
                                    ", but every replica must run ", plan_->steps, " steps")
                     : absl::StrCat("some replicas have no data for step ", step_,
                                    " while others do; partial_batches kError makes this an "
                                    "error"));
}

absl::StatusOr<std::optional<DistributedValues>> StepIterator::Step() {
  std::vector<std::vector<Portion>> portions(pipelines_.size());
  const absl::Status read = Each([&](size_t n) -> absl::Status {
    ASSIGN_OR_RETURN(portions[n], pipelines_[n]->Next());
    return absl::OkStatus();
  });
  if (absl::IsCancelled(read)) return read;
  bool any = false;
  bool all = true;
  for (const std::vector<Portion>& of_pipeline : portions) {
    for (const Portion& portion : of_pipeline) {
      any = any || portion.element;
      all = all && portion.whole();
    }
  }
  // An error takes the place of a step that the other processes run.
  if (!read.ok()) {
    if (aligner_.has_value()) {
      ASSIGN_OR_RETURN(const bool goes_on, GoesOn(true, true));
      over_ = over_ || !goes_on;
    }
    return read;
  }
  ASSIGN_OR_RETURN(const bool goes_on, GoesOn(any, all));
  if (!goes_on) return std::nullopt;
  if (!all) RETURN_IF_ERROR(Each([&](size_t n) { return pipelines_[n]->Fill(portions[n]); }));

  std::vector<Element> elements;
  std::vector<std::vector<float>> weights;
  for (std::vector<Portion>& of_pipeline : portions) {
    for (Portion& portion : of_pipeline) {
      elements.push_back(std::move(portion.element));
      weights.push_back(std::move(portion.weights));
    }
  }
  RETURN_IF_ERROR(Map(elements));
  ShareOut(elements, weights);
  if (queues_ == nullptr) return DistributedValues(std::move(elements), std::move(weights));
  ASSIGN_OR_RETURN(std::vector<DeviceElement> on_devices, CopyToDevices(elements));
  return DistributedValues(std::move(elements), std::move(on_devices), std::move(weights));
}

void StepIterator::ShareOut(std::vector<Element>& elements,
                            std::vector<std::vector<float>>& weights) const {
  const auto sharing = static_cast<size_t>(plan_->options.replicas_per_element);
  if (sharing == 1) return;
  std::vector<Element> shared;
  std::vector<std::vector<float>> their_weights;
  for (size_t i = 0; i < elements.size(); ++i) {
    for (size_t replica = 0; replica < sharing; ++replica) {
      shared.push_back(elements[i].Share());
      their_weights.push_back(weights[i]);
    }
  }
  elements = std::move(shared);
  weights = std::move(their_weights);
}

absl::StatusOr<std::vector<DeviceElement>> StepIterator::CopyToDevices(
    std::vector<Element>& elements) const {
  std::vector<DeviceElement> on_devices(elements.size());
  for (bool all = false; !all;) {
    all = true;
    // Begins the copies of all replicas before waiting for any of them.
    for (size_t i = 0; i < elements.size(); ++i) {
      if ((*queues_)[i] == nullptr || on_devices[i]) continue;
      absl::StatusOr<std::optional<DeviceElement>> taken = (*queues_)[i]->TryTake(elements[i]);
      RETURN_IF_ERROR(Annotate(taken.status(), "replica ", plan_->whole.first_replica() + i, " on ",
                               plan_->whole.devices()[i].ToString(), ", step ", step_));
      if (taken->has_value())
        on_devices[i] = **std::move(taken);
      else
        all = false;
    }
    if (all) break;
    if (stop_.stop_requested()) return Stopped();
    Sleep(kPlacePolls);
  }
  for (size_t i = 0; i < elements.size(); ++i)
    if (on_devices[i]) elements[i] = Element();
  return on_devices;
}

std::vector<DeviceCopyStats> StepIterator::CopyStats() const {
  std::vector<DeviceCopyStats> stats;
  if (queues_ == nullptr) return stats;
  for (const std::unique_ptr<DevicePrefetchQueue>& queue : *queues_)
    if (queue != nullptr) stats.push_back(queue->stats());
  return stats;
}

absl::Status StepIterator::Map(std::vector<Element>& elements) const {
  if (plan_->maps.empty()) return absl::OkStatus();
  return ParallelFor(static_cast<int>(elements.size()), [&](int local) -> absl::Status {
    const int replica = plan_->group.first_replica() + local;
    RandomKey random{.seed = seed_,
                     .repetition = static_cast<uint64_t>(step_),
                     .element = static_cast<uint64_t>(replica)};
    for (const TracedFunction& map : plan_->maps) {
      Element& element = elements[static_cast<size_t>(local)];
      absl::StatusOr<Element> mapped =
          map(element, random, &map == &plan_->maps.back() ? *output_pool_ : DefaultPool());
      RETURN_IF_ERROR(Annotate(mapped.status(), "in map ", random.node, " after the distribution, ",
                               "replica ", replica, ", step ", step_));
      element = *std::move(mapped);
      ++random.node;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<State> StepIterator::Save() {
  RETURN_IF_ERROR(CheckOutside("Save"));
  RETURN_IF_ERROR(restore_failed_);
  StateWriter writer;
  writer.WriteUnsigned(kStateVersion);
  writer.WriteString(LayoutText(*plan_));
  writer.WriteUnsigned(seed_);
  writer.WriteInt(pass_);
  writer.WriteInt(step_);
  writer.WriteBool(over_);
  for (const std::unique_ptr<Pipeline>& pipeline : pipelines_)
    RETURN_IF_ERROR(pipeline->Save(writer));
  return State{absl::StrCat(std::string(kStateMagic), writer.bytes())};
}

absl::StatusOr<StepIterator::Head> StepIterator::ReadHead(StateReader& reader) const {
  ASSIGN_OR_RETURN(const uint64_t version, reader.ReadUnsigned());
  if (version != kStateVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the state has version ", version, "; this program reads ", kStateVersion));
  }
  ASSIGN_OR_RETURN(const std::string_view layout, reader.ReadString());
  if (const std::string here = LayoutText(*plan_); layout != here) {
    return absl::InvalidArgumentError(absl::StrCat("the state is from ", std::string(layout),
                                                   ", but this is ", here,
                                                   "; restore it in a group of the same layout"));
  }
  Head head;
  ASSIGN_OR_RETURN(head.seed, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(head.pass, reader.ReadIntIn(0, kMostEpochs, "the pass"));
  ASSIGN_OR_RETURN(head.step, reader.ReadInt());
  ASSIGN_OR_RETURN(head.over, reader.ReadBool());
  return head;
}

absl::Status StepIterator::Restore(const State& state) {
  RETURN_IF_ERROR(CheckOutside("Restore"));
  if (!std::string_view(state.bytes).starts_with(kStateMagic))
    return absl::InvalidArgumentError("the bytes are not a state of a distributed iterator");
  StateReader reader(BehindMagic(state));
  ASSIGN_OR_RETURN(const Head head, ReadHead(reader));
  LeaveOthers();
  if (absl::Status status = RestorePipelines(reader); !status.ok()) {
    restore_failed_ = absl::FailedPreconditionError(
        absl::StrCat("the last Restore() failed, so there is no step to continue from; restore "
                     "again, or create a new iterator; it failed with ",
                     status.ToString()));
    return status;
  }
  restore_failed_ = absl::OkStatus();
  seed_ = head.seed;
  for (int64_t next = *plan_->passes;
       !plan_->passes->compare_exchange_weak(next, NextEpoch(next, pass_, head.pass));) {
  }
  pass_ = head.pass;
  step_ = head.step;
  over_ = head.over;
  return absl::OkStatus();
}

void StepIterator::LeaveOthers() {
  // Waits for the answers to steps that this process ran ahead of the other processes.
  while (unanswered_ > 0 && AwaitOthers([this] { return aligner_->Finish().status(); }).ok())
    --unanswered_;
  unanswered_ = 0;
  met_ = false;
  has_aligner_ = false;
  aligner_.reset();
}

absl::Status StepIterator::RestorePipelines(StateReader& reader) {
  for (const std::unique_ptr<Pipeline>& pipeline : pipelines_)
    RETURN_IF_ERROR(pipeline->Restore(reader));
  if (queues_ != nullptr) {
    for (const std::unique_ptr<DevicePrefetchQueue>& queue : *queues_)
      if (queue != nullptr) queue->Forget();
  }
  return reader.ExpectEnd();
}

absl::Status StepIterator::Commit(const State& state) {
  if (!std::string_view(state.bytes).starts_with(kStateMagic))
    return absl::InvalidArgumentError("the bytes are not a state of a distributed iterator");
  StateReader reader(BehindMagic(state));
  RETURN_IF_ERROR(ReadHead(reader).status());
  for (const std::unique_ptr<Pipeline>& pipeline : pipelines_)
    RETURN_IF_ERROR(pipeline->Commit(reader));
  return absl::OkStatus();
}

void StepIterator::AbandonOthers() {
  const absl::Status why = absl::UnavailableError(
      absl::StrCat("process ", plan_->group.process(), " stopped its iterator"));
  // Until there is an aligner, Meet() may be waiting on the group's own communicator. Aborts that
  // communicator, because once a call is abandoned, the processes no longer make their calls in the
  // same order.
  if (has_aligner_)
    aligner_->Abort(why);
  else if (CollectiveOf(plan_->group) != nullptr)
    CollectiveOf(plan_->group)->Abort(why);
}

absl::Status StepIterator::Stop(absl::Duration bound) {
  stop_.request_stop();
  const absl::Time deadline = BootTime() + bound;
  return Each([&](size_t n) {
    return pipelines_[n]->Stop(std::max(deadline - BootTime(), absl::ZeroDuration()));
  });
}

}  // namespace penstock::replica
