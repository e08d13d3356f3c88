// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/http_files.h"

#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/remote/guard.h"
#include "control/env/remote/name.h"

namespace penstock::remote {
namespace {

class HttpFiles final : public Files {
 public:
  HttpFiles(RemoteContext& context, std::shared_ptr<const UrlRules> rules)
      : context_(context), rules_(std::move(rules)) {}

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                             std::stop_token stop) override {
    if (rules_ != nullptr && rules_->Judge(name) == UrlRules::Hosts::kNone) return NotAllowed(name);
    GetRequest request;
    request.url = name;
    request.rules = rules_;
    return OpenRemote(context_, Shown(name), std::move(request), std::move(stop));
  }

  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                std::stop_token) override {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot list ", Shown(pattern),
                     ": HTTP servers have no listings; give the names of the "
                     "files themselves (FromTensorSlices of names, Dataset::TFRecord of several)"));
  }

 private:
  RemoteContext& context_;
  const std::shared_ptr<const UrlRules> rules_;
};

}  // namespace

std::unique_ptr<Files> MakeHttpFiles(RemoteContext& context,
                                     std::shared_ptr<const UrlRules> rules) {
  return std::make_unique<HttpFiles>(context, std::move(rules));
}

}  // namespace penstock::remote
