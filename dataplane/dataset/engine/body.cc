// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/body.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "include/status_macros.h"

namespace penstock {

absl::StatusOr<Body> TraceBody(const DatasetFunction& fn, const Spec& input) {
  const Expr element = SymbolicInput(input);
  Body body;
  body.root = NodeOf(fn(element));
  RETURN_IF_ERROR(body.root->status);
  ASSIGN_OR_RETURN(body.arguments, TraceTo(element, Tuple(body.root->open)));
  return body;
}

absl::Status CheckBody(const FunctionDef& arguments, const Spec& outer, const Dataset::Node& body) {
  RETURN_IF_ERROR(
      Annotate(arguments.input.Admits(outer), "the function does not accept the element"));
  const Spec wanted = Spec::Tuple(body.arguments);
  if (arguments.output == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the function returns ", arguments.output.ToString(),
                   ", but the sources of its dataset take ", wanted.ToString()));
}

absl::StatusOr<BodyOpener> BodyOpener::Create(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundFunction> function,
                   site.Bind(site.attr<std::shared_ptr<const FunctionDef>>("function")));
  return BodyOpener(site, std::move(function));
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BodyOpener::Open(const Element& outer,
                                                               uint64_t element) const {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < outer.size(); ++i) inputs.push_back(outer.tensor(i));
  RandomKey key = site_.Random();
  key.element = element;
  ElementSink sink(site_.pool(), function_->def().output);
  RETURN_IF_ERROR(Annotate(function_->Run(inputs, key, sink), site_.name()));
  ASSIGN_OR_RETURN(Element arguments, std::move(sink).Finish());
  return site_.BuildBody(site_.node().inputs.size() - 1,
                         std::make_shared<const Element>(std::move(arguments)), element);
}

}  // namespace penstock
