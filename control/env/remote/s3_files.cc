// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/s3_files.h"

#include <algorithm>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/remote/guard.h"
#include "control/env/remote/name.h"
#include "control/env/remote/s3_account.h"
#include "control/env/remote/s3_listing.h"
#include "include/status_macros.h"

namespace penstock::remote {
namespace {

class S3Files final : public Files {
 public:
  S3Files(RemoteContext& context, Environment environment, std::shared_ptr<const UrlRules> rules)
      : context_(context),
        account_(context.config, std::move(environment)),
        rules_(std::move(rules)) {}

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                             std::stop_token stop) override {
    RETURN_IF_ERROR(CheckAllowed(name, name));
    ASSIGN_OR_RETURN(const S3Name place, ParseS3Name(name));
    if (place.key.empty() || place.key.back() == '/') {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " does not name an object: s3://bucket/key"));
    }
    GetRequest request =
        Request(absl::StrCat(account_.AddressOf(place.bucket), "/", PercentEncodePath(place.key)));
    absl::StatusOr<std::unique_ptr<File>> file =
        OpenRemote(context_, name, std::move(request), std::move(stop));
    if (!file.ok()) return Explained(file.status());
    return file;
  }

  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                std::stop_token stop) override {
    const std::string literal = pattern.substr(0, pattern.find_first_of("*?["));
    const bool is_name = literal.size() == pattern.size();
    RETURN_IF_ERROR(
        CheckAllowed(pattern, is_name ? pattern : literal.substr(0, literal.rfind('/') + 1)));
    ASSIGN_OR_RETURN(const S3Name place, ParseS3Name(pattern));
    const Listing listing = ListingOf(place.key);
    std::vector<std::string> names;
    std::string token;
    do {
      GetRequest request =
          Request(absl::StrCat(account_.AddressOf(place.bucket), "/?", QueryOf(listing, token)));
      request.name = absl::StrCat("the listing of ", pattern);
      absl::StatusOr<GetReply> reply = context_.client->Start(std::move(request))->Wait(stop);
      if (!reply.ok()) return Explained(reply.status());
      absl::StatusOr<ListedPage> page = ParsePage({reply->body.get(), reply->size});
      if (!page.ok()) {
        return absl::Status(page.status().code(),
                            absl::StrCat("cannot list ", pattern, ": ", page.status().message()));
      }
      for (const std::string& key : page->keys) {
        if (!key.empty() && key.back() != '/' && Matches(place.key, key))
          names.push_back(absl::StrCat("s3://", place.bucket, "/", key));
      }
      token = std::move(page->next_token);
    } while (!token.empty());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  // Judges `part` of the name. The address of the endpoint is not judged, because the operator has
  // chosen it.
  absl::Status CheckAllowed(const std::string& name, const std::string& part) const {
    if (rules_ == nullptr || rules_->Judge(part) != UrlRules::Hosts::kNone) return absl::OkStatus();
    return NotAllowed(name);
  }

  GetRequest Request(std::string url) const {
    GetRequest request;
    request.url = std::move(url);
    request.authorize = [this] { return account_.Authorize(); };
    // A redirect leads to a different region, but the request is signed for this region.
    request.redirects = false;
    return request;
  }

  // Adds a remedy to the error `status` of a refused request.
  absl::Status Explained(const absl::Status& status) const {
    if (absl::IsPermissionDenied(status) && account_.Authorize().provider.empty())
      return Annotate(status, S3Account::Places());
    if (absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status)) {
      return Annotate(status, "the request was for region ", account_.region(),
                      " (set AWS_REGION, or s3_region of [files])");
    }
    return status;
  }

  RemoteContext& context_;
  const S3Account account_;
  const std::shared_ptr<const UrlRules> rules_;
};

}  // namespace

std::unique_ptr<Files> MakeS3Files(RemoteContext& context, Environment environment,
                                   std::shared_ptr<const UrlRules> rules) {
  return std::make_unique<S3Files>(context, std::move(environment), std::move(rules));
}

}  // namespace penstock::remote
