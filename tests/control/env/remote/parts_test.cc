// SPDX-License-Identifier: Apache-2.0
// Parts that need no server: names, headers, answers, accounts.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "control/env/files_settings.h"
#include "control/env/remote/buffers.h"
#include "control/env/remote/content_range.h"
#include "control/env/remote/name.h"
#include "control/env/remote/retry.h"
#include "control/env/remote/s3_account.h"
#include "control/env/remote/s3_listing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::remote {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Name, ASchemeIsTheTextBeforeTheSlashes) {
  EXPECT_EQ(SchemeOf("S3://bucket/key"), "s3");
  EXPECT_EQ(SchemeOf("https://host/file"), "https");
  EXPECT_EQ(SchemeOf("/data/a.tfrecord"), "");
  EXPECT_EQ(SchemeOf("data/http://x"), "");
  EXPECT_EQ(SchemeOf("://x"), "");
}

TEST(Name, ItsPrintedFormHasNeitherPasswordNorQuery) {
  EXPECT_EQ(Shown("https://me:secret@host/a/b@c"), "https://host/a/b@c");
  EXPECT_EQ(Shown("https://host/a?X-Amz-Signature=secret@x"), "https://host/a?…");
  EXPECT_EQ(Shown("http://host"), "http://host");
}

TEST(Name, EncodesAllThatIsReserved) {
  EXPECT_EQ(PercentEncode("a b/c=d+é~"), "a%20b%2Fc%3Dd%2B%C3%A9~");
  EXPECT_EQ(PercentEncodePath("day=1/a b"), "day%3D1/a%20b");
}

TEST(Name, AnS3NameIsBucketAndKey) {
  EXPECT_EQ(ParseS3Name("s3://b/k/l")->bucket, "b");
  EXPECT_EQ(ParseS3Name("s3://b/k/l")->key, "k/l");
  EXPECT_EQ(ParseS3Name("s3://b")->key, "");
  EXPECT_EQ(ParseS3Name("s3:///k").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseS3Name("s3://b*/k").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ContentRange, ParsesOnlyValidRanges) {
  const std::optional<ContentRange> range = ParseContentRange("bytes 5-9/20");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->begin, 5);
  EXPECT_EQ(range->end, 10);
  EXPECT_EQ(range->size, 20);
  for (const char* bad :
       {"", "bytes */20", "bytes 5-9/*", "bytes 9-5/20", "bytes 5-20/20", "bytes -5-9/20",
        "items 5-9/20", "bytes 5-9/20 ", "bytes 5-9", "bytes 99999999999999999999-9/20"}) {
    EXPECT_FALSE(ParseContentRange(bad).has_value()) << bad;
  }
}

TEST(Buffers, KeepsSomeOfTheSizeOfARange) {
  Buffers buffers(100, 1);
  Buffers::Buffer first = buffers.Get(100);
  Buffers::Buffer second = buffers.Get(60);
  const char* const where = first.get();
  first = nullptr;
  second = nullptr;  // over the limit
  EXPECT_EQ(buffers.Get(80).get(), where);
  // Buffers of these sizes are neither kept nor taken from the kept ones.
  EXPECT_NE(buffers.Get(10).get(), where);
  EXPECT_NE(buffers.Get(101).get(), where);
}

TEST(Retry, OverloadMayPassAndRefusalsDoNot) {
  for (const int code : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(MayPass({.code = code}));
  for (const int code : {400, 401, 403, 404, 416, 501}) EXPECT_FALSE(MayPass({.code = code}));
  EXPECT_TRUE(MayPass({.code = 400, .body = "<Error><Code>RequestTimeout</Code></Error>"}));
}

TEST(Retry, ErrorsHaveTheServersWords) {
  const absl::Status of_s3 =
      ErrorOf("s3://b/k", {.code = 403,
                           .reason = "Forbidden",
                           .content_type = "application/xml",
                           .body = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>"
                                   "<Message>Not yours</Message></Error>"});
  EXPECT_EQ(of_s3, absl::PermissionDeniedError("cannot read s3://b/k: the server answered 403 "
                                               "Forbidden: AccessDenied: Not yours"));
  EXPECT_EQ(
      ErrorOf("http://h/f", {.code = 404, .content_type = "text/plain", .body = "no such\nfile\n"}),
      absl::NotFoundError("cannot read http://h/f: the server answered 404: no such file"));
  // A page for browsers is no error message.
  EXPECT_EQ(ErrorOf("http://h/f", {.code = 410, .content_type = "text/html", .body = "<html>"}),
            absl::NotFoundError("cannot read http://h/f: the server answered 410"));
}

TEST(Retry, WaitsGrowToABoundAndAreDrawn) {
  Backoff backoff;
  absl::Duration last;
  for (int i = 0; i < 30; ++i) {
    const absl::Duration most =
        std::min(Backoff::kFirstWait * (1 << std::min(i, 10)), Backoff::kLongestWait);
    last = backoff.Next();
    EXPECT_GE(last, most / 2);
    EXPECT_LE(last, most);
  }
  EXPECT_NE(backoff.Next(), last);
  backoff.Reset();
  EXPECT_LE(backoff.Next(), Backoff::kFirstWait);
  EXPECT_EQ(backoff.Next(absl::Seconds(7)), absl::Seconds(7));
  EXPECT_EQ(backoff.Next(absl::Hours(1)), Backoff::kLongestWait);
}

// --- S3 ----------------------------------------------------------------------------

class S3AccountTest : public testing::Test {
 protected:
  S3AccountTest() {
    std::string pattern = testing::TempDir() + "penstock_s3_XXXXXX";
    home_ = mkdtemp(pattern.data());
    std::filesystem::create_directory(home_ + "/.aws");
    environment_["HOME"] = home_;
  }
  ~S3AccountTest() override { std::filesystem::remove_all(home_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(home_ + "/.aws/" + name) << text;
  }
  S3Account Account(const FilesConfig& config = {}) {
    return S3Account(config, [this](const std::string& name) -> std::optional<std::string> {
      auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    });
  }

  std::string home_;
  std::map<std::string, std::string> environment_;
};

TEST_F(S3AccountTest, WithoutCredentialsItIsNobody) {
  EXPECT_EQ(Account().Authorize().provider, "");
  EXPECT_EQ(Account().region(), "us-east-1");
}

TEST_F(S3AccountTest, TheEnvironmentComesBeforeTheFiles) {
  Write("credentials", "[default]\naws_access_key_id = FILE\naws_secret_access_key = f\n");
  environment_["AWS_ACCESS_KEY_ID"] = "KEY";
  environment_["AWS_SECRET_ACCESS_KEY"] = "secret";
  environment_["AWS_SESSION_TOKEN"] = "token";
  environment_["AWS_DEFAULT_REGION"] = "eu-west-3";
  const Authorization authorization = Account().Authorize();
  EXPECT_EQ(authorization.provider, "aws:amz:eu-west-3:s3");
  EXPECT_EQ(authorization.user, "KEY:secret");
  EXPECT_EQ(authorization.token, "token");
}

TEST_F(S3AccountTest, AProfileComesFromBothFiles) {
  Write(
      "credentials",
      "# keys\n[default]\naws_access_key_id=OTHER\naws_secret_access_key=other\n"
      "[lab]\naws_access_key_id = LAB\n aws_secret_access_key = a=b/c+d\naws_session_token = t\n");
  Write("config", "[profile lab]\nregion = ap-south-1\n");
  environment_["AWS_PROFILE"] = "lab";
  const S3Account account = Account();
  EXPECT_EQ(account.region(), "ap-south-1");
  EXPECT_EQ(account.Authorize().user, "LAB:a=b/c+d");
  EXPECT_EQ(account.Authorize().token, "t");
  // The credentials are renewed in the file while the program runs.
  Write("credentials", "[lab]\naws_access_key_id=NEW\naws_secret_access_key=n\n");
  EXPECT_EQ(account.Authorize().user, "NEW:n");
}

TEST_F(S3AccountTest, AddressesFollowTheStyle) {
  EXPECT_EQ(Account().AddressOf("b"), "https://b.s3.us-east-1.amazonaws.com");
  EXPECT_EQ(Account().AddressOf("b.c"), "https://s3.us-east-1.amazonaws.com/b.c");
  EXPECT_EQ(Account({.s3_addressing_style = "path"}).AddressOf("b"),
            "https://s3.us-east-1.amazonaws.com/b");
  EXPECT_EQ(Account({.s3_endpoint = "http://minio:9000/"}).AddressOf("b"), "http://minio:9000/b");
  EXPECT_EQ(Account({.s3_endpoint = "http://minio:9000", .s3_addressing_style = "virtual"})
                .AddressOf("b"),
            "http://b.minio:9000");
  environment_["AWS_ENDPOINT_URL"] = "http://other";
  EXPECT_EQ(Account().AddressOf("b"), "http://other/b");
}

TEST(S3Listing, ListsNoMoreThanThePatternNeeds) {
  EXPECT_EQ(ListingOf("a/b-*.x").prefix, "a/b-");
  EXPECT_TRUE(ListingOf("a/b-*.x").one_level);
  EXPECT_FALSE(ListingOf("a/*/x").one_level);
  EXPECT_EQ(ListingOf("a/b").prefix, "a/b");
  EXPECT_EQ(QueryOf({"a/b", true}, ""), "delimiter=%2F&encoding-type=url&list-type=2&prefix=a%2Fb");
  EXPECT_EQ(QueryOf({"", false}, "t/+="),
            "continuation-token=t%2F%2B%3D&encoding-type=url&list-type=2&prefix=");
}

TEST(S3Listing, ReadsAPage) {
  const absl::StatusOr<ListedPage> page = ParsePage(
      "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
      "<IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>"
      "<Contents><Key>a%2Bb+c</Key><Size>1</Size></Contents>"
      "<CommonPrefixes><Prefix>deep/</Prefix></CommonPrefixes>"
      "<Contents><Key>d&amp;e</Key></Contents>"
      "<NextContinuationToken>next==</NextContinuationToken></ListBucketResult>");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->keys, ElementsAre("a+b c", "d&e"));
  EXPECT_EQ(page->next_token, "next==");
}

TEST(S3Listing, InvalidPagesAreRefused) {
  for (const char* bad : {"", "ok", "<html></html>", "<ListBucketResult>",
                          "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"}) {
    EXPECT_EQ(ParsePage(bad).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
}

TEST(S3Listing, PatternsMatchLikeThoseOfFiles) {
  EXPECT_TRUE(Matches("a/*.x", "a/b.x"));
  EXPECT_FALSE(Matches("a/*.x", "a/b/c.x"));
  EXPECT_FALSE(Matches("a/*", "a/.hidden"));
  EXPECT_TRUE(Matches("a/[b-c]?", "a/b1"));
}

// --- Settings -------------------------------------------------------------------------

TEST(FilesSettings, ComeFromTheEnvironment) {
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "PENSTOCK_FILES_S3_ENDPOINT") return "http://minio:9000";
    if (name == "PENSTOCK_FILES_RANGE_BYTES") return "65536";
    return std::nullopt;
  };
  const absl::StatusOr<FilesConfig> config = ReadFilesConfig("", environment);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->s3_endpoint, "http://minio:9000");
  EXPECT_EQ(config->range_bytes, 65536);
}

TEST(FilesSettings, InvalidValuesAreNamed) {
  const auto complaint = [](const FilesConfig& config) {
    return std::string(Check(config).message());
  };
  EXPECT_THAT(complaint({.s3_endpoint = "minio:9000"}), HasSubstr("s3_endpoint is minio:9000"));
  EXPECT_THAT(complaint({.s3_addressing_style = "dns"}), HasSubstr("auto, path or virtual"));
  EXPECT_THAT(complaint({.range_bytes = 1}), HasSubstr("range_bytes"));
  EXPECT_THAT(complaint({.ranges_ahead = 0}), HasSubstr("ranges_ahead"));
  EXPECT_THAT(complaint({}), IsEmpty());
}

}  // namespace
}  // namespace penstock::remote
