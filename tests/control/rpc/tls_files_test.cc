// SPDX-License-Identifier: Apache-2.0
// Certificates that are replaced while a process runs.
#include "control/rpc/tls_files.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/certificates.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() {
    auto opened = TlsFiles::Open(tls_, events_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    files_ = *std::move(opened);
    first_ = files_->Latest();
  }
  int64_t CountOf(const std::string& name) const {
    const std::vector<Event> all = events_->All();
    return std::count_if(all.begin(), all.end(),
                         [&](const Event& event) { return event.name == name; });
  }
  std::string LastReason() const { return events_->All().back().field("reason"); }

  const Authority authority_{"renewed"};
  const TlsConfig tls_ = authority_.Issue("process");
  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  std::shared_ptr<TlsFiles> files_;
  Pem first_;
};

TEST_F(TlsFilesTest, UnchangedFilesGiveTheSameContentWithoutAnEvent) {
  EXPECT_EQ(first_.certificate, ContentOf(tls_.certificate));
  EXPECT_EQ(files_->Latest(), first_);
  EXPECT_TRUE(events_->All().empty());
}

TEST_F(TlsFilesTest, ReplacedFilesAreReadAgain) {
  Authority::Replace(tls_, authority_.Issue("renewed"));
  const Pem second = files_->Latest();
  EXPECT_NE(second.certificate, first_.certificate);
  EXPECT_EQ(second.certificate, ContentOf(tls_.certificate));
  EXPECT_EQ(second.key, ContentOf(tls_.key));
  EXPECT_EQ(files_->Latest(), second);
  EXPECT_EQ(CountOf("certificate_reloaded"), 1);
  EXPECT_EQ(events_->All().back().field("certificate"), tls_.certificate);
}

TEST_F(TlsFilesTest, ACertificateWithoutItsKeyIsNotUsedYet) {
  const TlsConfig renewed = authority_.Issue("renewed");
  std::ofstream(tls_.certificate) << ContentOf(renewed.certificate);
  EXPECT_EQ(files_->Latest(), first_);
  EXPECT_THAT(LastReason(), HasSubstr("is not the key of the certificate"));
  std::ofstream(tls_.key) << ContentOf(renewed.key);
  EXPECT_EQ(files_->Latest().key, ContentOf(renewed.key));
}

TEST_F(TlsFilesTest, BrokenFilesKeepTheLastContentAndAreNamedOnce) {
  std::ofstream(tls_.certificate) << "no certificate";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(files_->Latest(), first_);
  EXPECT_EQ(CountOf("certificate_refused"), 1);
  EXPECT_THAT(LastReason(), HasSubstr(tls_.certificate + "' is not a certificate in PEM"));
  std::remove(tls_.key.c_str());
  EXPECT_EQ(files_->Latest(), first_);
  EXPECT_EQ(CountOf("certificate_refused"), 2);
  EXPECT_THAT(LastReason(), HasSubstr("tls_key: cannot open " + tls_.key));
  std::ofstream(tls_.certificate) << first_.certificate << "-----BEGIN CERTIFICATE-----\nAAAA\n";
  std::ofstream(tls_.key) << first_.key;
  EXPECT_EQ(files_->Latest(), first_);
  EXPECT_EQ(CountOf("certificate_refused"), 3) << "the second certificate is cut off";
  EXPECT_EQ(CountOf("certificate_reloaded"), 0);
}

TEST_F(TlsFilesTest, AKeyThatIsTooWeakForTlsIsNotUsed) {
  const std::string make =
      absl::StrCat("openssl req -x509 -days 2 -subj /CN=weak -nodes -newkey rsa:512 -keyout ",
                   tls_.key, " -out ", tls_.certificate, " 2>/dev/null");
  ASSERT_EQ(std::system(make.c_str()), 0);
  EXPECT_EQ(files_->Latest(), first_);
  EXPECT_THAT(LastReason(), HasSubstr(tls_.certificate + "' is not a certificate that OpenSSL"));
  EXPECT_FALSE(TlsFiles::Open(tls_, events_).ok());
}

// Threads that read the files during replacements never see an older pair after a newer one.
TEST_F(TlsFilesTest, AnOlderPairNeverReplacesANewerOne) {
  constexpr int kPairs = 20;
  std::vector<Pem> pairs = {first_};
  std::vector<TlsConfig> issued;
  for (int i = 0; i < kPairs; ++i) {
    issued.push_back(authority_.Issue(absl::StrCat("pair", i)));
    pairs.push_back({.ca = first_.ca,
                     .certificate = ContentOf(issued.back().certificate),
                     .key = ContentOf(issued.back().key)});
  }
  std::atomic<bool> over = false;
  std::atomic<int> went_back = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (auto last = pairs.begin(); !over;) {
        const auto now = std::find(pairs.begin(), pairs.end(), files_->Latest());
        if (now < last) ++went_back;
        last = now;
      }
    });
  }
  for (const TlsConfig& next : issued) {
    Authority::Replace(tls_, next);
    absl::SleepFor(absl::Milliseconds(2));
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(went_back, 0);
  EXPECT_EQ(files_->Latest(), pairs.back());
}

TEST_F(TlsFilesTest, NoEventContainsAKey) {
  std::ofstream(tls_.certificate) << first_.key;
  files_->Latest();
  std::ofstream(tls_.certificate) << first_.certificate;
  std::ofstream(tls_.key) << authority_.Issue("other").key;
  files_->Latest();
  const std::string secret = first_.key.substr(first_.key.size() / 2, 16);
  for (const Event& event : events_->All()) {
    EXPECT_EQ(ToString(event).find(secret), std::string::npos) << ToString(event);
  }
}

}  // namespace
}  // namespace penstock::control
