// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/profile.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>

#include "control/sync/clock.h"
#include "control/sync/simulation.h"
#include "dataplane/dataset/engine/element_views.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/memory/catch_exhausted.h"
#include "penstock/status.h"

namespace penstock {
namespace {

constexpr int64_t kFlush = 32;  // elements counted here before the node's counters are updated
// At least one call in kMostBetween is timed. Within that limit, timing takes at most 1/kShare of
// the time.
constexpr int64_t kMostBetween = 4096;
constexpr int64_t kShare = 50;
constexpr int64_t kScopeNs = 60;  // the cost of a scope, of which the scope itself measures half

// The iterator calls that are in progress on this thread.
struct Timing {
  bool inside = false;    // in a node's iterator
  int64_t weight = 0;     // of the outermost call; 0: not timed
  int64_t inside_ns = 0;  // added by scopes inside the innermost scope
  int64_t scopes = 0;     // in the outermost call, including itself
};
thread_local Timing timing;
[[maybe_unused]] const FiberVariable kTimingOfFiber(timing);

using Clock = SteadyClock;

int64_t Since(Clock::time_point begin) {
  return std::chrono::nanoseconds(Clock::now() - begin).count();
}

void AddRelaxed(std::atomic<int64_t>& counter, int64_t by) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

class ProfiledIterator final : public NodeIterator, public ReadyHint {
 public:
  ProfiledIterator(std::unique_ptr<NodeIterator> iterator, NodeProfile& node)
      : iterator_(std::move(iterator)),
        ready_(dynamic_cast<ReadyHint*>(iterator_.get())),
        node_(node) {}
  ~ProfiledIterator() override { Flush(); }

  absl::StatusOr<std::optional<Element>> Next() override {
    absl::StatusOr<std::optional<Element>> next = Timed([this] { return iterator_->Next(); });
    if (!next.ok()) {
      Took(0);
    } else if (next->has_value()) {
      Took(static_cast<int64_t>((*next)->block().size()));
    } else {
      Flush();
    }
    return next;
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    absl::StatusOr<bool> next = Timed([&] { return iterator_->NextInto(sink); });
    if (!next.ok() || *next) {
      Took(0);
    } else {
      Flush();
    }
    return next;
  }

  absl::StatusOr<bool> NextViews(ElementViews& views) override {
    const int64_t before = views.bytes();
    absl::StatusOr<bool> next = Timed([&] { return iterator_->NextViews(views); });
    if (!next.ok()) {
      Took(0);
    } else if (*next) {
      Took(views.bytes() - before);
    } else {
      Flush();
    }
    return next;
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    ProfileScope scope(&node_, 1);
    return Caught([&] { return iterator_->Skip(count); });
  }
  absl::Status Save(StateWriter& writer) override {
    return Caught([&] { return iterator_->Save(writer); });
  }
  absl::Status Restore(StateReader& reader) override {
    return Caught([&] { return iterator_->Restore(reader); });
  }
  bool Ready() override { return ready_ != nullptr && ready_->Ready(); }

 private:
  template <class Call>
  std::invoke_result_t<Call> Caught(Call call) {
    if (!ended_.ok()) return ended_;
    std::invoke_result_t<Call> result = CatchExhausted(node_.name, call);
    if (!result.ok() && IsExhausted(StatusOf(result))) ended_ = StatusOf(result);
    return result;
  }
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <class T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  template <class Call>
  std::invoke_result_t<Call> Timed(Call call) {
    if (timing.inside) {
      if (timing.weight == 0) return Caught(call);
      ProfileScope scope(&node_, 0);
      return Caught(call);
    }
    const bool timed = --until_timed_ <= 0;
    const auto begin = timed ? Clock::now() : Clock::time_point();
    std::invoke_result_t<Call> result = [&] {
      ProfileScope scope(timed ? &node_ : nullptr, every_);
      timing.inside = true;
      return Caught(call);
    }();
    timing.inside = false;
    if (timed) TimeAgain(std::exchange(timing.scopes, 0), Since(begin));
    return result;
  }

  // Chooses the next call to time, from the cost of timing this one.
  void TimeAgain(int64_t scopes, int64_t took_ns) {
    const int64_t timing_ns = scopes * kScopeNs;
    const int64_t work_ns = std::max(took_ns - timing_ns, timing_ns / 8);
    every_ = std::clamp<int64_t>(kShare * timing_ns / work_ns, 1, kMostBetween);
    until_timed_ = every_;
  }

  void Took(int64_t bytes) {
    bytes_ += bytes;
    if (++elements_ >= kFlush || every_ == 1) Flush();
  }
  void Flush() {
    AddRelaxed(node_.elements, elements_);
    if (bytes_ > 0) AddRelaxed(node_.bytes, bytes_);
    elements_ = bytes_ = 0;
  }

  const std::unique_ptr<NodeIterator> iterator_;
  ReadyHint* const ready_;  // iterator_, if it is a ReadyHint
  NodeProfile& node_;
  absl::Status ended_;  // the error of all later calls, if memory or threads have run out
  int64_t every_ = 1;   // one in this many calls is timed
  int64_t until_timed_ = 1;
  int64_t elements_ = 0;  // not flushed yet; the same is true of bytes_
  int64_t bytes_ = 0;
};

}  // namespace

Profile::Profile(NodePtr root) : root_(std::move(root)), nodes_(static_cast<size_t>(root_->size)) {
  VisitNodes(*root_, [this](const Dataset::Node& of, int number) {
    node(number).name = NodeName(of, number);
  });
}

IteratorStats Profile::Stats() const {
  IteratorStats stats;
  for (const NodeProfile& counted : nodes_) {
    stats.nodes.push_back({.node = counted.name,
                           .elements = counted.elements.load(std::memory_order_relaxed),
                           .bytes = counted.bytes.load(std::memory_order_relaxed),
                           .busy = absl::Nanoseconds(counted.busy_ns.load()),
                           .waiting = absl::Nanoseconds(counted.waiting_ns.load()),
                           .parallelism = counted.parallelism.load(std::memory_order_relaxed),
                           .ahead = counted.ahead.load(std::memory_order_relaxed)});
  }
  return stats;
}

ProfileScope::ProfileScope(NodeProfile* node, int64_t weight)
    : node_(timing.weight != 0 || (weight != 0 && !timing.inside) ? node : nullptr) {
  if (node_ == nullptr) return;
  outermost_ = timing.weight == 0;
  if (outermost_) timing.weight = weight;
  ++timing.scopes;
  outer_inside_ns_ = std::exchange(timing.inside_ns, 0);
  begin_ = Clock::now();
}

ProfileScope::~ProfileScope() {
  if (node_ == nullptr) return;
  const int64_t whole = Since(begin_);
  AddRelaxed(node_->busy_ns, (whole - timing.inside_ns) * timing.weight);
  timing.inside_ns = outer_inside_ns_ + whole + kScopeNs / 2;
  if (outermost_) timing.weight = timing.inside_ns = 0;
}

ProfileWait::ProfileWait(NodeProfile* node) : node_(node) {
  if (node_ != nullptr) begin_ = ProfileScope::Clock::now();
}

ProfileWait::~ProfileWait() {
  if (node_ == nullptr) return;
  const int64_t waited = Since(begin_);
  AddRelaxed(node_->waiting_ns, waited);
  timing.inside_ns += waited;
}

std::unique_ptr<NodeIterator> Profiled(std::unique_ptr<NodeIterator> iterator, NodeProfile& node) {
  return std::make_unique<ProfiledIterator>(std::move(iterator), node);
}

}  // namespace penstock
