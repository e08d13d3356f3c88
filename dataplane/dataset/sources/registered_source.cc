// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/registered_source.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/registered_node.h"
#include "dataplane/dataset/expr/output_checks.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/dataset/sources/split_cursor.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

Registered<RegisteredSource>& Sources() {
  static auto* const sources = new Registered<RegisteredSource>("source");
  return *sources;
}

// Reads the splits of the feed one after another.
class RegisteredSourceIterator final : public RegisteredIterator {
 public:
  RegisteredSourceIterator(const BuildSite& site, std::string_view what,
                           std::unique_ptr<SourceReader> reader)
      : RegisteredIterator(site, what),
        cursor_(site, site.attr<int64_t>("splits"), site.attr<int64_t>("splits")),
        reader_(std::move(reader)) {}

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    while (true) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      ASSIGN_OR_RETURN(const bool open, OpenSplit());
      if (!open) return false;
      SinkOutputs outputs(sink, site_.spec().leaves());
      absl::StatusOr<bool> more = reader_->Next(outputs);
      if (!more.ok()) return Explained(more.status());
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
    RETURN_IF_ERROR(Explained(reader_->Open(span_.begin)));
    return Explained(reader_->Restore(position));
  }

 private:
  // Opens the next split unless one is open. Returns false after the last split. If a split cannot
  // be opened, the error takes the split's place.
  absl::StatusOr<bool> OpenSplit() {
    if (open_) return true;
    if (span_.begin == span_.end) {
      ASSIGN_OR_RETURN(const std::optional<Span64> next, cursor_.Next());
      if (!next.has_value()) return false;
      span_ = *next;
    }
    if (absl::Status opened = reader_->Open(span_.begin); !opened.ok()) {
      EndSplit();
      return Explained(Annotate(opened, "split ", span_.begin - 1));
    }
    open_ = true;
    return true;
  }
  void EndSplit() {
    open_ = false;
    ++span_.begin;
  }

  SplitCursor cursor_;
  const std::unique_ptr<SourceReader> reader_;
  Span64 span_ = {0, 0};  // splits to read, including the open one
  bool open_ = false;
};

absl::StatusOr<Inferred> InferSource(const Attrs& attrs, absl::Span<const NodePtr>) {
  const int64_t splits = Get<int64_t>(attrs, "splits");
  if (splits < 1)
    return absl::InvalidArgumentError(absl::StrCat("splits must be at least 1, not ", splits));
  return InferRegistered(attrs);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSource(const BuildSite& site) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<SourceReader> reader,
      OpenRegistered(Sources(), site, [](const RegisteredSource& found, const Params& params) {
        return found.open(params);
      }));
  return ReadSplits(site, Sources().what(), std::move(reader));
}

absl::StatusOr<SplitProviderPlan> PlanSource(const Dataset::Node& node, Files&) {
  return SplitProviderPlan{.count = Get<int64_t>(node.attrs, "splits")};
}

}  // namespace

NodeKind RegisteredSourceKind() {
  std::vector<AttrRule> attrs = RegisteredAttrs();
  attrs.push_back({"splits", AttrType::kInt});
  return {.op = "RegisteredSource",
          .attrs = std::move(attrs),
          .min_inputs = 0,
          .max_inputs = 0,
          .takes_params = true,
          .infer = InferSource,
          .build = BuildSource,
          .plan = PlanSource};
}

std::unique_ptr<NodeIterator> ReadSplits(const BuildSite& site, std::string_view what,
                                         std::unique_ptr<SourceReader> reader) {
  return std::make_unique<RegisteredSourceIterator>(site, what, std::move(reader));
}

absl::Status RegisterSource(std::string name, RegisteredSource source) {
  return Sources().Add(std::move(name), std::move(source));
}

std::vector<std::string> RegisteredSources() {
  return Sources().Names();
}

Dataset FromSource(std::string_view source, Params params) {
  return MakeRegistered("RegisteredSource", Sources(), source, params, {},
                        [&](const RegisteredSource& found) { return found.describe(params); });
}

}  // namespace penstock
