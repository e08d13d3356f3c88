// SPDX-License-Identifier: Apache-2.0
// Dataset::Scan: makes elements from each input and a state that is carried along. The state
// depends on all earlier elements and cannot be expressed as a count. The state is the one thing
// that a position contains by value, and its size is therefore limited.
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/element_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/map/state_function.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// A position contains the state. Positions are journaled up to ten times a second, and a trainer's
// state has one for each partition. The limit keeps positions small; it is enough for sums and
// histograms, not for models.
constexpr size_t kMostStateBytes = 64 << 10;

class ScanIterator final : public NodeIterator {
 public:
  ScanIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, FoldedState state)
      : site_(site), input_(std::move(input)), state_(std::move(state)), random_(site.Random()) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ElementSink sink(site_.pool(), site_.spec());
    ASSIGN_OR_RETURN(const bool more, NextInto(sink));
    if (!more) return std::nullopt;
    return std::move(sink).Finish();
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    absl::StatusOr<std::optional<Element>> next = input_->Next();
    if (next.ok() ? !next->has_value() : EndsReading(next.status())) {
      RETURN_IF_ERROR(next.status());
      return false;
    }
    random_.element = seen_++;
    RETURN_IF_ERROR(next.status());
    RETURN_IF_ERROR(Annotate(state_.Step(**next, random_, kMostStateBytes, &sink), "in ",
                             site_.name(), ", element ", random_.element));
    return true;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteUnsigned(seen_);
    writer.WriteString(BytesOf(state_.state()));
    return input_->Save(writer);
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(seen_, reader.ReadUnsigned());
    ASSIGN_OR_RETURN(const std::string_view bytes, reader.ReadString());
    ASSIGN_OR_RETURN(Element state, ElementFromBytes(StatePool(site_), bytes, state_.spec()));
    state_.set_state(std::move(state));
    return input_->Restore(reader);
  }

  // States stay in this process, so they do not use slots of elements that are sent.
  static Pool& StatePool(const BuildSite& site) {
    return site.run().pool == nullptr ? DefaultPool() : *site.run().pool;
  }

 private:
  BuildSite site_;
  std::unique_ptr<NodeIterator> input_;
  FoldedState state_;
  RandomKey random_;
  uint64_t seen_ = 0;  // elements of the input
};

absl::StatusOr<Inferred> InferScan(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const Element& initial = *Get<ConstantElement>(attrs, "initial_state");
  const FunctionDef& function = *Get<std::shared_ptr<const FunctionDef>>(attrs, "scan_func");
  if (initial.block().size() > kMostStateBytes) {
    return absl::InvalidArgumentError(absl::StrCat("initial_state takes ", initial.block().size(),
                                                   " bytes; the limit is ", kMostStateBytes,
                                                   ", because saved positions contain it"));
  }
  RETURN_IF_ERROR(Annotate(
      CheckStateFunction(function, initial.spec(), inputs[0]->spec, Gives::kStateAndOutput),
      "in scan_func"));
  return Inferred{function.output.member(1), inputs[0]->cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildScan(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundFunction> function,
                   site.Bind(site.attr<std::shared_ptr<const FunctionDef>>("scan_func")));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<ScanIterator>(
      site, std::move(input),
      FoldedState(ScanIterator::StatePool(site), std::move(function),
                  site.attr<ConstantElement>("initial_state")));
}

absl::StatusOr<Attrs> ScanAttrs(const Expr& initial_state, const StateFunction& scan_func,
                                const Spec& element) {
  ASSIGN_OR_RETURN(ConstantElement initial, ConstantState(initial_state));
  ASSIGN_OR_RETURN(std::shared_ptr<const FunctionDef> function,
                   TraceStateFunction(scan_func, initial->spec(), element, Gives::kStateAndOutput));
  return Attrs{{"initial_state", std::move(initial)}, {"scan_func", std::move(function)}};
}

}  // namespace

NodeKind ScanKind() {
  return {.op = "Scan",
          .attrs = {{"initial_state", AttrType::kElement}, {"scan_func", AttrType::kFunction}},
          .infer = InferScan,
          .build = BuildScan};
}

Dataset Dataset::Scan(const Expr& initial_state, StateFunction scan_func) const {
  if (!status().ok()) return *this;
  absl::StatusOr<Attrs> attrs = ScanAttrs(initial_state, scan_func, element_spec());
  if (!attrs.ok()) return DatasetOf(FailedNode("Scan", {node_}, attrs.status()));
  return DatasetOf(MakeNode("Scan", *std::move(attrs), {node_}));
}

}  // namespace penstock
