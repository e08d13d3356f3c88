// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/window/windowed_dataset.h"

#include <algorithm>
#include <utility>

#include "dataplane/dataset/transforms/window/window_form.h"

namespace penstock {
namespace {

// Returns the node with the attributes of `form`, or a node whose status is the mistake.
Dataset Formed(const WindowedDataset::Windows& windows, absl::StatusOr<Attrs> form) {
  if (!windows.input->status.ok()) return DatasetOf(windows.input);
  absl::Status mistake = windows.mistake;
  mistake.Update(form.status());
  if (!mistake.ok()) return DatasetOf(FailedNode(windows.op, {windows.input}, mistake));
  Attrs attrs = windows.attrs;
  attrs.merge(*form);
  return DatasetOf(MakeNode(windows.op, std::move(attrs), {windows.input}));
}

// Returns whether elements of `spec` can be stacked without padding.
bool AllOfOneShape(const Spec& spec) {
  return std::all_of(spec.leaves().begin(), spec.leaves().end(), [](const TensorSpec& leaf) {
    return leaf.kind != TensorSpec::Kind::kDense || leaf.shape.IsStatic();
  });
}

}  // namespace

Dataset WindowedDataset::Batch() const {
  return Formed(*windows_, WindowForm::Stacked());
}

Dataset WindowedDataset::RaggedBatch() const {
  return Formed(*windows_, WindowForm::Ragged());
}

Dataset WindowedDataset::PaddedBatch(Padding padding) const {
  return Formed(*windows_, WindowForm::Padded(padding, windows_->input->spec));
}

Dataset WindowedDataset::Pack(int64_t length, PackOptions options) const {
  return Formed(*windows_, WindowForm::Packed(length, options, windows_->input->spec));
}

Dataset WindowedDataset::Pack(PackLengths lengths, PackOptions options) const {
  return Formed(*windows_, WindowForm::Packed(lengths, options, windows_->input->spec));
}

Dataset WindowedDataset::FlatMap(std::function<Dataset(const Dataset& window)> fn) const {
  const Dataset windows = AllOfOneShape(windows_->input->spec) ? Batch() : RaggedBatch();
  return windows.FlatMap([fn = std::move(fn)](const Expr& window) {
    return fn(Dataset::FromTensors(window).Unbatch());
  });
}

}  // namespace penstock
