// SPDX-License-Identifier: Apache-2.0
// RegexFullMatch and RegexReplace, with RE2, whose time is linear in the length of the text for any
// pattern.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "dataplane/dataset/expr/ops/text.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

// Compiles the pattern. InvalidArgument with RE2's message.
absl::StatusOr<std::shared_ptr<const RE2>> Compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_shared<const RE2>(pattern, options);
  if (compiled->ok()) return compiled;
  return absl::InvalidArgumentError(
      absl::StrCat("invalid pattern ", Quoted(pattern), ": ", compiled->error()));
}

absl::StatusOr<Specs> InferMatch(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  RETURN_IF_ERROR(Compile(Get<std::string>(attrs, "pattern")).status());
  return Specs{Dense(kBool, inputs[0].shape)};
}

absl::StatusOr<Kernel> MakeMatch(const OpDef& def, InputSpecs) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const RE2> pattern,
                   Compile(Get<std::string>(def.attrs, "pattern")));
  return Kernel([pattern](OpRun& run) -> absl::Status {
    const Tensor& x = run.input(0);
    ASSIGN_OR_RETURN(uint8_t* const out, run.PlaceAs<uint8_t>(0, x.dims()));
    for (int64_t n = 0; n < x.element_count(); ++n) {
      const std::string_view text = x.string(n);
      out[n] = RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *pattern);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Specs> InferReplace(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  ASSIGN_OR_RETURN(const std::shared_ptr<const RE2> pattern,
                   Compile(Get<std::string>(attrs, "pattern")));
  std::string error;
  const std::string& rewrite = Get<std::string>(attrs, "rewrite");
  if (!pattern->CheckRewriteString(rewrite, &error))
    return absl::InvalidArgumentError(
        absl::StrCat("invalid rewrite ", Quoted(rewrite), ": ", error));
  return Specs{Dense(kString, inputs[0].shape)};
}

// Checks how long the text will be after replacement, before it is made: it may be many times as
// long as the input.
absl::Status CheckReplaced(std::string_view text, const RE2& pattern, const std::string& rewrite,
                           bool global) {
  const auto references = static_cast<uint64_t>(std::count(rewrite.begin(), rewrite.end(), '\\'));
  const double size = static_cast<double>(text.size());
  const double most_a_match =
      static_cast<double>(rewrite.size()) + static_cast<double>(references) * size;
  if (size + (global ? size + 1 : 1) * most_a_match <= static_cast<double>(MostValueBytes()))
    return absl::OkStatus();
  std::string rest(text);
  const auto matches = static_cast<uint64_t>(global ? RE2::GlobalReplace(&rest, pattern, "")
                                                    : RE2::Replace(&rest, pattern, ""));
  const uint64_t bytes =
      rest.size() + matches * rewrite.size() + references * (text.size() - rest.size());
  return bytes > MostValueBytes() ? StringsTooLarge(bytes) : absl::OkStatus();
}

absl::StatusOr<Kernel> MakeReplace(const OpDef& def, InputSpecs) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const RE2> pattern,
                   Compile(Get<std::string>(def.attrs, "pattern")));
  return Kernel([pattern, rewrite = Get<std::string>(def.attrs, "rewrite"),
                 global = Get<bool>(def.attrs, "global")](OpRun& run) {
    const Tensor& x = run.input(0);
    return MakeStrings(run, x.dims(), [&](int64_t n) -> absl::StatusOr<std::string> {
      RETURN_IF_ERROR(CheckReplaced(x.string(n), *pattern, rewrite, global));
      std::string text(x.string(n));
      if (global)
        RE2::GlobalReplace(&text, *pattern, rewrite);
      else
        RE2::Replace(&text, *pattern, rewrite);
      return text;
    });
  });
}

}  // namespace

std::vector<OpRow> RegexOps() {
  constexpr size_t kText = kAttrIndex<std::string>;
  return {
      {.name = "RegexFullMatch",
       .attrs = {{"pattern", kText}},
       .infer = InferMatch,
       .make = MakeMatch},
      {.name = "RegexReplace",
       .attrs = {{"pattern", kText}, {"rewrite", kText}, {"global", kAttrIndex<bool>}},
       .infer = InferReplace,
       .make = MakeReplace},
  };
}

}  // namespace penstock
