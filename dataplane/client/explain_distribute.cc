// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/explain_distribute.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "dataplane/client/distribute_options.h"
#include "dataplane/dataset/graph/graph.h"

namespace penstock::client {
namespace {

// Returns the names of an option's choices, by number; nullptr if the option is not a choice.
const std::vector<std::string>* ChoicesOf(const std::string& attr) {
  static const auto* const choices = new std::map<std::string, std::vector<std::string>>{
      {"processing_mode", {"OFF", "DYNAMIC", "FILE", "DATA", "FILE_OR_DATA", "HINT"}},
      {"order", {"ANY", "FAIR", "DETERMINISTIC"}},
      {"visitation", {"EXACTLY_ONCE", "AT_LEAST_ONCE"}},
      {"remainder_policy", {"PAD", "DROP", "ERROR"}},
      {"on_error", {"SKIP_ROUND", "STOP"}},
      {"target_workers", {"AUTO", "ANY", "LOCAL"}},
      {"compression", {"NONE", "AUTO", "SNAPPY", "LZ4"}},
      {"ack_mode", {"ON_DELIVERY", "ON_COMMIT"}},
  };
  const auto found = choices->find(attr);
  return found == choices->end() ? nullptr : &found->second;
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

// Returns the option's name. Attributes keep the names that definitions had before 0.9, because
// fingerprints contain them.
std::string OptionOf(const std::string& attr) {
  if (attr == "keep") return "ack_mode";
  return attr == "rests" ? "remainder_policy" : attr;
}

std::string TextOf(const std::string& attr, const Attr& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return absl::StrCat(attr, "=", Quoted(*text));
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    return absl::StrCat(attr, "=[",
                        absl::StrJoin(*texts, ", ",
                                      [](std::string* out, const auto& text) {
                                        absl::StrAppend(out, Quoted(text));
                                      }),
                        "]");
  }
  const int64_t number = std::get<int64_t>(value);
  if (absl::EndsWith(attr, "_ns")) {
    return absl::StrCat(absl::StripSuffix(attr, "_ns"), "=",
                        absl::FormatDuration(absl::Nanoseconds(number)));
  }
  const std::vector<std::string>* choices = ChoicesOf(attr);
  if (choices != nullptr && number >= 0 && number < static_cast<int64_t>(choices->size())) {
    return absl::StrCat(attr, "=", (*choices)[static_cast<size_t>(number)]);
  }
  return absl::StrCat(attr, "=", number);
}

}  // namespace

std::string ExplainDistribute(const Dataset::Node& node) {
  const Attrs usual = ToAttrs(DistributeOptions());
  std::vector<std::string> said;
  for (const auto& [attr, value] : node.attrs) {
    if (attr == "spec" || attr == "cardinality") continue;  // shown after the node's name
    const auto found = usual.find(attr);
    const bool always = attr == "processing_mode" || attr == "service";
    if (always || found == usual.end() || found->second != value) {
      said.push_back(TextOf(OptionOf(attr), value));
    }
  }
  std::sort(said.begin(), said.end());
  const Dataset::Node* last = node.inputs.empty() ? nullptr : node.inputs[0].get();
  while (last != nullptr && last->op == "Options") last = last->inputs[0].get();
  if (last != nullptr && last->op == "Prefetch") {
    said.push_back("(its window replaces the Prefetch before it)");
  }
  return absl::StrJoin(said, " ");
}

}  // namespace penstock::client
