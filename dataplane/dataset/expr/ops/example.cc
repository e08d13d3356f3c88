// SPDX-License-Identifier: Apache-2.0
// ParseExample: features of a tf.train.Example as tensors, in place.
#include "penstock/example.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/ops/example_wire.h"
#include "include/status_macros.h"
#include "penstock/map.h"

namespace penstock {
namespace {

using FeatureKind = WireFeature::Kind;

// Returns the kind of list for values of a dtype; kNone if there is none.
FeatureKind FeatureKindOf(DType dtype) {
  if (dtype == kString) return FeatureKind::kBytes;
  if (dtype == kFloat32) return FeatureKind::kFloats;
  if (dtype == kBool || IsInteger(dtype)) return FeatureKind::kInts;
  return FeatureKind::kNone;
}

const char* FeatureKindName(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kBytes:
      return "bytes_list";
    case FeatureKind::kFloats:
      return "float_list";
    case FeatureKind::kInts:
      return "int64_list";
    case FeatureKind::kNone:
      break;
  }
  return "empty feature";
}

absl::Status CheckDefault(absl::string_view name, const TensorSpec& feature, InputSpecs inputs,
                          size_t place) {
  if (place >= inputs.size())
    return absl::InvalidArgumentError(absl::StrCat("feature '", name, "' has no default"));
  const TensorSpec& given = inputs[place];
  bool fits = given.dtype == feature.dtype && given.shape.has_rank() &&
              given.shape.rank() == feature.shape.rank();
  for (int d = 0; fits && d < feature.shape.rank(); ++d) {
    const int64_t wanted = feature.shape.dim(d);
    fits = given.shape.dim(d) == wanted || (d == 0 && wanted == kUnknownDim);
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("feature '", name, "' is ", feature.ToString(),
                                                 ", but its default is ", given.ToString()));
}

// A feature that is optional in the attribute has a default. The defaults are the inputs after the
// first, in the features' order.
absl::StatusOr<std::vector<TensorSpec>> InferExamples(const Attrs& attrs, InputSpecs inputs) {
  if (inputs[0].dtype != kString || inputs[0].shape != Shape())
    return absl::InvalidArgumentError(
        absl::StrCat("argument 0 is ", inputs[0].ToString(), ", not a scalar string"));
  const Spec& features = Get<Spec>(attrs, "features");
  if (features.kind() != Spec::Kind::kDict)
    return absl::InvalidArgumentError("features must be a dict");
  std::vector<TensorSpec> outputs;
  size_t next_default = 1;
  for (size_t i = 0; i < features.size(); ++i) {
    const std::string name(features.key(i));
    if (features.member(i).kind() != Spec::Kind::kLeaf)
      return absl::InvalidArgumentError(
          absl::StrCat("feature '", name, "' must be a tensor, not a nest"));
    TensorSpec spec = features.member(i).leaf();
    const bool has_default = std::exchange(spec.optional, false);
    const bool fits = spec.kind == TensorSpec::Kind::kDense && spec.shape.has_rank() &&
                      FeatureKindOf(spec.dtype) != FeatureKind::kNone;
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("feature '", name, "' is ", spec.ToString(),
                       "; a feature must be a dense tensor of string, float32, bool or integers, "
                       "of known rank"));
    }
    Dims dims(spec.shape.dims().begin(), spec.shape.dims().end());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == kUnknownDim && d > 0)
        return absl::InvalidArgumentError(
            absl::StrCat("feature '", name, "': only the first dimension may be unknown"));
      if (dims[d] == kUnknownDim) dims[d] = 1;
    }
    RETURN_IF_ERROR(CountOf(dims, spec.dtype == kString ? kUInt64 : spec.dtype).status());
    if (has_default) RETURN_IF_ERROR(CheckDefault(name, spec, inputs, next_default++));
    outputs.push_back(std::move(spec));
  }
  if (next_default != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("got ", inputs.size() - 1, " default(s) for ",
                                                   next_default - 1, " feature(s) that need one"));
  }
  return outputs;
}

// One call's data about the wanted features, by their index in the spec.
struct Wanted {
  std::string name;
  TensorSpec spec;
  size_t default_input = 0;  // 0: no default, the feature must be present
};
struct Parser {
  std::vector<Wanted> wanted;
  absl::flat_hash_map<std::string, size_t> place_of;
};

// Returns the dims of a feature of `count` values.
absl::StatusOr<Dims> DimsFor(const TensorSpec& spec, int64_t count) {
  Dims dims(spec.shape.dims().begin(), spec.shape.dims().end());
  int64_t row = 1;
  for (size_t d = 1; d < dims.size(); ++d) row *= dims[d];
  int64_t& first = dims.empty() ? row : dims[0];
  if (!dims.empty() && first == kUnknownDim) first = row == 0 ? 0 : count / row;
  if ((dims.empty() ? 1 : first * row) != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", count, " values, which do not fit ", spec.ToString()));
  }
  return dims;
}

absl::Status PlaceBytes(OpRun& run, size_t i, const WireFeature& feature, const TensorSpec& spec) {
  absl::InlinedVector<std::string_view, 4> values;
  RETURN_IF_ERROR(ForEachBytes(feature, [&](std::string_view value) { values.push_back(value); }));
  ASSIGN_OR_RETURN(const Dims dims, DimsFor(spec, static_cast<int64_t>(values.size())));
  return run.Strings(i, dims, [&](int64_t n) { return values[n]; });
}

absl::Status PlaceFloats(OpRun& run, size_t i, const WireFeature& feature, const TensorSpec& spec) {
  int64_t count = 0;
  RETURN_IF_ERROR(ForEachFloat(feature, [&](float) { ++count; }));
  ASSIGN_OR_RETURN(const Dims dims, DimsFor(spec, count));
  ASSIGN_OR_RETURN(float* out, run.PlaceAs<float>(i, dims));
  return ForEachFloat(feature, [&](float value) { *out++ = value; });
}

absl::Status PlaceInts(OpRun& run, size_t i, const WireFeature& feature, const TensorSpec& spec) {
  int64_t count = 0;
  RETURN_IF_ERROR(ForEachInt(feature, [&](int64_t) { ++count; }));
  ASSIGN_OR_RETURN(const Dims dims, DimsFor(spec, count));
  if (spec.dtype == kBool) {
    ASSIGN_OR_RETURN(uint8_t * out, run.PlaceAs<uint8_t>(i, dims));
    return ForEachInt(feature, [&](int64_t value) { *out++ = value != 0; });
  }
  return ForInteger(spec.dtype, [&]<class T>() -> absl::Status {
    ASSIGN_OR_RETURN(T * out, run.PlaceAs<T>(i, dims));
    absl::Status status;
    RETURN_IF_ERROR(ForEachInt(feature, [&](int64_t value) {
      if (!std::in_range<T>(value) && status.ok())
        status = absl::InvalidArgumentError(
            absl::StrCat("contains ", value, ", which does not fit ", Name(spec.dtype)));
      *out++ = static_cast<T>(value);
    }));
    return status;
  });
}

absl::Status PlaceFeature(OpRun& run, size_t i, std::string_view bytes, const TensorSpec& spec) {
  ASSIGN_OR_RETURN(const WireFeature feature, ReadFeature(bytes));
  const FeatureKind kind = FeatureKindOf(spec.dtype);
  if (feature.kind != kind) {
    return absl::InvalidArgumentError(
        absl::StrCat("is a ", FeatureKindName(feature.kind), ", not a ", FeatureKindName(kind)));
  }
  switch (kind) {
    case FeatureKind::kBytes:
      return PlaceBytes(run, i, feature, spec);
    case FeatureKind::kFloats:
      return PlaceFloats(run, i, feature, spec);
    default:
      return PlaceInts(run, i, feature, spec);
  }
}

absl::Status ParseExamples(const Parser& parser, OpRun& run) {
  absl::InlinedVector<std::string_view, 8> found(parser.wanted.size());
  absl::InlinedVector<bool, 8> is_there(parser.wanted.size(), false);
  RETURN_IF_ERROR(
      ForEachFeature(run.input(0).string(), [&](std::string_view name, std::string_view value) {
        const auto place = parser.place_of.find(absl::string_view(name.data(), name.size()));
        if (place == parser.place_of.end()) return;
        found[place->second] = value;
        is_there[place->second] = true;
      }));
  for (size_t i = 0; i < parser.wanted.size(); ++i) {
    const Wanted& wanted = parser.wanted[i];
    if (wanted.default_input > 0 && (!is_there[i] || found[i].empty())) {
      RETURN_IF_ERROR(run.View(i, run.input(wanted.default_input)));
      continue;
    }
    if (!is_there[i])
      return absl::InvalidArgumentError(absl::StrCat("feature '", wanted.name, "' is missing"));
    const absl::Status placed = PlaceFeature(run, i, found[i], wanted.spec);
    if (!placed.ok())
      return absl::Status(placed.code(),
                          absl::StrCat("feature '", wanted.name, "' ", placed.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeExamples(const OpDef& def, InputSpecs) {
  auto parser = std::make_shared<Parser>();
  const Spec& features = Get<Spec>(def.attrs, "features");
  size_t next_default = 1;
  for (size_t i = 0; i < features.size(); ++i) {
    TensorSpec spec = features.member(i).leaf();
    const bool has_default = std::exchange(spec.optional, false);
    parser->wanted.push_back({.name = std::string(features.key(i)),
                              .spec = std::move(spec),
                              .default_input = has_default ? next_default++ : 0});
    parser->place_of[parser->wanted[i].name] = i;
  }
  return Kernel([parser](OpRun& run) { return ParseExamples(*parser, run); });
}

}  // namespace

std::vector<OpRow> ExampleOps() {
  return {{.name = "ParseExample",
           .max_inputs = 1 << 16,
           .attrs = {{"features", kAttrIndex<Spec>}},
           .infer = InferExamples,
           .make = MakeExamples}};
}

Expr ParseExampleProto(const Expr& serialized,
                       std::vector<std::pair<std::string, TensorSpec>> features) {
  std::vector<ExampleFeature> without_defaults;
  for (auto& [name, spec] : features)
    without_defaults.push_back({.name = std::move(name), .spec = std::move(spec)});
  return ParseExampleOr(serialized, std::move(without_defaults));
}

Expr ParseExampleOr(const Expr& serialized, std::vector<ExampleFeature> features) {
  std::sort(features.begin(), features.end(),
            [](const ExampleFeature& a, const ExampleFeature& b) { return a.name < b.name; });
  std::vector<std::pair<std::string, Spec>> wanted, made;
  std::vector<Expr> inputs = {serialized};
  for (ExampleFeature& feature : features) {
    made.emplace_back(feature.name, feature.spec);
    feature.spec.optional = feature.otherwise.has_value();
    if (feature.otherwise.has_value()) inputs.push_back(*std::move(feature.otherwise));
    wanted.emplace_back(std::move(feature.name), std::move(feature.spec));
  }
  std::vector<Expr> outputs =
      Apply("ParseExample", {{"features", Spec::Dict(std::move(wanted))}}, std::move(inputs));
  if (outputs.size() == 1 && !outputs[0].status().ok()) return outputs[0];
  return NestOf(Spec::Dict(std::move(made)), std::move(outputs));
}

}  // namespace penstock
