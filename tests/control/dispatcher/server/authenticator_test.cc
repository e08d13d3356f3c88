// SPDX-License-Identifier: Apache-2.0
// Who a process is, by the dispatcher's auth_file.
#include "control/dispatcher/server/authenticator.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/dispatcher/server/auth_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kSha256OfAbc[] =
    "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string Section(const std::string& name, const std::string& role, const std::string& token) {
  return absl::StrCat("[", name, "]\nrole = \"", role, "\"\ntokens = [\"", TokenDigest(token),
                      "\"]\n");
}

TEST(AuthFile, TokensAreNamedByTheirSha256) {
  EXPECT_EQ(TokenDigest("abc"), kSha256OfAbc);
}

TEST(AuthFile, FindsPrincipals) {
  const auto file = AuthFile::Parse(
      absl::StrCat(Section("team", "trainer", "abc"), "namespaces = [\"vision\", \"speech\"]\n",
                   "[workers]\nrole = \"worker\"\ncertificates = [\"node7\", \"node8\"]\n"),
      "auth.toml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 2u);
  const Principal team = {
      .name = "team", .role = Role::kTrainer, .namespaces = {"vision", "speech"}};
  ASSERT_NE(file->FindByToken("abc"), nullptr);
  EXPECT_EQ(*file->FindByToken("abc"), team);
  EXPECT_EQ(file->FindByToken("abd"), nullptr);
  EXPECT_EQ(file->FindByToken(""), nullptr);
  EXPECT_EQ(file->FindByToken(kSha256OfAbc), nullptr);  // the digest is no token
  ASSERT_NE(file->FindByCertificate("node8"), nullptr);
  EXPECT_EQ(file->FindByCertificate("node8")->name, "workers");
  EXPECT_EQ(file->FindByCertificate("node9"), nullptr);
}

TEST(AuthFile, ErrorsNameTheLineAndTheWayOut) {
  const std::string token = absl::StrCat("tokens = [\"", kSha256OfAbc, "\"]\n");
  const std::vector<std::array<std::string, 2>> wrong = {
      {"", "a.toml: there is no principal"},
      {"role = \"trainer\"\n", "a.toml:1: 'role' is not in a section"},
      {"[a]\nrole = \"trainer\"\ntokens = [\n", "a.toml:"},
      {"[a]\nrole = \"admin\"\n", "a.toml:2: role must be \"trainer\", \"worker\" or \"operator\""},
      {"[a]\nrole = 3\n", "a.toml:2: role must be"},
      {absl::StrCat("[a]\n", token), "a.toml:1: role is missing"},
      {"[a]\nrole = \"worker\"\n", "a.toml:1: there are neither tokens nor certificates"},
      {"[a]\nrole = \"worker\"\ntokens = []\n", "a.toml:3: tokens must be a list of one or more"},
      {"[a]\nrole = \"worker\"\ntokens = \"x\"\n", "a.toml:3: tokens must be a list"},
      {"[a]\nrole = \"worker\"\ntokens = [\"secret\"]\n", "a.toml:1: a token is given as"},
      {"[a]\nrole = \"worker\"\nsecret = \"x\"\n", "a.toml:3: unknown key 'secret'; known: cert"},
      {absl::StrCat("[a]\nrole = \"worker\"\nnamespaces = [\"x\"]\n", token),
       "a.toml:1: a worker serves jobs of all namespaces"},
      {absl::StrCat("[a]\nrole = \"worker\"\n", token, "[b]\nrole = \"trainer\"\n", token),
       "a.toml:4: the token sha256:ba7816bf… also belongs to a"},
      {"[a]\nrole = \"worker\"\ncertificates = [\"x\"]\n[b]\nrole = \"worker\"\n"
       "certificates = [\"x\"]\n",
       "a.toml:4: the certificate x also belongs to a"},
      {absl::StrCat("[\"a\\nb\"]\nrole = \"worker\"\n", token),
       "a.toml:1: the name of a principal"},
  };
  for (const auto& [text, says] : wrong) {
    const absl::Status status = AuthFile::Parse(text, "a.toml").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), StartsWith(says)) << text;
  }
}

class AuthenticatorTest : public testing::Test {
 protected:
  ~AuthenticatorTest() override { std::remove(path_.c_str()); }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  void Open() { authenticator_ = Authenticator::Open(path_, events_, now_).value(); }
  std::string NameOf(const PeerCredentials& peer) {
    const absl::StatusOr<Caller> caller = authenticator_->Identify(peer);
    return caller.ok() ? (*caller)->name : std::string(caller.status().message());
  }
  void Pass() { passed_ = passed_.load() + absl::ToInt64Seconds(kAuthFileInterval); }
  static PeerCredentials Token(const std::string& token) {
    return {.token = token, .certificate_names = {}, .address = "ipv4:1.2.3.4:5"};
  }
  static PeerCredentials Certificate(std::vector<std::string> names) {
    return {.token = "", .certificate_names = std::move(names), .address = ""};
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/auth-", getpid(), ".toml");
  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  std::atomic<int64_t> passed_ = 0;  // seconds
  const std::function<absl::Time()> now_ = [this] {
    return absl::UnixEpoch() + absl::Seconds(passed_.load());
  };
  std::unique_ptr<Authenticator> authenticator_;
};

TEST_F(AuthenticatorTest, WithoutAFileEverybodyIsNobody) {
  const auto authenticator = Authenticator::Open("", events_, now_);
  ASSERT_TRUE(authenticator.ok());
  const absl::StatusOr<Caller> caller = (*authenticator)->Identify(Token("any"));
  ASSERT_TRUE(caller.ok());
  EXPECT_FALSE(caller->has_value());
}

TEST_F(AuthenticatorTest, KnowsTokensAndCertificates) {
  Write(absl::StrCat(Section("team", "trainer", "t1"),
                     "[w]\nrole = \"worker\"\ncertificates = [\"node7\"]\n"));
  Open();
  EXPECT_EQ(NameOf(Token("t1")), "team");
  EXPECT_EQ(NameOf(Certificate({"localhost", "node7"})), "w");
  PeerCredentials both = Certificate({"node7"});
  both.token = "t1";
  EXPECT_EQ(NameOf(both), "team");
  both.token = "wrong";  // the certificate does not excuse it
  EXPECT_THAT(NameOf(both), HasSubstr("does not contain the token"));
  EXPECT_THAT(NameOf(Certificate({"x", "y"})),
              HasSubstr("none of the names of the certificate: x"));
  EXPECT_THAT(NameOf({}), HasSubstr("PENSTOCK_TOKEN_FILE"));
  EXPECT_TRUE(absl::IsUnauthenticated(authenticator_->Identify({}).status()));
}

TEST_F(AuthenticatorTest, ACertificateWithTheNamesOfTwoPrincipalsIsRefused) {
  Write(
      "[a]\nrole = \"worker\"\ncertificates = [\"x\"]\n"
      "[b]\nrole = \"operator\"\ncertificates = [\"y\"]\n");
  Open();
  EXPECT_THAT(NameOf(Certificate({"x", "y"})), HasSubstr("belong to two principals, a and b"));
}

TEST_F(AuthenticatorTest, RefusalsAreEventsAtMostOnceASecond) {
  Write(Section("team", "trainer", "t1"));
  Open();
  for (int i = 0; i < 100; ++i) NameOf(Token("guess"));
  int refused = 0;
  for (const Event& event : events_->All()) refused += event.name == "unauthenticated" ? 1 : 0;
  EXPECT_EQ(refused, 1);
  const Event event = events_->WaitFor("unauthenticated", absl::ZeroDuration());
  EXPECT_EQ(event.field("address"), "ipv4:1.2.3.4:5");
  EXPECT_THAT(ToString(event), testing::Not(HasSubstr("guess")));
}

TEST_F(AuthenticatorTest, TheFileIsReadAgainAndABrokenOneChangesNothing) {
  Write(Section("team", "trainer", "t1"));
  Open();
  const uint64_t first = authenticator_->Revision();
  Write(Section("team", "trainer", "t2"));
  EXPECT_EQ(authenticator_->Revision(), first);
  Pass();
  const uint64_t second = authenticator_->Revision();
  EXPECT_GT(second, first);
  EXPECT_EQ(NameOf(Token("t2")), "team");
  EXPECT_THAT(NameOf(Token("t1")), HasSubstr("does not contain the token"));

  Write("[team]\nrole = \"trainer\"\ntokens = 5\n");
  Pass();
  EXPECT_EQ(authenticator_->Revision(), second);
  EXPECT_EQ(NameOf(Token("t2")), "team");
  EXPECT_THAT(events_->WaitFor("auth_file_refused", absl::ZeroDuration()).field("why"),
              HasSubstr(absl::StrCat(path_, ":3: tokens must be a list")));
  std::remove(path_.c_str());
  Pass();
  EXPECT_EQ(NameOf(Token("t2")), "team");
  Write(Section("other", "operator", "t2"));
  Pass();
  EXPECT_EQ(NameOf(Token("t2")), "other");
}

// Stops the thread that writes the second event, until the test says otherwise.
class SlowEvents final : public EventLog {
 public:
  void Write(Event event) override {
    if (event.name != "auth_file_read" || ++reads_ != 2) return;
    reached.set_value();
    go_on.get_future().wait();
  }
  std::promise<void> reached, go_on;

 private:
  std::atomic<int> reads_ = 0;
};

TEST_F(AuthenticatorTest, ASlowThreadPutsNoOlderPrincipalsBack) {
  const auto events = std::make_shared<SlowEvents>();
  Write(Section("team", "trainer", "t1"));
  authenticator_ = Authenticator::Open(path_, events, now_).value();
  Write(Section("team", "trainer", "t2"));
  Pass();
  std::thread slow([&] { NameOf(Token("t2")); });
  events->reached.get_future().wait();
  Write(Section("team", "trainer", "t3"));
  Pass();
  EXPECT_EQ(NameOf(Token("t3")), "team");
  events->go_on.set_value();
  slow.join();
  EXPECT_EQ(NameOf(Token("t3")), "team");
  EXPECT_THAT(NameOf(Token("t2")), HasSubstr("does not contain the token"));
}

TEST_F(AuthenticatorTest, AServerDoesNotStartWithAFileThatItCannotUse) {
  EXPECT_TRUE(absl::IsNotFound(Authenticator::Open(path_, events_, now_).status()));
  Write("nonsense");
  EXPECT_TRUE(absl::IsInvalidArgument(Authenticator::Open(path_, events_, now_).status()));
  EXPECT_THAT(events_->All(), IsEmpty());
}

}  // namespace
}  // namespace penstock::control
