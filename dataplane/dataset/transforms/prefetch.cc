// SPDX-License-Identifier: Apache-2.0
// Dataset::Prefetch: a thread of its own reads ahead into a bounded queue.
#include <algorithm>
#include <deque>
#include <functional>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/engine/read_ahead.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kMostPrefetched = 1 << 20;
constexpr int64_t kMostTuned = 4096;
constexpr int64_t kLeastRemember = 16;  // elements between two remembered positions

class PrefetchIterator final : public NodeIterator, public ReadyHint {
 public:
  PrefetchIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, int64_t least,
                   int64_t most)
      : site_(site),
        input_(std::move(input), std::max(least, kLeastRemember),
               PositionedInput::Holds::kElements),
        ahead_(site.read_ahead(), least, most),
        on_stop_(site.run().stop, [this] {
          MutexLock lock(mu_);
          changed_.NotifyAll();
        }) {}

  ~PrefetchIterator() override {
    {
      MutexLock lock(mu_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    if (reader_.joinable()) reader_.join();
  }

  absl::StatusOr<std::optional<Element>> Next() override {
    if (!reader_.joinable()) {
      input_.Remember();
      absl::StatusOr<Thread> reader = StartThread(site_.name(), [this] { Fill(); });
      if (!reader.ok()) return OfReading(reader.status());
      reader_ = *std::move(reader);
    }
    MutexLock lock(mu_);
    if (queue_.empty()) {
      RETURN_IF_ERROR(AwaitElement(lock));
      if (queue_.empty()) {
        input_.GaveEnd();
        return std::nullopt;
      }
    }
    if (const absl::Status& status = queue_.front().element.status(); EndsReading(status))
      return status;  // every later call returns it too
    absl::StatusOr<Element> next = std::move(queue_.front().element);
    queue_.pop_front();
    has_room_ |= queue_.empty();
    if (next.ok()) ahead_.Gave(static_cast<int64_t>(next->block().size()));
    lock.unlock();
    changed_.NotifyAll();
    input_.Release(++given_);
    input_.GaveBelow(given_);
    RETURN_IF_ERROR(next.status());
    return *std::move(next);
  }

  bool Ready() override {
    MutexLock lock(mu_);
    return !queue_.empty();  // the end of the whole dataset may have to wait
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    if (reader_.joinable()) return NodeIterator::Skip(count);
    ASSIGN_OR_RETURN(const int64_t passed, input_.Skip(count));
    given_ += passed;
    return passed;
  }

  absl::Status Save(StateWriter& writer) override {
    return reader_.joinable() ? input_.SaveBehind(writer, given_) : input_.Save(writer, given_);
  }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    given_ = input_.pulled();
    return absl::OkStatus();
  }

 private:
  struct Held {
    absl::StatusOr<Element> element;  // or the error in its place
    BufferCharge charge;
  };

  // Waits until there is an element or the end. If the queue has been full since the consumer last
  // found it empty, the consumer takes elements in bursts that the input cannot keep up with, so
  // FellShort() may increase the depth.
  absl::Status AwaitElement(MutexLock& lock) REQUIRES(mu_) {
    if (std::exchange(was_full_, false) && !ended_) {
      ahead_.FellShort();
      changed_.NotifyAll();
    }
    if (NodeProfile* profile = site_.profile()) profile->ahead = ahead_.depth();
    ProfileWait wait(site_.profile());
    while (queue_.empty() && !ended_) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      changed_.Wait(lock);
    }
    return absl::OkStatus();
  }

  // The function of the thread.
  void Fill() {
    while (true) {
      absl::StatusOr<std::optional<Element>> next = input_.Next();
      MutexLock lock(mu_);
      if (next.ok() && !next->has_value()) {
        ended_ = true;
        changed_.NotifyAll();
        return;
      }
      const bool last = !next.ok() && EndsReading(next.status());
      if (next.ok()) {
        Held held{**std::move(next), {}};
        has_room_ &= held.charge.TryAdd(site_, *held.element);
        queue_.push_back(std::move(held));
      } else {
        Held held{next.status(), {}};
        has_room_ &= held.charge.TryAdd(site_, next.status());
        queue_.push_back(std::move(held));
      }
      changed_.NotifyAll();
      if (last) return;
      was_full_ |= Full();
      changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_ || !Full(); });
      if (stopping_) return;
    }
  }

  bool Full() const REQUIRES(mu_) {
    return !has_room_ || static_cast<int64_t>(queue_.size()) >= ahead_.depth();
  }

  BuildSite site_;
  PositionedInput input_;  // while reader_ runs, only reader_ uses this, except to save positions
  int64_t given_ = 0;

  Mutex mu_;
  Condition changed_;
  std::deque<Held> queue_ GUARDED_BY(mu_);
  ReadAhead ahead_ GUARDED_BY(mu_);
  // False from an element for which the budget has no room until the queue is empty.
  bool has_room_ GUARDED_BY(mu_) = true;
  bool was_full_ GUARDED_BY(mu_) = false;  // since the queue was last found empty
  bool ended_ GUARDED_BY(mu_) = false;
  bool stopping_ GUARDED_BY(mu_) = false;
  const std::stop_callback<std::function<void()>> on_stop_;  // wakes Next()
  Thread reader_;                                            // started by the first Next()
};

// The initial depth for kAutotune: enough small elements that two threads need not synchronize on
// each one, and few large elements.
int64_t BufferFor(const Spec& spec) {
  constexpr size_t kBytes = 256 << 10;
  for (const TensorSpec& leaf : spec.leaves())
    if (!leaf.IsStatic()) return 4;
  return std::clamp<int64_t>(kBytes / BlockLayout::OfStatic(spec).bytes(), 2, 64);
}

absl::StatusOr<Inferred> InferPrefetch(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const int64_t size = Get<int64_t>(attrs, "buffer_size");
  if (size != kAutotune && (size < 0 || size > kMostPrefetched)) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer_size must be in [0, ", kMostPrefetched, "] or kAutotune, not ", size));
  }
  return Inferred{inputs[0]->spec, inputs[0]->cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildPrefetch(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  const int64_t size = site.attr<int64_t>("buffer_size");
  if (size == 0 || site.is_left_out()) return input;
  const bool tuned = size == kAutotune;
  const int64_t least = tuned ? BufferFor(site.spec()) : size;
  return std::make_unique<PrefetchIterator>(site, std::move(input), least,
                                            tuned ? kMostTuned : least);
}

}  // namespace

NodeKind PrefetchKind() {
  return {.op = "Prefetch",
          .attrs = {{"buffer_size", AttrType::kInt}},
          .hands_on = true,
          .infer = InferPrefetch,
          .build = BuildPrefetch};
}

Dataset Dataset::Prefetch(int64_t buffer_size) const {
  return DatasetOf(MakeNode("Prefetch", {{"buffer_size", buffer_size}}, {node_}));
}

}  // namespace penstock
