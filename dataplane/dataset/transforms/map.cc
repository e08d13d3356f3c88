// SPDX-License-Identifier: Apache-2.0
// Dataset::Map: a function of each element, several calls at a time, results in
// the order of the input. The input is read on the caller's thread, up to two
// elements ahead for each call that may run.
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/element_sink.h"
#include "dataplane/dataset/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/map_step.h"
#include "dataplane/dataset/transforms/ordered_calls.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "penstock/status.h"

namespace penstock {
namespace {

constexpr int64_t kMostCalls = 1024;
constexpr int64_t kRemember = 64;  // elements between two remembered positions

class MapIterator final : public NodeIterator {
 public:
  MapIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
              std::unique_ptr<MapStep> step)
      : site_(site),
        input_(std::move(input), kRemember),
        step_(std::move(step)),
        window_(2 * step_->parallelism()),
        calls_(ThreadPool::OfProcess(), step_->parallelism()) {
    for (Place& place : window_) place.map = this;
  }

  absl::StatusOr<std::optional<Element>> Next() override {
    if (Alone()) {
      ElementSink sink(site_.pool(), site_.spec());
      ASSIGN_OR_RETURN(const bool more, RunNext(sink));
      if (!more) return std::nullopt;
      return std::move(sink).Finish();
    }
    RETURN_IF_ERROR(Fill());
    if (held_ == 0) return std::nullopt;
    Place& first = window_[given_ % window_.size()];
    calls_.Await(first);
    --held_;
    Give(1);
    return std::move(first.result);
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    return Alone() ? RunNext(sink) : NodeIterator::NextInto(sink);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    for (; held_ > 0 && passed < count; ++passed, --held_) {
      calls_.Await(window_[given_ % window_.size()]);
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
  // A place in the window: an input, and in time its result.
  struct Place final : OrderedCalls::Call {
    void Run() override {
      ElementSink sink(map->site_.pool(), map->site_.spec());
      absl::Status run = map->step_->Run(input, number, sink);
      input = Element();
      result = run.ok() ? Optional(std::move(sink).Finish()) : std::move(run);
    }
    static absl::StatusOr<std::optional<Element>> Optional(absl::StatusOr<Element> element) {
      if (!element.ok()) return element.status();
      return std::optional<Element>(*std::move(element));
    }

    MapIterator* map = nullptr;
    Element input;
    int64_t number = 0;
    absl::StatusOr<std::optional<Element>> result;
  };

  // Whether the next call runs here and now.
  bool Alone() const { return held_ == 0 && (step_->parallelism() == 1 || step_->QuickerAlone(1)); }

  // Reads an element and puts its result into `sink`.
  absl::StatusOr<bool> RunNext(ResultSink& sink) {
    absl::StatusOr<std::optional<Element>> input = input_.Next();
    if (input.ok() ? !input->has_value() : EndsReading(input.status())) {
      if (!input.ok()) return input.status();
      return false;
    }
    const int64_t number = given_;
    Give(1);
    RETURN_IF_ERROR(input.status());
    RETURN_IF_ERROR(step_->Run(**input, number, sink));
    return true;
  }

  // Reads ahead until the window is full or the input has ended.
  absl::Status Fill() {
    while (held_ < window_.size() && (held_ == 0 || !step_->QuickerAlone(1))) {
      const int64_t number = input_.pulled();
      absl::StatusOr<std::optional<Element>> input = input_.Next();
      if (input.ok() ? !input->has_value() : EndsReading(input.status())) return input.status();
      Place& place = window_[number % window_.size()];
      ++held_;
      if (!input.ok()) {
        place.result = input.status();
        continue;
      }
      place.input = **std::move(input);
      place.number = number;
      calls_.Add(place);
    }
    return absl::OkStatus();
  }

  void Give(int64_t count) {
    given_ += count;
    input_.Release(given_);
  }

  BuildSite site_;
  PositionedInput input_;
  std::unique_ptr<MapStep> step_;
  int64_t given_ = 0;          // elements given out
  size_t held_ = 0;            // places taken: elements given_ … given_ + held_ - 1
  std::vector<Place> window_;  // element n at n modulo its size
  OrderedCalls calls_;         // ended before what its calls use
};

absl::StatusOr<Inferred> InferMap(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const FunctionDef& function = *Get<std::shared_ptr<const FunctionDef>>(attrs, "function");
  RETURN_IF_ERROR(Annotate(function.input.Admits(inputs[0]->spec),
                           "function takes other elements than the input gives"));
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
  if (!traced.ok()) return Dataset(FailedNode("Map", {node_}, traced.status()));
  return Dataset(MakeNode(
      "Map", {{"function", *std::move(traced)}, {"num_parallel_calls", options.num_parallel_calls}},
      {node_}));
}

Dataset Dataset::ParseExample(std::vector<std::pair<std::string, TensorSpec>> features) const {
  return Map([&](const Expr& serialized) { return ParseExampleProto(serialized, features); });
}

}  // namespace penstock
