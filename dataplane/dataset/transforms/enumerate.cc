// SPDX-License-Identifier: Apache-2.0
// Dataset::Enumerate: (number, element). An error that takes the place of an element uses up a
// number, so an element's number depends only on its index.
#include <cstring>
#include <utility>

#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/member_sink.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class EnumerateIterator final : public NodeIterator {
 public:
  EnumerateIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : site_(site), input_(std::move(input)), number_(site.attr<int64_t>("start")) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ElementSink sink(site_.pool(), site_.spec());
    ASSIGN_OR_RETURN(const bool more, NextInto(sink));
    if (!more) return std::nullopt;
    return std::move(sink).Finish();
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    MemberSink member(sink, 1);
    absl::StatusOr<bool> next = input_->NextInto(member);
    if (next.ok() ? !*next : EndsReading(next.status())) return next;
    const int64_t number = number_++;
    RETURN_IF_ERROR(next.status());
    ASSIGN_OR_RETURN(const absl::Span<std::byte> memory, sink.Place(0, kInt64, {}));
    std::memcpy(memory.data(), &number, sizeof(number));
    return true;
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    ASSIGN_OR_RETURN(const int64_t passed, input_->Skip(count));
    number_ += passed;
    return passed;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteInt(number_);
    return input_->Save(writer);
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(number_, reader.ReadInt());
    return input_->Restore(reader);
  }

 private:
  BuildSite site_;
  std::unique_ptr<NodeIterator> input_;
  int64_t number_;
};

absl::StatusOr<Inferred> InferEnumerate(const Attrs&, absl::Span<const NodePtr> inputs) {
  return Inferred{Spec::Tuple({Scalar(kInt64), inputs[0]->spec}), inputs[0]->cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildEnumerate(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<EnumerateIterator>(site, std::move(input));
}

}  // namespace

NodeKind EnumerateKind() {
  return {.op = "Enumerate",
          .attrs = {{"start", AttrType::kInt}},
          .infer = InferEnumerate,
          .build = BuildEnumerate};
}

Dataset Dataset::Enumerate(int64_t start) const {
  return DatasetOf(MakeNode("Enumerate", {{"start", start}}, {node_}));
}

}  // namespace penstock
