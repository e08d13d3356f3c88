// SPDX-License-Identifier: Apache-2.0
// Files in S3, from a server that gives S3's answers. tests/remote checks signatures against
// another implementation.
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "control/env/scheme_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/env/remote/scripted_server.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Page(const std::vector<std::string>& keys, const std::string& next = "") {
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>";
  for (const std::string& key : keys)
    absl::StrAppend(&xml, "<Contents><Key>", key, "</Key></Contents>");
  if (!next.empty()) {
    absl::StrAppend(&xml, "<IsTruncated>true</IsTruncated><NextContinuationToken>", next,
                    "</NextContinuationToken>");
  }
  return xml + "</ListBucketResult>";
}

HttpAnswer Error(int code, const std::string& name, const std::string& message) {
  return {.code = code,
          .reason = "No",
          .headers = {"Content-Type: application/xml"},
          .body = absl::StrCat("<?xml version=\"1.0\"?><Error><Code>", name, "</Code><Message>",
                               message, "</Message></Error>")};
}

std::unique_ptr<Files> Make(const ScriptedServer& server, bool credentials = true) {
  const auto environment = [=](const std::string& name) -> std::optional<std::string> {
    if (name == "HOME") return "/nonexistent";
    if (!credentials) return std::nullopt;
    if (name == "AWS_ACCESS_KEY_ID") return "AKID";
    if (name == "AWS_SECRET_ACCESS_KEY") return "secret";
    if (name == "AWS_SESSION_TOKEN") return "session";
    return std::nullopt;
  };
  return MakeSchemeFiles({.s3_endpoint = server.Url(""), .s3_region = "eu-west-1"}, environment)
      .value();
}

TEST(S3Files, ReadsAnObjectWithASignedRequest) {
  ScriptedServer server(
      [](const HttpQuestion& question) { return Serve("contents", question, {"ETag: \"abc\""}); });
  const auto file = Make(server)->Open("s3://bucket/day=1/a b+c");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->name(), "s3://bucket/day=1/a b+c");
  EXPECT_EQ((*file)->size(), 8);
  const HttpQuestion asked = server.asked().at(0);
  EXPECT_EQ(asked.target, "/bucket/day%3D1/a%20b%2Bc");
  EXPECT_EQ(asked.header("x-amz-security-token"), "session");
  EXPECT_THAT(asked.header("authorization"),
              AllOf(HasSubstr("AWS4-HMAC-SHA256 Credential=AKID/"),
                    HasSubstr("/eu-west-1/s3/aws4_request"), HasSubstr("x-amz-security-token")));
}

TEST(S3Files, WithoutCredentialsAsksAsNobody) {
  ScriptedServer server([](const HttpQuestion& question) {
    if (question.target == "/public/a") return Serve("contents", question);
    return Error(403, "AccessDenied", "Access Denied");
  });
  const auto files = Make(server, false);
  EXPECT_TRUE(files->Open("s3://public/a").ok());
  EXPECT_EQ(server.asked().at(0).header("authorization"), "");
  const absl::Status refused = files->Open("s3://private/a").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("AccessDenied: Access Denied"), HasSubstr("AWS_ACCESS_KEY_ID")));
}

TEST(S3Files, DotsInAKeyStay) {
  ScriptedServer server([](const HttpQuestion& question) { return Serve("contents", question); });
  EXPECT_TRUE(Make(server, false)->Open("s3://public/a/./b/../c").ok());
  EXPECT_EQ(server.asked().at(0).target, "/public/a/./b/../c");
}

TEST(S3Files, ErrorsContainS3sMessage) {
  ScriptedServer server([](const HttpQuestion& question) {
    if (question.target == "/elsewhere/a")
      return Error(301, "PermanentRedirect", "use the endpoint of eu-north-1");
    return Error(404, "NoSuchKey", "The specified key does not exist.");
  });
  const auto files = Make(server);
  const absl::Status none = files->Open("s3://bucket/a").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()), HasSubstr("s3://bucket/a"));
  EXPECT_THAT(std::string(none.message()), HasSubstr("NoSuchKey: The specified key"));
  const absl::Status elsewhere = files->Open("s3://elsewhere/a").status();
  EXPECT_EQ(elsewhere.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(elsewhere.message()),
              AllOf(HasSubstr("eu-north-1"), HasSubstr("the request was for region eu-west-1")));
  EXPECT_EQ(files->Open("s3://bucket/folder/").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(S3Files, GlobListsPageByPageAndSorts) {
  ScriptedServer server([](const HttpQuestion& question) {
    const bool second = question.target.find("continuation-token=t%2F1") != std::string::npos;
    if (question.number == 1) return Error(503, "SlowDown", "Please reduce your request rate.");
    return HttpAnswer{.body = second ? Page({"p/a10.x", "p/a1.x", "p/"})
                                     : Page({"p/a2.x", "p/b.x", "p/a3.y"}, "t/1")};
  });
  EXPECT_THAT(Make(server)->Glob("s3://bucket/p/a*.x").value(),
              ElementsAre("s3://bucket/p/a1.x", "s3://bucket/p/a10.x", "s3://bucket/p/a2.x"));
  ASSERT_EQ(server.asked().size(), 3u);
  EXPECT_EQ(server.asked()[0].target,
            "/bucket/?delimiter=%2F&encoding-type=url&list-type=2&prefix=p%2Fa");
}

TEST(S3Files, GlobOfNothingIsEmptyAndOfNoBucketAnError) {
  ScriptedServer server([](const HttpQuestion& question) {
    if (question.target.rfind("/none/", 0) == 0) return Error(404, "NoSuchBucket", "none");
    return HttpAnswer{.body = question.target.rfind("/odd/", 0) == 0 ? "<html/>" : Page({})};
  });
  const auto files = Make(server);
  EXPECT_THAT(files->Glob("s3://bucket/*").value(), IsEmpty());
  EXPECT_EQ(files->Glob("s3://none/*").status().code(), absl::StatusCode::kNotFound);
  const absl::Status odd = files->Glob("s3://odd/*").status();
  EXPECT_EQ(odd.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(odd.message()), HasSubstr("s3://odd/*"));
}

}  // namespace
}  // namespace penstock
