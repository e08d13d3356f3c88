// SPDX-License-Identifier: Apache-2.0
// Dataset::Zip: tuples of one element of each input, until the shortest input ends. If inputs have
// errors, the first error takes the place of the tuple.
#include <utility>

#include "absl/functional/function_ref.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/member_sink.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class ZipIterator final : public NodeIterator {
 public:
  explicit ZipIterator(const BuildSite& site) : site_(site) {}

  absl::Status Open() {
    for (size_t i = 0; i < site_.node().inputs.size(); ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site_.BuildInput(i));
      inputs_.push_back(std::make_unique<PositionedInput>(std::move(input), kRememberSeldom));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<Element>> Next() override {
    ElementSink sink(site_.pool(), site_.spec());
    ASSIGN_OR_RETURN(const bool more, NextInto(sink));
    if (!more) return std::nullopt;
    return std::move(sink).Finish();
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    size_t first_leaf = 0;
    return NextOfAll([&](size_t i) {
      MemberSink member(sink, first_leaf);
      first_leaf += site_.node().inputs[i]->spec.leaves().size();
      return inputs_[i]->NextInto(member);
    });
  }

  absl::StatusOr<bool> NextViews(ElementViews& views) override {
    return NextOfAll([&](size_t i) { return inputs_[i]->NextViews(views); });
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    if (ended_) return 0;
    int64_t least = count;
    for (auto& input : inputs_) {
      ASSIGN_OR_RETURN(const int64_t passed, input->Skip(count));
      least = std::min(least, passed);
    }
    ended_ = least < count;
    Pass(least);
    return least;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteBool(ended_);
    // After the end, the position of each input includes the elements that are in no tuple. No
    // reader will get them, so Distribute may commit them.
    for (auto& input : inputs_)
      RETURN_IF_ERROR(input->Save(writer, ended_ ? input->pulled() : passed_));
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(ended_, reader.ReadBool());
    for (auto& input : inputs_) {
      RETURN_IF_ERROR(input->Restore(reader));
      if (!ended_ && input->pulled() != inputs_[0]->pulled())
        return absl::DataLossError("the zipped inputs are at different positions");
    }
    passed_ = inputs_[0]->pulled();
    return absl::OkStatus();
  }

 private:
  // Returns whether there is a next tuple. `pull` reads the member of input `i`.
  absl::StatusOr<bool> NextOfAll(absl::FunctionRef<absl::StatusOr<bool>(size_t i)> pull) {
    if (ended_) return false;
    absl::Status error;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      absl::StatusOr<bool> next = pull(i);
      if (!next.ok() && EndsReading(next.status())) return next.status();
      if (next.ok() && !*next) {
        ended_ = true;
        return false;
      }
      error.Update(next.status());
    }
    Pass(1);
    RETURN_IF_ERROR(error);
    return true;
  }

  void Pass(int64_t count) {
    passed_ += count;
    for (auto& input : inputs_) input->Release(passed_);
  }

  BuildSite site_;
  std::vector<std::unique_ptr<PositionedInput>> inputs_;
  int64_t passed_ = 0;  // tuples returned
  bool ended_ = false;
};

absl::StatusOr<Inferred> InferZip(const Attrs&, absl::Span<const NodePtr> inputs) {
  std::vector<Spec> members;
  Cardinality cardinality = kInfinite;
  for (const NodePtr& input : inputs) {
    members.push_back(input->spec);
    const Cardinality of = input->cardinality;
    if (of == kInfinite || cardinality == 0) continue;
    if (of == 0 || cardinality == kInfinite) {
      cardinality = of;
    } else if (of == kUnknown || cardinality == kUnknown) {
      cardinality = kUnknown;
    } else {
      cardinality = std::min(cardinality, of);
    }
  }
  return Inferred{Spec::Tuple(std::move(members)), cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildZip(const BuildSite& site) {
  auto zip = std::make_unique<ZipIterator>(site);
  RETURN_IF_ERROR(zip->Open());
  return zip;
}

}  // namespace

NodeKind ZipKind() {
  return {.op = "Zip", .max_inputs = kMaxNodes, .infer = InferZip, .build = BuildZip};
}

Dataset Dataset::Zip(std::vector<Dataset> datasets) {
  std::vector<NodePtr> inputs;
  for (const Dataset& dataset : datasets) inputs.push_back(NodeOf(dataset));
  return DatasetOf(MakeNode("Zip", {}, std::move(inputs)));
}

}  // namespace penstock
