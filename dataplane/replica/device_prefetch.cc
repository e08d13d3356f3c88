// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/device_prefetch.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/memory/device/gpu_direct_driver.h"
#include "dataplane/memory/device/gpu_direct_pool.h"
#include "dataplane/memory/device/page_locked_pool.h"
#include "include/status_macros.h"

namespace penstock::replica {
namespace {

// Maps numbers to queues. A node is a value, but its queues belong to a running iterator, so the
// node has only the number of its queues.
class QueueRegistry {
 public:
  static QueueRegistry& OfProcess() {
    static QueueRegistry& registry = *new QueueRegistry;
    return registry;
  }
  int64_t Add(const std::shared_ptr<const DevicePrefetchQueues>& queues) {
    MutexLock lock(mu_);
    std::erase_if(queues_, [](const auto& entry) { return entry.second.expired(); });
    queues_[++last_] = queues;
    return last_;
  }
  std::shared_ptr<const DevicePrefetchQueues> Find(int64_t number) {
    MutexLock lock(mu_);
    const auto found = queues_.find(number);
    return found == queues_.end() ? nullptr : found->second.lock();
  }

 private:
  Mutex mu_;
  int64_t last_ GUARDED_BY(mu_) = 0;
  std::map<int64_t, std::weak_ptr<const DevicePrefetchQueues>> queues_ GUARDED_BY(mu_);
};

class DevicePrefetchIterator final : public NodeIterator {
 public:
  DevicePrefetchIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : input_(std::move(input)),
        queues_(QueueRegistry::OfProcess().Find(site.attr<int64_t>("queues"))),
        first_(site.attr<int64_t>("first")),
        count_(site.attr<int64_t>("count")),
        sharing_(site.attr<int64_t>("sharing")) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    absl::StatusOr<std::optional<Element>> next = input_->Next();
    if (!next.ok() && EndsReading(next.status())) return next;
    if (next.ok() && !next->has_value()) return next;
    const int64_t replica = (first_ + given_++ % count_) * sharing_;
    if (!next.ok() || queues_ == nullptr) return next;
    for (int64_t i = replica; i < replica + sharing_; ++i)
      if ((*queues_)[i] != nullptr) (*queues_)[i]->Prefetch(**next);
    return next;
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    ASSIGN_OR_RETURN(const int64_t passed, input_->Skip(count));
    given_ += passed;
    return passed;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteInt(given_);
    return input_->Save(writer);
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(given_, reader.ReadIntIn(0, INT64_MAX, "the elements given"));
    return input_->Restore(reader);
  }

 private:
  const std::unique_ptr<NodeIterator> input_;
  const std::shared_ptr<const DevicePrefetchQueues> queues_;
  const int64_t first_;
  const int64_t count_;
  const int64_t sharing_;
  int64_t given_ = 0;
};

absl::StatusOr<Inferred> InferDevicePrefetch(const Attrs&, absl::Span<const NodePtr> inputs) {
  return Inferred{inputs[0]->spec, inputs[0]->cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildDevicePrefetch(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<DevicePrefetchIterator>(site, std::move(input));
}

NodeKind DevicePrefetchKind() {
  return {.op = "LandAhead",
          .attrs = {{"queues", AttrType::kInt, /*required=*/true, /*identifies=*/false},
                    {"first", AttrType::kInt},
                    {"count", AttrType::kInt},
                    {"sharing", AttrType::kInt}},
          .hands_on = true,
          .infer = InferDevicePrefetch,
          .build = BuildDevicePrefetch};
}

// The number of large elements in flight to a client, unless the job sets another number.
constexpr int kUnderWay = 16;

}  // namespace

void EnableGpuDirect(DevicePrefetchQueue& queue) {
  const DevicePrefetchQueueOptions& options = queue.options();
  queue.UseGpuDirect(std::make_unique<GpuDirectPool>(
      LinkedDeviceBackend(), LinkedGpuDirectDriver(),
      GpuDirectPoolOptions{.device = options.device,
                           .places = options.depth + options.held + kUnderWay,
                           .host = &PageLockedPool()}));
}

Dataset AddDevicePrefetch(const Dataset& dataset,
                          const std::shared_ptr<const DevicePrefetchQueues>& queues, int first,
                          int count, int sharing) {
  static const bool registered = (RegisterNodeKind(DevicePrefetchKind()), true);
  (void)registered;
  return DatasetOf(MakeNode("LandAhead",
                            {{"queues", QueueRegistry::OfProcess().Add(queues)},
                             {"first", int64_t{first}},
                             {"count", int64_t{count}},
                             {"sharing", int64_t{sharing}}},
                            {NodeOf(dataset)}));
}

}  // namespace penstock::replica
