// SPDX-License-Identifier: Apache-2.0
// Dataset::FlatMap and Dataset::Interleave: a dataset for each element of the input. `cycle_length`
// datasets are open at a time and read in rotation, `block_length` elements from each. FlatMap is a
// cycle of one dataset.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/body.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/decides_by_value.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kMostOpenInputs = 4096;
constexpr int64_t kBytesOfDataset = 4096;  // of the iterators of an open dataset, about

// The pool in which the datasets of a cycle make their elements. Consecutive elements of one
// dataset need not be consecutive in the output.
class CycleOutput final : public Pool {
 public:
  explicit CycleOutput(Pool& output) : output_(output) {}

  // Notes that the current dataset has given `in_block` of the `block_length` elements of its
  // block, and that `cycle` datasets are read in rotation. Called on the thread that calls
  // PlaceOf().
  void Reads(int64_t in_block, int64_t block_length, int64_t cycle) {
    in_block_ = in_block;
    block_length_ = block_length;
    cycle_ = cycle;
  }

  absl::StatusOr<Loan> Lend(size_t bytes) override { return output_.Lend(bytes); }
  absl::StatusOr<Loan> LendBlock(size_t head_bytes, size_t body_bytes) override {
    return output_.LendBlock(head_bytes, body_bytes);
  }
  int64_t PlaceOf(int64_t ahead) const override {
    const int64_t turned = in_block_ + ahead;
    return output_.PlaceOf(turned / block_length_ * block_length_ * cycle_ +
                           turned % block_length_ - in_block_);
  }
  absl::StatusOr<Loan> LendBlockAt(int64_t place, size_t head_bytes, size_t body_bytes) override {
    return output_.LendBlockAt(place, head_bytes, body_bytes);
  }
  PoolCounters counters() const override { return output_.counters(); }

 private:
  Pool& output_;
  int64_t in_block_ = 0;
  int64_t block_length_ = 1;
  int64_t cycle_ = 1;
};

class InterleaveIterator final : public NodeIterator {
 public:
  // `output` is the pool that `opener` was made with. nullptr if the bodies do not make the run's
  // output, or if the cycle has one dataset.
  InterleaveIterator(const BuildSite& site, std::unique_ptr<CycleOutput> output, BodyOpener opener,
                     std::unique_ptr<NodeIterator> input, int64_t cycle_length,
                     int64_t block_length)
      : site_(site),
        output_(std::move(output)),
        opener_(std::move(opener)),
        input_(std::move(input), kRememberOften),
        block_length_(block_length),
        open_(cycle_length) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, OpenCurrent());
      if (!more) return std::nullopt;
      absl::StatusOr<std::optional<Element>> next = open_[current_].iterator->Next();
      if (Took(next.status(), next.ok() && next->has_value())) return next;
    }
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, OpenCurrent());
      if (!more) return false;
      absl::StatusOr<bool> next = open_[current_].iterator->NextInto(sink);
      if (Took(next.status(), next.ok() && *next)) return next;
    }
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    while (passed < count) {
      absl::StatusOr<bool> more = OpenCurrent();
      if (!more.ok()) {
        if (EndsReading(more.status())) return more.status();
        ++passed;  // an outer element whose dataset cannot be opened
        continue;
      }
      if (!*more) break;
      const int64_t wanted = std::min(count - passed, block_length_ - in_block_);
      ASSIGN_OR_RETURN(const int64_t here, open_[current_].iterator->Skip(wanted));
      passed += here;
      in_block_ += here;
      if (here < wanted) Close();
      if (here < wanted || in_block_ == block_length_) Turn();
    }
    return passed;
  }

  // Saves the outer element and the position of each open dataset. To restore, the outer elements
  // are read again from the oldest one on, and the datasets are opened from them.
  absl::Status Save(StateWriter& writer) override {
    RETURN_IF_ERROR(input_.Save(writer, Oldest()));
    writer.WriteInt(input_.pulled());
    writer.WriteInt(static_cast<int64_t>(current_));
    writer.WriteInt(in_block_);
    for (const Open& open : open_) {
      writer.WriteBool(open.iterator != nullptr);
      if (open.iterator == nullptr) continue;
      writer.WriteInt(open.element);
      StateWriter inner(writer.save_number());
      RETURN_IF_ERROR(open.iterator->Save(inner));
      RETURN_IF_ERROR(writer.WriteKept(inner, inner.TakeAttached()));
    }
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(const int64_t pulled,
                     reader.ReadIntIn(input_.pulled(), kMost, "the number of elements opened"));
    ASSIGN_OR_RETURN(const int64_t current,
                     reader.ReadIntIn(0, static_cast<int64_t>(open_.size()) - 1, "the turn"));
    current_ = static_cast<size_t>(current);
    ASSIGN_OR_RETURN(in_block_, reader.ReadIntIn(0, block_length_ - 1, "the place in a block"));
    std::vector<Saved> saved;
    for (size_t i = 0; i < open_.size(); ++i) {
      ASSIGN_OR_RETURN(const bool open, reader.ReadBool());
      if (!open) continue;
      Saved& one = saved.emplace_back(Saved{i, 0, {}});
      ASSIGN_OR_RETURN(one.element,
                       reader.ReadIntIn(input_.pulled(), pulled - 1, "an open element"));
      ASSIGN_OR_RETURN(one.state, reader.ReadString());
    }
    RETURN_IF_ERROR(Reopen(std::move(saved)));
    return input_.PassTo(pulled);
  }

 private:
  struct Open {
    std::unique_ptr<NodeIterator> iterator;
    int64_t element = 0;  // number of the outer element
    BufferCharge charge;
  };
  struct Saved {
    size_t place;
    int64_t element;
    std::string_view state;
  };

  // Opens the current dataset of the cycle unless it is open; false at the end. The error of an
  // outer element takes the place of an element.
  absl::StatusOr<bool> OpenCurrent() {
    ASSIGN_OR_RETURN(const bool more, FindCurrent());
    if (more && output_ != nullptr) {
      const int64_t cycle = outer_ended_ ? opened_ : static_cast<int64_t>(open_.size());
      output_->Reads(in_block_, block_length_, cycle);
    }
    return more;
  }

  absl::StatusOr<bool> FindCurrent() {
    for (size_t empty = 0; empty < open_.size(); ++empty) {
      if (open_[current_].iterator != nullptr) return true;
      RETURN_IF_ERROR(site_.CheckCancelled());
      absl::StatusOr<std::optional<Element>> outer = input_.Next();
      if (!outer.ok() && EndsReading(outer.status())) return outer.status();
      if (outer.ok() && outer->has_value()) {
        const absl::Status opened = OpenAt(current_, **outer, input_.pulled() - 1);
        if (opened.ok()) return true;
        Turn();
        return opened;
      }
      Turn();
      RETURN_IF_ERROR(outer.status());
      outer_ended_ = true;
    }
    return false;
  }

  absl::Status OpenAt(size_t place, const Element& outer, int64_t element) {
    absl::StatusOr<std::unique_ptr<NodeIterator>> iterator =
        opener_.Open(outer, static_cast<uint64_t>(element));
    if (!iterator.ok()) return Annotate(iterator.status(), "element ", element);
    BufferCharge charge;
    const auto argument_bytes = static_cast<int64_t>(outer.block().size());
    RETURN_IF_ERROR(charge.Add(site_, kBytesOfDataset + argument_bytes));
    open_[place] = {*std::move(iterator), element, std::move(charge)};
    ++opened_;
    return absl::OkStatus();
  }

  // Counts an element of the current dataset. False if the dataset has ended.
  bool Took(const absl::Status& status, bool element) {
    if (!status.ok() && EndsReading(status)) return true;
    if (status.ok() && !element) {
      Close();
      Turn();
      return false;
    }
    if (++in_block_ == block_length_) Turn();
    return true;
  }

  void Close() {
    open_[current_] = {};
    --opened_;
    input_.Release(Oldest());
  }

  void Turn() {
    current_ = (current_ + 1) % open_.size();
    in_block_ = 0;
  }

  // Returns the number of the oldest outer element that is open, or of the next element if none is
  // open.
  int64_t Oldest() const {
    int64_t oldest = input_.pulled();
    for (const Open& open : open_)
      if (open.iterator != nullptr) oldest = std::min(oldest, open.element);
    return oldest;
  }

  absl::Status Reopen(std::vector<Saved> saved) {
    std::sort(saved.begin(), saved.end(),
              [](const Saved& a, const Saved& b) { return a.element < b.element; });
    for (const Saved& one : saved) {
      RETURN_IF_ERROR(input_.PassTo(one.element));
      ASSIGN_OR_RETURN(const std::optional<Element> outer, input_.Next());
      if (!outer.has_value())
        return absl::DataLossError("an element that was open no longer exists");
      RETURN_IF_ERROR(OpenAt(one.place, *outer, one.element));
      StateReader inner(one.state);
      RETURN_IF_ERROR(open_[one.place].iterator->Restore(inner));
      RETURN_IF_ERROR(inner.ExpectEnd());
    }
    return absl::OkStatus();
  }

  BuildSite site_;
  std::unique_ptr<CycleOutput> output_;
  BodyOpener opener_;
  PositionedInput input_;
  const int64_t block_length_;
  std::vector<Open> open_;  // one per place of the cycle
  size_t current_ = 0;      // the place being read
  int64_t in_block_ = 0;    // elements of its current block
  int64_t opened_ = 0;      // datasets that are open
  bool outer_ended_ = false;
};

absl::StatusOr<Inferred> InferBody(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const FunctionDef& function = *Get<std::shared_ptr<const FunctionDef>>(attrs, "function");
  RETURN_IF_ERROR(CheckBody(function, inputs[0]->spec, *inputs[1]));
  RETURN_IF_ERROR(CheckDeterministic(function, "function"));
  RETURN_IF_ERROR(CheckDeterministic(*inputs[0]));
  const bool none = inputs[0]->cardinality == 0 || inputs[1]->cardinality == 0;
  return Inferred{inputs[1]->spec, none ? 0 : kUnknown};
}

absl::StatusOr<Inferred> InferInterleave(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const int64_t cycle_length = Get<int64_t>(attrs, "cycle_length");
  const int64_t block_length = Get<int64_t>(attrs, "block_length");
  if (cycle_length < 1 || cycle_length > kMostOpenInputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("cycle_length must be in [1, ", kMostOpenInputs, "], not ", cycle_length));
  }
  if (block_length < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("block_length must be at least 1, not ", block_length));
  }
  return InferBody(attrs, inputs);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildWith(const BuildSite& site, int64_t cycle_length,
                                                        int64_t block_length) {
  std::unique_ptr<CycleOutput> output;
  if (site.output() != nullptr && cycle_length > 1)
    output = std::make_unique<CycleOutput>(*site.output());
  ASSIGN_OR_RETURN(BodyOpener opener,
                   BodyOpener::Create(output == nullptr ? site : site.WithOutput(*output)));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<InterleaveIterator>(site, std::move(output), std::move(opener),
                                              std::move(input), cycle_length, block_length);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildFlatMap(const BuildSite& site) {
  return BuildWith(site, 1, 1);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildInterleave(const BuildSite& site) {
  return BuildWith(site, site.attr<int64_t>("cycle_length"), site.attr<int64_t>("block_length"));
}

}  // namespace

NodeKind FlatMapKind() {
  return {.op = "FlatMap",
          .attrs = {{"function", AttrType::kFunction}},
          .min_inputs = 2,
          .max_inputs = 2,
          .bodies = 1,
          .hands_on = true,
          .infer = InferBody,
          .build = BuildFlatMap};
}

NodeKind InterleaveKind() {
  return {.op = "Interleave",
          .attrs = {{"function", AttrType::kFunction},
                    {"cycle_length", AttrType::kInt},
                    {"block_length", AttrType::kInt}},
          .min_inputs = 2,
          .max_inputs = 2,
          .bodies = 1,
          .hands_on = true,
          .infer = InferInterleave,
          .build = BuildInterleave};
}

Dataset Dataset::FlatMap(DatasetFunction fn) const {
  if (!status().ok()) return *this;
  absl::StatusOr<Body> body = TraceBody(fn, element_spec());
  if (!body.ok()) return DatasetOf(FailedNode("FlatMap", {node_}, body.status()));
  return DatasetOf(MakeNode("FlatMap", {{"function", body->arguments}}, {node_, body->root}));
}

Dataset Dataset::Interleave(DatasetFunction fn, InterleaveOptions options) const {
  if (!status().ok()) return *this;
  absl::StatusOr<Body> body = TraceBody(fn, element_spec());
  if (!body.ok()) return DatasetOf(FailedNode("Interleave", {node_}, body.status()));
  return DatasetOf(MakeNode("Interleave",
                            {{"function", body->arguments},
                             {"cycle_length", options.cycle_length},
                             {"block_length", options.block_length}},
                            {node_, body->root}));
}

}  // namespace penstock
