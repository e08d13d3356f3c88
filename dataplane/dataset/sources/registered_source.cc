// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/registered_source.h"

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/element_sink.h"
#include "dataplane/dataset/output_checks.h"
#include "dataplane/dataset/registered.h"
#include "dataplane/dataset/sources/split_cursor.h"
#include "dataplane/dataset/state_bytes.h"
#include "penstock/status.h"

namespace penstock {
namespace {

Registered<RegisteredSource>& Sources() {
  static auto* const sources = new Registered<RegisteredSource>("source");
  return *sources;
}

// The splits that the feed gives, one after the other.
class RegisteredSourceIterator final : public NodeIterator {
 public:
  RegisteredSourceIterator(const BuildSite& site, std::unique_ptr<SourceReader> reader)
      : site_(site),
        who_(absl::StrCat("source '", site.attr<std::string>("name"), "'")),
        cursor_(site, site.attr<int64_t>("splits"), site.attr<int64_t>("splits")),
        reader_(std::move(reader)) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ElementSink sink(site_.pool(), site_.spec());
    ASSIGN_OR_RETURN(const bool more, NextInto(sink));
    if (!more) return std::nullopt;
    return std::move(sink).Finish();
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    while (true) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      ASSIGN_OR_RETURN(const bool open, OpenSplit());
      if (!open) return false;
      SinkOutputs outputs(sink, site_.spec().leaves());
      absl::StatusOr<bool> more = reader_->Next(outputs);
      if (!more.ok()) return Annotate(more.status(), "in ", site_.name(), ", ", who_);
      if (*more) {
        RETURN_IF_ERROR(outputs.checks().AllGiven(who_));
        return true;
      }
      EndSplit();
    }
  }

  absl::Status Save(StateWriter& writer) override {
    cursor_.Save(writer, span_);
    writer.WriteBool(open_);
    if (!open_) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string position, reader_->Save());
    writer.WriteString(position);
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(span_, cursor_.Restore(reader, [this] { return cursor_.Next(); }));
    ASSIGN_OR_RETURN(open_, reader.ReadBool());
    if (!open_) return absl::OkStatus();
    if (span_.begin == span_.end)
      return absl::DataLossError("a saved position is in a split that has ended");
    ASSIGN_OR_RETURN(const std::string_view position, reader.ReadString());
    RETURN_IF_ERROR(Annotate(reader_->Open(span_.begin), "in ", site_.name(), ", ", who_));
    return Annotate(reader_->Restore(position), "in ", site_.name(), ", ", who_);
  }

 private:
  // False behind the last split. The error of a split that cannot be opened stands in
  // its place.
  absl::StatusOr<bool> OpenSplit() {
    if (open_) return true;
    if (span_.begin == span_.end) {
      ASSIGN_OR_RETURN(const std::optional<Span64> next, cursor_.Next());
      if (!next.has_value()) return false;
      span_ = *next;
    }
    if (absl::Status opened = reader_->Open(span_.begin); !opened.ok()) {
      EndSplit();
      return Annotate(opened, "in ", site_.name(), ", ", who_, ", split ", span_.begin - 1);
    }
    open_ = true;
    return true;
  }
  void EndSplit() {
    open_ = false;
    ++span_.begin;
  }

  const BuildSite site_;
  const std::string who_;
  SplitCursor cursor_;
  const std::unique_ptr<SourceReader> reader_;
  Span64 span_ = {0, 0};  // splits to read, the open one included
  bool open_ = false;
};

absl::StatusOr<Inferred> InferSource(const Attrs& attrs, absl::Span<const NodePtr>) {
  const Spec& spec = Get<Spec>(attrs, "spec");
  RETURN_IF_ERROR(CheckRegisteredSpec(spec.leaves()));
  const int64_t cardinality = Get<int64_t>(attrs, "cardinality");
  if (cardinality < kUnknown)
    return absl::InvalidArgumentError(absl::StrCat("a cardinality of ", cardinality));
  const int64_t splits = Get<int64_t>(attrs, "splits");
  if (splits < 1) return absl::InvalidArgumentError(absl::StrCat("splits is ", splits));
  return Inferred{spec, cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSource(const BuildSite& site) {
  ASSIGN_OR_RETURN(const auto source,
                   Sources().Find(site.attr<std::string>("name"), site.attr<int64_t>("version")));
  absl::StatusOr<std::unique_ptr<SourceReader>> reader = source->open(ParamsOf(site.node().attrs));
  if (!reader.ok())
    return Annotate(reader.status(), "in ", site.name(), ", source '",
                    site.attr<std::string>("name"), "'");
  return std::make_unique<RegisteredSourceIterator>(site, *std::move(reader));
}

absl::StatusOr<SplitProviderPlan> PlanSource(const Dataset::Node& node, Files&) {
  return SplitProviderPlan{.count = Get<int64_t>(node.attrs, "splits")};
}

}  // namespace

void AddParams(const Params& params, Attrs& attrs) {
  for (const auto& param : params) {
    Attr& attr = attrs[kParamPrefix + param.first];
    std::visit([&attr](const auto& held) { attr = held; }, param.second);
  }
}

Params ParamsOf(const Attrs& attrs) {
  Params params;
  for (const auto& [name, value] : attrs) {
    if (!absl::StartsWith(name, kParamPrefix)) continue;
    const std::string key = name.substr(sizeof(kParamPrefix) - 1);
    std::visit(
        [&](const auto& held) {
          if constexpr (std::is_constructible_v<Param, decltype(held)>) params[key] = held;
        },
        value);
  }
  return params;
}

NodeKind RegisteredSourceKind() {
  return {.op = "RegisteredSource",
          .attrs = {{"name", AttrType::kString},
                    {"version", AttrType::kInt},
                    {"spec", AttrType::kSpec},
                    {"cardinality", AttrType::kInt},
                    {"splits", AttrType::kInt},
                    {"deterministic", AttrType::kBool}},
          .min_inputs = 0,
          .max_inputs = 0,
          .takes_params = true,
          .infer = InferSource,
          .build = BuildSource,
          .plan = PlanSource};
}

absl::Status RegisterSource(std::string name, RegisteredSource source) {
  return Sources().Add(std::move(name), std::move(source));
}

std::vector<std::string> RegisteredSources() {
  return Sources().Names();
}

Dataset FromSource(std::string_view source, Params params) {
  const std::string name(source);
  const auto found = Sources().Find(name);
  if (!found.ok()) return Dataset(FailedNode("RegisteredSource", {}, found.status()));
  absl::StatusOr<SourceInfo> info = (*found)->describe(params);
  if (!info.ok()) {
    return Dataset(
        FailedNode("RegisteredSource", {}, Annotate(info.status(), "in source '", name, "'")));
  }
  Attrs attrs = {{"name", name},
                 {"version", int64_t{(*found)->version}},
                 {"spec", std::move(info->spec)},
                 {"cardinality", info->cardinality},
                 {"splits", info->splits},
                 {"deterministic", (*found)->deterministic}};
  AddParams(params, attrs);
  return Dataset(MakeNode("RegisteredSource", std::move(attrs), {}));
}

}  // namespace penstock
