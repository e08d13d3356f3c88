// SPDX-License-Identifier: Apache-2.0
// Dataset::Shuffle: a buffer is filled from the input, and each output is drawn from the buffer. A
// position is two counts. They determine which inputs were in the buffer (shuffle_order.h), and
// these inputs are read again.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/dataset/transforms/shuffle_order.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kMostShuffled = int64_t{1} << 48;

class ShuffleIterator final : public NodeIterator {
 public:
  ShuffleIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, int64_t size,
                  const RandomKey& key)
      : site_(site),
        input_(std::move(input), size, PositionedInput::Holds::kElements),
        order_(key, size) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    RETURN_IF_ERROR(Fill());
    if (order_.Empty()) {
      input_.GaveEnd();
      return std::nullopt;
    }
    absl::StatusOr<std::optional<Element>> next = std::exchange(held_[order_.Take()], {}).element;
    input_.Gave(order_.taken());
    input_.Release(order_.OldestPossible());
    return next;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteInt(order_.outputs());
    writer.WriteInt(order_.inputs());
    return input_.Save(writer, std::min(order_.OldestPossible(), order_.inputs()));
  }

  absl::Status Restore(StateReader& reader) override {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(const int64_t inputs, ReadCounts(reader, kMost));
    RETURN_IF_ERROR(input_.Restore(reader));
    std::vector<std::pair<int64_t, size_t>> wanted;  // input, slot
    for (size_t slot = 0; slot < order_.slots().size(); ++slot)
      if (order_.slots()[slot] != ShuffleOrder::kEmpty)
        wanted.emplace_back(order_.slots()[slot], slot);
    std::sort(wanted.begin(), wanted.end());
    held_.resize(order_.slots().size());
    for (const auto& [number, slot] : wanted) {
      RETURN_IF_ERROR(input_.PassTo(number));
      absl::StatusOr<std::optional<Element>> next = input_.Next();
      RETURN_IF_ERROR(Hold(slot, std::move(next)));
    }
    ended_ = order_.Ended();
    return input_.PassTo(inputs);
  }

 private:
  struct Held {
    absl::StatusOr<std::optional<Element>> element = std::nullopt;  // or the error in its place
    BufferCharge charge;
  };

  // Fills the buffer until it is full or the input has ended.
  absl::Status Fill() {
    while (!order_.Full() && !ended_) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      absl::StatusOr<std::optional<Element>> next = input_.Next();
      if (!next.ok() && EndsReading(next.status())) return next.status();
      ended_ = next.ok() && !next->has_value();
      if (ended_) break;
      const size_t slot = order_.Put();
      if (held_.size() < order_.slots().size()) {
        held_.emplace_back();
        std::swap(held_[slot], held_.back());
      }
      RETURN_IF_ERROR(Hold(slot, std::move(next)));
    }
    return absl::OkStatus();
  }

  // Holds an element, or the error in its place, until its slot is drawn.
  absl::Status Hold(size_t slot, absl::StatusOr<std::optional<Element>> next) {
    if (!next.ok()) {
      if (EndsReading(next.status())) return next.status();
      RETURN_IF_ERROR(held_[slot].charge.Add(site_, next.status()));
      held_[slot].element = next.status();
      return absl::OkStatus();
    }
    if (!next->has_value())
      return absl::DataLossError("an element that was in the buffer no longer exists");
    RETURN_IF_ERROR(held_[slot].charge.Add(site_, **next));
    held_[slot].element = **std::move(next);
    return absl::OkStatus();
  }

  // Reads the counts and moves the order to them. Returns the number of inputs.
  absl::StatusOr<int64_t> ReadCounts(StateReader& reader, int64_t most) {
    ASSIGN_OR_RETURN(const int64_t outputs, reader.ReadIntIn(0, most, "the number of outputs"));
    ASSIGN_OR_RETURN(const int64_t inputs, reader.ReadIntIn(outputs, most, "the number of inputs"));
    if (!order_.PlayTo(outputs, inputs))
      return absl::DataLossError("the counts of a saved position do not match the buffer's size");
    return inputs;
  }

  BuildSite site_;
  PositionedInput input_;
  ShuffleOrder order_;
  std::vector<Held> held_;  // per slot
  bool ended_ = false;
};

absl::StatusOr<Inferred> InferShuffle(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const int64_t size = Get<int64_t>(attrs, "buffer_size");
  if (size < 1 || size > kMostShuffled) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer_size must be in [1, ", kMostShuffled, "], not ", size));
  }
  return Inferred{inputs[0]->spec, inputs[0]->cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildShuffle(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<ShuffleIterator>(
      site, std::move(input), site.attr<int64_t>("buffer_size"),
      site.Random(site.attr<bool>("reshuffle_each_iteration")));
}

}  // namespace

NodeKind ShuffleKind() {
  return {.op = "Shuffle",
          .version = 2,  // version 1 drew from a different buffer
          .attrs = {{"buffer_size", AttrType::kInt},
                    {"seed", AttrType::kInt, false},
                    {"reshuffle_each_iteration", AttrType::kBool}},
          .infer = InferShuffle,
          .build = BuildShuffle};
}

Dataset Dataset::Shuffle(int64_t buffer_size, ShuffleOptions options) const {
  Attrs attrs = {{"buffer_size", buffer_size},
                 {"reshuffle_each_iteration", options.reshuffle_each_iteration}};
  if (options.seed.has_value()) attrs["seed"] = static_cast<int64_t>(*options.seed);
  return DatasetOf(MakeNode("Shuffle", std::move(attrs), {node_}));
}

}  // namespace penstock
