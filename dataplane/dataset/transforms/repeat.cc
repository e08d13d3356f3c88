// SPDX-License-Identifier: Apache-2.0
// Dataset::Repeat: builds its input again for each pass, so that each pass draws its own random
// numbers and requests the splits of its own repetition. If a pass cannot be built because of a
// temporary error, the error is returned and the next call tries again.
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/error_origin.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class RepeatIterator final : public NodeIterator {
 public:
  RepeatIterator(const BuildSite& site, int64_t passes)
      : site_(site.Keeping(kept_)), passes_(passes) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    while (true) {
      ASSIGN_OR_RETURN(const bool open, OpenPass());
      if (!open) return std::nullopt;
      absl::StatusOr<std::optional<Element>> next = input_->Next();
      const bool element = next.ok() && next->has_value();
      if (element || !next.ok()) {
        Yielded(element || !EndsReading(next.status()));
        return next;
      }
      RETURN_IF_ERROR(EndPass());
    }
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    return NextOf([&](NodeIterator& input) { return input.NextInto(sink); });
  }

  absl::StatusOr<bool> NextViews(ElementViews& views) override {
    return NextOf([&](NodeIterator& input) { return input.NextViews(views); });
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    while (passed < count) {
      ASSIGN_OR_RETURN(const bool open, OpenPass());
      if (!open) break;
      ASSIGN_OR_RETURN(const int64_t here, input_->Skip(count - passed));
      passed += here;
      Yielded(here > 0);
      if (passed < count) RETURN_IF_ERROR(EndPass());
    }
    return passed;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteInt(pass_);
    writer.WriteBool(yielded_);
    writer.WriteBool(failed_);
    writer.WriteBool(input_ != nullptr);
    return input_ == nullptr ? absl::OkStatus() : input_->Save(writer);
  }

  absl::Status Restore(StateReader& reader) override {
    const int64_t most = passes_ >= 0 ? passes_ : std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(pass_, reader.ReadIntIn(0, most, "the pass"));
    ASSIGN_OR_RETURN(yielded_, reader.ReadBool());
    ASSIGN_OR_RETURN(failed_, reader.ReadBool());
    ASSIGN_OR_RETURN(const bool begun, reader.ReadBool());
    if (!begun) return absl::OkStatus();
    if (pass_ == passes_) return absl::DataLossError("a saved position has one pass too many");
    ASSIGN_OR_RETURN(input_, site_.BuildPass(0, pass_, passes_));
    return input_->Restore(reader);
  }

 private:
  // Returns the result of `pull` for the pass that has a next element; false after the last pass.
  absl::StatusOr<bool> NextOf(absl::FunctionRef<absl::StatusOr<bool>(NodeIterator&)> pull) {
    while (true) {
      ASSIGN_OR_RETURN(const bool open, OpenPass());
      if (!open) return false;
      absl::StatusOr<bool> next = pull(*input_);
      const bool element = next.ok() && *next;
      if (element || !next.ok()) {
        Yielded(element || !EndsReading(next.status()));
        return next;
      }
      RETURN_IF_ERROR(EndPass());
    }
  }

  // Begins the next pass unless one is in progress; false after the last pass.
  absl::StatusOr<bool> OpenPass() {
    if (over_ || failed_) return false;
    if (input_ != nullptr) return true;
    if (pass_ == passes_) return false;
    RETURN_IF_ERROR(site_.CheckCancelled());
    absl::StatusOr<std::unique_ptr<NodeIterator>> input = site_.BuildPass(0, pass_, passes_);
    if (!input.ok()) {
      failed_ = !IsOfTheMoment(input.status());  // a permanent error would repeat forever
      return input.status();
    }
    input_ = *std::move(input);
    return true;
  }

  void Yielded(bool something) { yielded_ = yielded_ || something; }

  // An endless Repeat of an empty input would never return, so it fails. A partition, or a reader
  // of a job, is an exception: its share of many repetitions may be empty, and its data may be in
  // the next repetition. Such a Repeat waits for the feed's answers or for the other readers.
  absl::Status EndPass() {
    // Keeps the last pass open, because every state contains Distribute's deliveries.
    over_ = pass_ + 1 == passes_;
    if (over_) return absl::OkStatus();
    input_.reset();
    ++pass_;
    const bool others_took_all = site_.kept()->TakeOthersTookAll();
    if (passes_ >= 0 || yielded_ || others_took_all || site_.splits() != nullptr) {
      return absl::OkStatus();
    }
    failed_ = true;
    return absl::FailedPreconditionError(
        absl::StrCat(site_.name(), ": the input is empty, so repeating it without end never ",
                     "produces an element; give a count, or check for a Filter that drops all"));
  }

  KeptAcrossPasses kept_;
  BuildSite site_;
  const int64_t passes_;  // kForever: endless
  std::unique_ptr<NodeIterator> input_;
  int64_t pass_ = 0;
  bool yielded_ = false;  // an element or an error, in any pass
  bool failed_ = false;   // no more passes
  bool over_ = false;     // the last pass has ended
};

absl::StatusOr<Inferred> InferRepeat(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const int64_t count = Get<int64_t>(attrs, "count");
  if (count < kForever) {
    return absl::InvalidArgumentError(
        absl::StrCat("count must be 0 or more, or -1 to repeat without end, not ", count));
  }
  const Cardinality of = inputs[0]->cardinality;
  Cardinality cardinality = of;
  if (count == 0) {
    cardinality = 0;
  } else if (count == kForever) {
    cardinality = of == 0 ? 0 : kInfinite;
  } else if (of > 0 && __builtin_mul_overflow(of, count, &cardinality)) {
    cardinality = kUnknown;
  }
  return Inferred{inputs[0]->spec, cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildRepeat(const BuildSite& site) {
  return std::make_unique<RepeatIterator>(site, site.attr<int64_t>("count"));
}

}  // namespace

NodeKind RepeatKind() {
  return {.op = "Repeat",
          .attrs = {{"count", AttrType::kInt}},
          .hands_on = true,
          .infer = InferRepeat,
          .build = BuildRepeat};
}

Dataset Dataset::Repeat(int64_t count) const {
  return DatasetOf(MakeNode("Repeat", {{"count", count}}, {node_}));
}

}  // namespace penstock
