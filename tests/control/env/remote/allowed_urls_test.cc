// SPDX-License-Identifier: Apache-2.0
// Which URLs and addresses a list of allowed files admits, and the ways around it.
#include <stdlib.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/env/allowed_files.h"
#include "control/env/remote/public_address.h"
#include "control/env/remote/url_rules.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/env/remote/scripted_server.h"

namespace penstock {
namespace {

using remote::IsPublicAddress;
using remote::UrlRules;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Hosts = UrlRules::Hosts;

Hosts Judge(const std::vector<std::string>& prefixes, const std::string& name) {
  return UrlRules::Parse(prefixes).value().Judge(name);
}

TEST(UrlRules, AdmitNamesThatBeginWithAPrefix) {
  const std::vector<std::string> data = {"https://host/data/"};
  for (const char* name :
       {"https://host/data/a", "HTTPS://HOST:443/data/a", "https://me:pass@host/data/a?sign=1",
        "https://host/%64ata/a", "https://host/data/%61", "https://host/data/..a",
        "https://host/data/a;v=1/b;"}) {
    EXPECT_EQ(Judge(data, name), Hosts::kAny) << name;
  }
  for (const char* name :
       {"http://host/data/a", "https://host:444/data/a", "https://host/database",
        "https://host/data", "https://host/", "https://host.evil/data/a",
        "https://host@evil/data/a", "https://evil/https://host/data/a",
        "https://evil\\@host/data/a", "https://evil#@host/data/a", "https://evil?@host/data/a",
        "//host/data/a", "s3://host/data/a", "https:///data/a", "https://host /data/a"}) {
    EXPECT_EQ(Judge(data, name), Hosts::kNone) << name;
  }
}

TEST(UrlRules, RefusePathsThatServersMightReadInTwoWays) {
  for (const char* name :
       {"https://host/data/../secret", "https://host/data/./a", "https://host/data/%2e%2e/secret",
        "https://host/data/.%2E/secret", "https://host/data/%2e%2e%2fsecret",
        "https://host/data%2fa", "https://host/data/..%5csecret", "https://host/data/..\\secret",
        "https://host/data/%252e%252e/secret", "https://host/data/%252fsecret",
        "https://host/data/%00", "https://host/data/..;/secret", "https://host/data/..;v=1/secret",
        "https://host/data/%2e%2e;/secret", "https://host/data/..%3b/secret",
        "https://host/data/.;/a", "https://host/data/..%253b/secret"}) {
    EXPECT_EQ(Judge({"https://host/data/"}, name), Hosts::kNone) << name;
    EXPECT_EQ(Judge({"https://"}, name), Hosts::kNone) << name;
  }
}

TEST(UrlRules, APrefixEndsAtAWholeSegment) {
  EXPECT_EQ(Judge({"https://host/data"}, "https://host/data"), Hosts::kAny);
  EXPECT_EQ(Judge({"https://host/data"}, "https://host/data/a"), Hosts::kAny);
  EXPECT_EQ(Judge({"https://host/data"}, "https://host/database"), Hosts::kNone);
  EXPECT_EQ(Judge({"https://host"}, "https://host/database"), Hosts::kAny);
}

TEST(UrlRules, ASchemeAloneAdmitsPublicHosts) {
  EXPECT_EQ(Judge({"https://"}, "https://host/a"), Hosts::kPublic);
  EXPECT_EQ(Judge({"https://"}, "http://host/a"), Hosts::kNone);
  EXPECT_EQ(Judge({"https://", "https://host/a"}, "https://host/a"), Hosts::kAny);
}

TEST(UrlRules, CompareBucketsAndKeysAsWritten) {
  const std::vector<std::string> train = {"s3://bucket/train/"};
  EXPECT_EQ(Judge(train, "s3://bucket/train/a"), Hosts::kAny);
  EXPECT_EQ(Judge(train, "S3://bucket/train/a%2fb"), Hosts::kAny);
  for (const char* name : {"s3://bucket/training", "s3://bucket/%74rain/a", "s3://other/train/a",
                           "s3://bucket/train/../secret", "s3://bucket", "s3://bucket:80/train/a",
                           "s3://169.254.169.254#/train/a", "s3://x@bucket/train/a"}) {
    EXPECT_EQ(Judge(train, name), Hosts::kNone) << name;
  }
  EXPECT_NE(Judge({"s3://"}, "s3://any/key"), Hosts::kNone);
  EXPECT_EQ(Judge({"s3://"}, "s3://169.254.169.254?/key"), Hosts::kNone);
}

TEST(PublicAddress, IsOneOfTheInternet) {
  for (const char* address :
       {"93.184.216.34", "8.8.8.8", "172.32.0.1", "100.128.0.1", "223.255.255.1", "2606:4700::1111",
        "::ffff:8.8.8.8", "64:ff9b::808:808"}) {
    EXPECT_TRUE(IsPublicAddress(address)) << address;
  }
  for (const char* address : {"127.0.0.1",
                              "127.8.8.8",
                              "0.0.0.0",
                              "10.1.2.3",
                              "172.16.0.1",
                              "172.31.255.255",
                              "192.168.1.1",
                              "169.254.169.254",
                              "100.64.0.1",
                              "100.100.100.200",
                              "168.63.129.16",
                              "192.0.0.192",
                              "224.0.0.1",
                              "255.255.255.255",
                              "::",
                              "::1",
                              "fe80::1",
                              "fe80::1%lo",
                              "fc00::1",
                              "fd00:ec2::254",
                              "ff02::1",
                              "::ffff:127.0.0.1",
                              "::ffff:169.254.169.254",
                              "::ffff:a00:1",
                              "64:ff9b::7f00:1",
                              "2002:7f00:1::",
                              "2001::1",
                              "::127.0.0.1",
                              "host",
                              ""}) {
    EXPECT_FALSE(IsPublicAddress(address)) << address;
  }
}

std::string Read(Files& files, const std::string& url) {
  const absl::StatusOr<std::unique_ptr<File>> file = files.Open(url);
  if (!file.ok()) return file.status().ToString();
  std::string bytes(static_cast<size_t>((*file)->size()), '\0');
  EXPECT_TRUE((*file)->ReadAt(0, absl::MakeSpan(bytes)).ok());
  return bytes;
}

HttpAnswer Redirect(const std::string& to) {
  return {.code = 302, .reason = "Found", .headers = {absl::StrCat("Location: ", to)}};
}

TEST(AllowedUrls, AreReadEvenOnLoopbackIfTheHostIsNamed) {
  ScriptedServer server([&](const HttpQuestion& question) { return Serve("bytes", question); });
  const auto files = MakeAllowedFiles({server.Url("/data/")}).value();
  EXPECT_EQ(Read(*files, server.Url("/data/a")), "bytes");
  EXPECT_EQ(Read(*files, server.Url("/secret")),
            absl::StrCat("PERMISSION_DENIED: ", server.Url("/secret"),
                         " is not allowed on this worker: add its folder to --files-allow "
                         "(files_allow)"));
  EXPECT_EQ(server.asked().size(), 1u);
}

TEST(AllowedUrls, LeadToNoPrivateAddressThatIsNotNamed) {
  ScriptedServer server([&](const HttpQuestion& question) { return Serve("bytes", question); });
  const auto files = MakeAllowedFiles({"http://"}).value();
  const std::string port = server.Url("").substr(server.Url("").rfind(':'));
  for (const char* host : {"127.0.0.1", "localhost", "127.1", "0x7f000001", "[::ffff:127.0.0.1]"}) {
    const std::string url = absl::StrCat("http://", host, port, "/a");
    EXPECT_THAT(Read(*files, url),
                AllOf(HasSubstr("PERMISSION_DENIED: "), HasSubstr("private network")))
        << url;
  }
  EXPECT_EQ(server.connections(), 0) << "the address is judged before the connection";
}

TEST(AllowedUrls, AConnectionOfOthersIsNotUsedAroundTheList) {
  ScriptedServer server([&](const HttpQuestion& question) { return Serve("bytes", question); });
  const auto named = MakeAllowedFiles({server.Url("/")}).value();
  const auto any_public = MakeAllowedFiles({"http://"}).value();
  EXPECT_EQ(Read(*named, server.Url("/a")), "bytes");
  EXPECT_THAT(Read(*any_public, server.Url("/a")), HasSubstr("private network"));
  EXPECT_EQ(server.asked().size(), 1u);
}

TEST(AllowedUrls, RedirectsAreJudgedAsWell) {
  ScriptedServer other([&](const HttpQuestion& question) { return Serve("other", question); });
  ScriptedServer server([&](const HttpQuestion& question) {
    if (question.target == "/data/inside") return Redirect("/data/a");
    if (question.target == "/data/aside") return Redirect("/secret");
    if (question.target == "/data/up") return Redirect("/data/%2e%2e/secret");
    if (question.target == "/data/metadata") return Redirect("http://169.254.169.254/latest/");
    if (question.target == "/data/other") return Redirect(other.Url("/a"));
    return Serve("bytes", question);
  });
  const auto files = MakeAllowedFiles({server.Url("/data/"), "http://"}).value();
  EXPECT_EQ(Read(*files, server.Url("/data/inside")), "bytes");
  const auto refused = [&](const std::string& target, const std::string& why) {
    EXPECT_THAT(
        Read(*files, server.Url(target)),
        AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr(server.Url(target)), HasSubstr(why)));
  };
  refused("/data/up", "leads to");
  refused("/data/metadata", "private network");
  refused("/data/other", "private network");
  EXPECT_EQ(other.connections(), 0);
  const auto strict = MakeAllowedFiles({server.Url("/data/")}).value();
  EXPECT_THAT(Read(*strict, server.Url("/data/aside")),
              AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr(server.Url("/secret"))));
  EXPECT_THAT(Read(*strict, server.Url("/data/other")), HasSubstr("PERMISSION_DENIED"));
  for (const HttpQuestion& question : server.asked()) EXPECT_NE(question.target, "/secret");
}

// Sets the proxy of this process.
class AllowedUrlsWithProxy : public ::testing::Test {
 protected:
  ~AllowedUrlsWithProxy() override {
    unsetenv("http_proxy");
    if (before_.has_value()) setenv("no_proxy", before_->c_str(), 1);
  }
  void SetProxy(const std::string& proxy) {
    if (const char* before = getenv("no_proxy")) before_ = before;
    unsetenv("no_proxy");
    setenv("http_proxy", proxy.c_str(), 1);
  }

 private:
  std::optional<std::string> before_;
};

TEST_F(AllowedUrlsWithProxy, ServesNamedHosts) {
  ScriptedServer proxy([&](const HttpQuestion& question) { return Serve("bytes", question); });
  SetProxy(proxy.Url(""));
  const auto files = MakeAllowedFiles({"http://data.invalid/"}).value();
  EXPECT_EQ(Read(*files, "http://data.invalid/a"), "bytes");
  EXPECT_THAT(proxy.asked().front().target, HasSubstr("data.invalid"));
}

TEST_F(AllowedUrlsWithProxy, LeadsToNoHostThatMustBePublic) {
  ScriptedServer server([&](const HttpQuestion& question) { return Serve("bytes", question); });
  SetProxy("http://93.184.216.34:9");  // a public address, which would hide the server's
  const auto files = MakeAllowedFiles({"http://"}).value();
  EXPECT_THAT(Read(*files, server.Url("/a")),
              AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr("private network")));
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(AllowedUrlsWithProxy, IsNotRedirectedToHostsThatNoEntryNames) {
  ScriptedServer proxy([&](const HttpQuestion&) { return Redirect("http://10.0.0.1/a"); });
  SetProxy(proxy.Url(""));
  const auto files = MakeAllowedFiles({"http://data.invalid/", "http://"}).value();
  EXPECT_THAT(Read(*files, "http://data.invalid/a"),
              AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr("a proxy hides")));
  EXPECT_EQ(proxy.asked().size(), 1u);
}

TEST(AllowedUrls, S3IsRefusedBeforeARequest) {
  const auto files = MakeAllowedFiles({"s3://bucket/train/"}).value();
  for (const char* name : {"s3://bucket/secret", "s3://other/train/a", "s3://bucket/train/../s"}) {
    EXPECT_EQ(files->Open(name).status().code(), absl::StatusCode::kPermissionDenied) << name;
  }
  for (const char* pattern : {"s3://bucket/*", "s3://bucket/tr*/a", "s3://*/train/a"}) {
    EXPECT_EQ(files->Glob(pattern).status().code(), absl::StatusCode::kPermissionDenied) << pattern;
  }
}

}  // namespace
}  // namespace penstock
