// SPDX-License-Identifier: Apache-2.0
// Dataset::Map: a function of each element. Several calls run at a time, and results have the order
// of the input. The input is read on the caller's thread, at least two elements ahead for each call
// that may run, and further ahead if one slow call would leave the other threads idle.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/engine/element_views.h"
#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/engine/read_ahead.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/map/map_step.h"
#include "dataplane/dataset/transforms/map/ordered_calls.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/dataset/transforms/ring.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kMostCalls = 1024;
constexpr int64_t kAheadPerCall = 2;
constexpr int64_t kMostElementsAhead = 1024;

class MapIterator final : public NodeIterator {
 public:
  MapIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
              std::unique_ptr<MapStep> step)
      : site_(site),
        input_(std::move(input), kRemember, PositionedInput::Holds::kElements),
        step_(std::move(step)),
        ahead_(site.read_ahead(), kAheadPerCall * step_->parallelism().calls(),
               step_->parallelism().autotune() ? kMostElementsAhead : 0),
        calls_(ThreadPool::Of(site.run()), step_->parallelism().calls()) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    if (Alone()) {
      ElementSink sink(site_.pool(), site_.spec());
      ASSIGN_OR_RETURN(const bool more, RunNext(sink));
      if (!more) return std::nullopt;
      return std::move(sink).Finish();
    }
    RETURN_IF_ERROR(Fill());
    if (window_.taken() == 0) {
      input_.GaveEnd();
      return std::nullopt;
    }
    Place& first = window_.front();
    Await(first);
    absl::StatusOr<std::optional<Element>> result = std::move(first.result);
    window_.Pop();
    Give(1);
    if (result.ok()) ahead_.Gave(static_cast<int64_t>((*result)->block().size()));
    return result;
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    return Alone() ? RunNext(sink) : NodeIterator::NextInto(sink);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    for (; window_.taken() > 0 && passed < count; ++passed) {
      Await(window_.front());
      window_.front().result = std::nullopt;
      window_.Pop();
      Give(1);
    }
    ASSIGN_OR_RETURN(const int64_t rest, input_.Skip(count - passed));
    Give(rest);
    return passed + rest;
  }

  absl::Status Save(StateWriter& writer) override { return input_.Save(writer, given_); }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    given_ = input_.pulled();
    return absl::OkStatus();
  }

 private:
  // A place in the window: an input, and later its result.
  struct Place final : OrderedCalls::Call {
    explicit Place(MapIterator* of) : map(of) {}
    void Run() override {
      ElementSink sink(map->site_.pool(), map->site_.spec(), place);
      absl::Status run = map->step_->Run(input.leaves(), number, sink);
      input.Clear();
      result = run.ok() ? Optional(std::move(sink).Finish()) : std::move(run);
    }
    static absl::StatusOr<std::optional<Element>> Optional(absl::StatusOr<Element> element) {
      if (!element.ok()) return element.status();
      return std::optional<Element>(*std::move(element));
    }

    MapIterator* const map;
    ElementViews input;
    int64_t number = 0;
    int64_t place = kNoPlace;  // in the pool
    absl::StatusOr<std::optional<Element>> result;
  };

  // Returns whether the next call runs directly on this thread.
  bool Alone() const {
    return window_.taken() == 0 &&
           (step_->parallelism().calls() == 1 || step_->parallelism().QuickerAlone(1));
  }

  void Await(Place& place) {
    bool others_idle;
    {
      ProfileWait wait(site_.profile());
      others_idle = calls_.Await(place);
    }
    if (others_idle) ahead_.FellShort();
  }

  // Reads an element and puts the result of the function into `sink`.
  absl::StatusOr<bool> RunNext(ResultSink& sink) {
    ElementViews input;
    const absl::StatusOr<bool> more = input_.NextViews(input);
    if (more.ok() && !*more) input_.GaveEnd();
    if (more.ok() ? !*more : EndsReading(more.status())) return more;
    const int64_t number = given_;
    Give(1);
    RETURN_IF_ERROR(more.status());
    RETURN_IF_ERROR(step_->Run(input.leaves(), number, sink));
    return true;
  }

  // Reads ahead until the window is as full as allowed or the input has ended.
  absl::Status Fill() {
    const int parallelism = step_->parallelism().calls();
    calls_.SetParallelism(parallelism);
    const auto depth =
        static_cast<size_t>(std::max<int64_t>(ahead_.depth(), kAheadPerCall * parallelism));
    if (NodeProfile* profile = site_.profile())
      profile->ahead.store(static_cast<int64_t>(depth), std::memory_order_relaxed);
    while (window_.taken() < depth &&
           (window_.taken() == 0 || !step_->parallelism().QuickerAlone(1))) {
      const int64_t number = input_.pulled();
      if (window_.taken() == window_.places()) window_.Add(std::make_unique<Place>(this));
      Place& place = window_.next();
      const absl::StatusOr<bool> more = input_.NextViews(place.input);
      if (!more.ok() || !*more) place.input.Clear();
      if (more.ok() ? !*more : EndsReading(more.status())) return more.status();
      window_.Take();
      if (!more.ok()) {
        place.result = more.status();
        continue;
      }
      place.number = number;
      place.place = site_.pool().PlaceOf(number - given_);
      calls_.Add(place);
    }
    return absl::OkStatus();
  }

  void Give(int64_t count) {
    given_ += count;
    input_.Release(given_);
    input_.GaveBelow(given_);
  }

  BuildSite site_;
  PositionedInput input_;
  std::unique_ptr<MapStep> step_;
  ReadAhead ahead_;
  int64_t given_ = 0;   // elements returned
  Ring<Place> window_;  // the elements after them
  OrderedCalls calls_;  // destroyed before the members that its calls use
};

absl::StatusOr<Inferred> InferMap(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const FunctionDef& function = *Get<std::shared_ptr<const FunctionDef>>(attrs, "function");
  RETURN_IF_ERROR(Annotate(function.input.Admits(inputs[0]->spec),
                           "the function does not accept the input's elements"));
  const int64_t calls = Get<int64_t>(attrs, "num_parallel_calls");
  if (calls != kAutotune && (calls < 1 || calls > kMostCalls)) {
    return absl::InvalidArgumentError(absl::StrCat("num_parallel_calls must be in [1, ", kMostCalls,
                                                   "] or kAutotune, not ", calls));
  }
  return Inferred{function.output, inputs[0]->cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildMap(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<MapStep> step, MapStep::Create(site));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<MapIterator>(site, std::move(input), std::move(step));
}

}  // namespace

NodeKind MapKind() {
  return {.op = "Map",
          .attrs = {{"function", AttrType::kFunction},
                    {"num_parallel_calls", AttrType::kInt, true, false}},
          .infer = InferMap,
          .build = BuildMap};
}

Dataset Dataset::Map(MapFunction fn, MapOptions options) const {
  if (!status().ok()) return *this;
  absl::StatusOr<std::shared_ptr<const FunctionDef>> traced = Trace(fn, element_spec());
  if (!traced.ok()) return DatasetOf(FailedNode("Map", {node_}, traced.status()));
  return DatasetOf(MakeNode(
      "Map", {{"function", *std::move(traced)}, {"num_parallel_calls", options.num_parallel_calls}},
      {node_}));
}

Dataset Dataset::ParseExample(std::vector<std::pair<std::string, TensorSpec>> features) const {
  return Map([&](const Expr& serialized) { return ParseExampleProto(serialized, features); });
}

}  // namespace penstock
