// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/window/window_form.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "dataplane/dataset/transforms/batch/stack_rows.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// The values of the attribute "form". They are part of definitions.
constexpr char kStacked[] = "batch";
constexpr char kRagged[] = "ragged_batch";
constexpr char kPadded[] = "padded_batch";
constexpr char kPacked[] = "pack";

Attrs FormOf(const char* form) {
  return {{"form", std::string(form)}};
}

absl::StatusOr<Attrs> PackedBy(absl::StatusOr<PackRules> rules) {
  RETURN_IF_ERROR(rules.status());
  Attrs attrs = FormOf(kPacked);
  AddPackRules(*rules, attrs);
  return attrs;
}

// Checks that `attrs` has exactly the attributes that the form needs.
absl::Status CheckPresent(const Attrs& attrs, const std::string& form) {
  const auto check = [&](const char* name, bool needed) {
    if (attrs.contains(name) == needed) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the attribute ", name, needed ? " is missing for" : " is not allowed for",
                     " windows that become a ", form));
  };
  RETURN_IF_ERROR(check("padded", form == kPadded));
  RETURN_IF_ERROR(check("padding_values", form == kPadded || form == kPacked));
  RETURN_IF_ERROR(check("lengths", form == kPacked));
  return check("too_long", form == kPacked);
}

}  // namespace

Attrs WindowForm::Stacked() {
  return FormOf(kStacked);
}

Attrs WindowForm::Ragged() {
  return FormOf(kRagged);
}

absl::StatusOr<Attrs> WindowForm::Padded(const Padding& padding, const Spec& element) {
  ASSIGN_OR_RETURN(const RowPadding made,
                   MakePadding(padding.padded_shapes, padding.padding_values, element));
  Attrs attrs = FormOf(kPadded);
  AddPadding(made, attrs);
  return attrs;
}

absl::StatusOr<Attrs> WindowForm::Packed(int64_t length, const PackOptions& options,
                                         const Spec& element) {
  return PackedBy(PackRules::Make(length, options, element));
}

absl::StatusOr<Attrs> WindowForm::Packed(const PackLengths& lengths, const PackOptions& options,
                                         const Spec& element) {
  return PackedBy(PackRules::Make(lengths, options, element));
}

std::vector<AttrRule> WindowForm::Rules() {
  return {{"form", AttrType::kString},
          {"padded", AttrType::kSpec, false},
          {"padding_values", AttrType::kElement, false},
          {"lengths", AttrType::kInts, false},
          {"too_long", AttrType::kString, false}};
}

absl::StatusOr<Spec> WindowForm::Infer(const Attrs& attrs, const Spec& element, int64_t rows) {
  const std::string& form = Get<std::string>(attrs, "form");
  if (form != kStacked && form != kRagged && form != kPadded && form != kPacked) {
    return absl::InvalidArgumentError(
        absl::StrCat("form must be batch, ragged_batch, padded_batch or pack, not \"",
                     absl::CHexEscape(form), "\""));
  }
  RETURN_IF_ERROR(CheckPresent(attrs, form));
  if (form == kRagged) return RaggedSpec(element, rows);
  if (form == kPadded) {
    const RowPadding padding = PaddingOf(attrs);
    RETURN_IF_ERROR(CheckPadding(padding, element));
    return StackedSpec(padding.row, rows);
  }
  if (form == kPacked) {
    ASSIGN_OR_RETURN(const PackRules rules, PackRules::Of(attrs, element));
    return StackedSpec(rules.packed(), kUnknownDim);
  }
  return StackedSpec(element, rows);
}

WindowForm::WindowForm(const BuildSite& site) : site_(site) {
  const Attrs& attrs = site.node().attrs;
  const std::string& form = Get<std::string>(attrs, "form");
  if (form == kPadded) padding_ = PaddingOf(attrs);
  if (form == kPacked) packing_ = PackRules::Of(attrs, site.node().inputs[0]->spec).value();
}

absl::StatusOr<Element> WindowForm::Put(absl::Span<const Element> elements) const {
  if (packing_.has_value()) return PackAll(site_.pool(), elements, *packing_, site_.spec());
  return StackRows(site_.pool(), elements, site_.spec(),
                   padding_.has_value() ? &*padding_ : nullptr);
}

}  // namespace penstock
