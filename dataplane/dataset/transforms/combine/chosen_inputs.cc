// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/combine/chosen_inputs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/common_spec.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class ChosenIterator final : public NodeIterator {
 public:
  ChosenIterator(const BuildSite& site, std::unique_ptr<Choice> choice, bool stop_on_empty_dataset)
      : site_(site), choice_(std::move(choice)), stop_on_empty_dataset_(stop_on_empty_dataset) {}

  absl::Status Open(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site_.BuildInput(i));
      inputs_.push_back(std::move(input));
    }
    goes_on_.assign(count, true);
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<Element>> Next() override {
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<size_t> chosen, Choose());
      if (!chosen.has_value()) return std::nullopt;
      absl::StatusOr<std::optional<Element>> next = inputs_[*chosen]->Next();
      if (!next.ok() || next->has_value()) return next;
      HasEnded(*chosen);
    }
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<size_t> chosen, Choose());
      if (!chosen.has_value()) return false;
      absl::StatusOr<bool> next = inputs_[*chosen]->NextInto(sink);
      if (!next.ok() || *next) return next;
      HasEnded(*chosen);
    }
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    while (passed < count) {
      absl::StatusOr<std::optional<size_t>> chosen = Choose();
      if (!chosen.ok()) {
        if (EndsReading(chosen.status())) return chosen.status();
        ++passed;  // an error in place of a choice
        continue;
      }
      if (!chosen->has_value()) break;
      ASSIGN_OR_RETURN(const int64_t here, inputs_[**chosen]->Skip(1));
      passed += here;
      if (here == 0) HasEnded(**chosen);
    }
    return passed;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteBool(over_);
    RETURN_IF_ERROR(choice_->Save(writer));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      writer.WriteBool(goes_on_[i]);
      RETURN_IF_ERROR(inputs_[i]->Save(writer));
    }
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(over_, reader.ReadBool());
    RETURN_IF_ERROR(choice_->Restore(reader));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      ASSIGN_OR_RETURN(goes_on_[i], reader.ReadBool());
      RETURN_IF_ERROR(inputs_[i]->Restore(reader));
    }
    return absl::OkStatus();
  }

 private:
  // Returns the next input that is not known to have ended; nullopt at the end.
  absl::StatusOr<std::optional<size_t>> Choose() {
    while (!over_) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      ASSIGN_OR_RETURN(const std::optional<size_t> chosen, choice_->Next(goes_on_));
      if (chosen.has_value() && goes_on_[*chosen]) return chosen;
      over_ = !chosen.has_value();
    }
    return std::nullopt;
  }

  void HasEnded(size_t input) {
    goes_on_[input] = false;
    over_ = stop_on_empty_dataset_ ||
            std::find(goes_on_.begin(), goes_on_.end(), true) == goes_on_.end();
  }

  BuildSite site_;
  std::unique_ptr<Choice> choice_;
  const bool stop_on_empty_dataset_;
  std::vector<std::unique_ptr<NodeIterator>> inputs_;
  std::vector<bool> goes_on_;  // per input: its end was not found yet
  bool over_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NodeIterator>> ReadChosen(const BuildSite& site, size_t count,
                                                         std::unique_ptr<Choice> choice,
                                                         bool stop_on_empty_dataset) {
  auto iterator = std::make_unique<ChosenIterator>(site, std::move(choice), stop_on_empty_dataset);
  RETURN_IF_ERROR(iterator->Open(count));
  return iterator;
}

absl::StatusOr<Spec> SpecOfAny(absl::Span<const NodePtr> inputs) {
  Spec any = inputs[0]->spec;
  for (size_t i = 1; i < inputs.size(); ++i) {
    absl::StatusOr<Spec> both = CommonSpec(any, inputs[i]->spec, "the datasets");
    RETURN_IF_ERROR(Annotate(both.status(), "the second is dataset ", i));
    any = *std::move(both);
  }
  return any;
}

}  // namespace penstock
