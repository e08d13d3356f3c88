// SPDX-License-Identifier: Apache-2.0
// Each method and each stream of a dispatcher with an auth_file, tried over gRPC by each kind of
// process, which is known by a token or by its certificate. docs/security.md has the table.
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>

#include "control/dispatcher/server/auth_file.h"
#include "control/stub/dispatcher_stub.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/strangers.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

using control::CallOptions;
using control::DispatcherStub;
using ::testing::HasSubstr;
using ::testing::Not;

// In the order of the table's columns.
enum Who { kStranger, kWorker, kOtherTrainer, kOwner, kOperator, kKinds };
constexpr std::array<const char*, kKinds> kNames = {"stranger", "worker", "other", "owner",
                                                    "operator"};

const CallOptions kPatient = {.timeout = kLongTimeout, .stop = {}};

// The first message of a stream, or the status with which it ended.
template <class Down, class Refusal>
class FirstAnswer final : public control::SessionEvents<Down> {
 public:
  void OnMessage(Down message, uint64_t) override {
    const auto* refused = std::get_if<Refusal>(&message);
    Set(refused != nullptr ? refused->status : absl::OkStatus());
  }
  void OnClosed(const absl::Status& status) override { Set(status); }
  absl::Status Wait() { return answer_.get_future().get(); }

 private:
  void Set(const absl::Status& status) {
    if (!std::exchange(is_set_, true)) answer_.set_value(status);
  }
  bool is_set_ = false;
  std::promise<absl::Status> answer_;
};

// Keeps the beginning and the end of a stream for a test.
template <class Down>
class End final : public control::SessionEvents<Down> {
 public:
  void OnMessage(Down, uint64_t) override { Begin(true); }
  void OnClosed(const absl::Status& status) override {
    Begin(false);
    end_.set_value(status);
  }
  // Waits for the first message. Returns false if the stream ended without one.
  bool Begins() { return begun_.get_future().get(); }
  absl::Status Wait() { return over_.get(); }
  bool IsOver() const {
    return over_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

 private:
  void Begin(bool begins) {
    if (!std::exchange(is_set_, true)) begun_.set_value(begins);
  }
  bool is_set_ = false;
  std::promise<bool> begun_;
  std::promise<absl::Status> end_;
  std::future<absl::Status> over_ = end_.get_future();
};

class Authorization : public testing::TestWithParam<bool> {  // whether over TLS, by certificates
 protected:
  void SetUp() override {
    WriteAuthFile({{kWorker, "worker"},
                   {kOtherTrainer, "trainer"},
                   {kOwner, "trainer"},
                   {kOperator, "operator"}});
    for (int who = 0; who < kKinds; ++who) {
      const std::string token = Path(kNames[who]);
      std::ofstream(token) << kNames[who] << "-token\n";
      tls_[who] = ByCertificate() ? Ours().Issue(kNames[who]) : TlsConfig();
      if (!ByCertificate()) tls_[who].token_file = token;
    }
    DispatcherConfig config = {.heartbeat_interval = absl::Milliseconds(100),
                               .metrics_port = 0,
                               .auth_file = AuthFilePath()};
    if (ByCertificate()) config.tls = OurProcess();
    dispatcher_ = DispatchServer::Start(config).value();
    owner_ = StubOf(kOwner);
    dataset_ = Dataset(*owner_, "data");
    job_ = Job(*owner_, "train").value();
  }
  ~Authorization() override {
    dispatcher_->Stop();
    for (const char* of_trainer : {"PENSTOCK_TLS_CA", "PENSTOCK_TLS_CERTIFICATE",
                                   "PENSTOCK_TLS_KEY", "PENSTOCK_TOKEN_FILE"}) {
      unsetenv(of_trainer);
    }
  }

  static bool ByCertificate() { return GetParam(); }
  // Replaces the auth_file.
  void WriteAuthFile(const std::vector<std::pair<Who, std::string>>& roles) const {
    std::ofstream auth(Path("auth.new"));
    for (const auto& [who, role] : roles) {
      const std::string name = kNames[who];
      auth << "[" << name << "]\nrole = \"" << role << "\"\n";
      if (ByCertificate()) {
        auth << "certificates = [\"" << name << "\"]\n";
      } else {
        auth << "tokens = [\"" << control::TokenDigest(name + "-token") << "\"]\n";
      }
    }
    auth.close();
    std::filesystem::rename(Path("auth.new"), AuthFilePath());
  }
  // Gives the programs of this process that person's credentials.
  void Become(Who who) const {
    const TlsConfig& own = tls_[who];
    for (const auto& [name, value] : {std::pair("PENSTOCK_TLS_CA", own.ca),
                                      std::pair("PENSTOCK_TLS_CERTIFICATE", own.certificate),
                                      std::pair("PENSTOCK_TLS_KEY", own.key),
                                      std::pair("PENSTOCK_TOKEN_FILE", own.token_file)}) {
      if (!value.empty()) setenv(name, value.c_str(), 1);
    }
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string AuthFilePath() const { return Path("auth.toml"); }
  std::unique_ptr<DispatcherStub> StubOf(Who who) const {
    return DispatcherStub::Make(dispatcher_->target(), tls_[who]).value();
  }
  static std::string Dataset(DispatcherStub& stub, const std::string& id) {
    return Register(stub, id).value().dataset_id;
  }
  static absl::StatusOr<control::RegisterDatasetAnswer> Register(DispatcherStub& stub,
                                                                 const std::string& id) {
    return stub.GetOrRegisterDataset({.dataset_id = id,
                                      .definition = "definition",
                                      .summary = {.fingerprint = 7,
                                                  .cardinality = 100,
                                                  .nodes = {{"Range#0", 7}},
                                                  .plan = {{.node = "Range#0", .count = 100}}}},
                                     kPatient);
  }
  absl::StatusOr<control::JobAnswer> Job(DispatcherStub& stub, const std::string& name) const {
    return stub.GetOrCreateJob({.name = name, .dataset_id = dataset_}, kPatient);
  }
  absl::Status Read(DispatcherStub& stub) const {
    FirstAnswer<control::ClientDown, control::SessionError> answer;
    const auto session = stub.OpenClientSession(&answer);
    session->Send(control::ClientHello{.job = job_.job,
                                       .client = ClientId(1),
                                       .incarnation = Incarnation(1),
                                       .token = job_.token});
    return answer.Wait();
  }
  // Returns the answer to a request for a page of a server; "HTTP/1.1 200 OK…" if it is shown.
  static std::string Page(int port, const std::string& path, Who who) {
    const std::string token =
        who == kStranger ? "" : absl::StrCat("Authorization: Bearer ", kNames[who], "-token\r\n");
    return Say(absl::StrCat("localhost:", port),
               absl::StrCat("GET ", path, " HTTP/1.1\r\n", token, "\r\n"));
  }
  static absl::Status Serve(DispatcherStub& stub) {
    FirstAnswer<control::WorkerDown, control::WorkerRefused> answer;
    const auto session = stub.OpenWorkerSession(&answer);
    session->Send(control::WorkerHello{.worker = WorkerId(1), .address = "a:1", .permits = 1});
    return answer.Wait();
  }

  TemporaryFolder folder_;
  std::array<TlsConfig, kKinds> tls_;
  std::unique_ptr<DispatchServer> dispatcher_;
  std::unique_ptr<DispatcherStub> owner_;
  std::string dataset_;
  control::JobAnswer job_;
};

INSTANTIATE_TEST_SUITE_P(, Authorization, testing::Bool(),
                         [](const auto& its) { return its.param ? "Certificate" : "Token"; });

TEST_P(Authorization, EveryCellOfTheTable) {
  using Try = std::function<absl::Status(DispatcherStub&)>;
  struct Row {
    const char* method;
    std::array<bool, kKinds> may;
    Try attempt;
  };
  const Row rows[] = {
      {"GetVersion",
       {false, true, true, true, true},
       [](DispatcherStub& stub) { return stub.GetVersion(kPatient).status(); }},
      {"GetOrRegisterDataset",
       {false, false, false, true, true},
       [](DispatcherStub& stub) { return Register(stub, "data").status(); }},
      {"GetDataset",
       {false, true, false, true, true},
       [&](DispatcherStub& stub) { return stub.GetDataset(dataset_, 0, kPatient).status(); }},
      {"GetOrCreateJob",
       {false, false, false, true, true},
       [&](DispatcherStub& stub) { return Job(stub, "train").status(); }},
      {"GetReading",
       {false, false, false, true, true},
       [&](DispatcherStub& stub) { return stub.GetReading({.job = job_.job}, kPatient).status(); }},
      {"ClientSession",
       {false, false, false, true, true},
       [&](DispatcherStub& stub) { return Read(stub); }},
      {"WorkerSession", {false, true, false, false, false}, Serve},
      {"GetStatus",
       {false, false, true, true, true},
       [](DispatcherStub& stub) { return stub.GetStatus(kPatient).status(); }},
      {"FinaliseUpgrade",
       {false, false, false, false, true},
       [](DispatcherStub& stub) { return stub.FinaliseUpgrade(kPatient); }},
      {"RestoreJob",
       {false, false, false, true, true},
       [&](DispatcherStub& stub) {
         const absl::Status status =
             stub.RestoreJob({.job = {.name = "train", .dataset_id = dataset_}, .restoration = {}},
                             kPatient)
                 .status();
         return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;  // it has begun
       }},
      // The owner first: these have an effect only once, and succeed for an operator later.
      {"CancelJob",
       {false, false, false, true, true},
       [](DispatcherStub& stub) { return stub.CancelJob("train", kPatient); }},
      {"RemoveJob",
       {false, false, false, true, true},
       [&](DispatcherStub& stub) {
         const absl::Status status = stub.RemoveJob("train", kPatient);
         if (status.ok()) {
           EXPECT_TRUE(Job(*owner_, "train").ok());
           EXPECT_TRUE(owner_->CancelJob("train", kPatient).ok());
         }
         return status;
       }},
      {"UnregisterDataset",
       {false, false, false, true, true},
       [&](DispatcherStub& stub) {
         const absl::Status status = stub.UnregisterDataset(dataset_, kPatient);
         if (status.ok()) {
           EXPECT_EQ(Dataset(*owner_, "data"), dataset_);
         }
         return status;
       }},
  };
  for (const Row& row : rows) {
    for (int who = 0; who < kKinds; ++who) {
      const absl::Status status = row.attempt(*StubOf(static_cast<Who>(who)));
      const absl::StatusCode expected = row.may[who]       ? absl::StatusCode::kOk
                                        : who == kStranger ? absl::StatusCode::kUnauthenticated
                                                           : absl::StatusCode::kPermissionDenied;
      EXPECT_EQ(status.code(), expected) << row.method << " by " << kNames[who] << ": " << status;
    }
  }
}

// A page has no TLS, so it knows no certificates.
TEST_P(Authorization, EveryCellOfTheTableOfPages) {
  WorkerConfig config = {.dispatcher_address = dispatcher_->target(),
                         .heartbeat_interval = absl::Milliseconds(100),
                         .metrics_port = 0,
                         .tls = tls_[kWorker]};
  config.tls.mutual = ByCertificate();
  const auto worker = WorkerServer::Start(config).value();
  const std::array<bool, kKinds> nobody = {};
  const std::array<bool, kKinds> by_token = {false, false, true, true, true};
  struct Row {
    const char* path;
    int port;
    std::array<bool, kKinds> may;
  };
  const Row rows[] = {
      {"/", dispatcher_->metrics_port(), ByCertificate() ? nobody : by_token},
      {"/metrics", dispatcher_->metrics_port(), ByCertificate() ? nobody : by_token},
      {"/", worker->metrics_port(), nobody},
      {"/metrics", worker->metrics_port(), nobody},
  };
  for (const Row& row : rows) {
    for (int who = 0; who < kKinds; ++who) {
      const std::string answer = Page(row.port, row.path, static_cast<Who>(who));
      const bool is_known = !ByCertificate() && row.port == dispatcher_->metrics_port();
      const char* expected = row.may[who]                    ? "HTTP/1.1 200"
                             : who == kStranger || !is_known ? "HTTP/1.1 401"
                                                             : "HTTP/1.1 403";
      EXPECT_THAT(answer, testing::StartsWith(expected)) << row.path << " by " << kNames[who];
    }
  }
  worker->Stop();
}

TEST_P(Authorization, APageShowsATrainerOnlyItsOwn) {
  if (ByCertificate()) GTEST_SKIP() << "pages need tokens";
  const int port = dispatcher_->metrics_port();
  EXPECT_THAT(Page(port, "/", kOwner), HasSubstr(">train<"));
  EXPECT_THAT(Page(port, "/", kOperator), HasSubstr(">train<"));
  EXPECT_THAT(Page(port, "/", kOtherTrainer), Not(HasSubstr(">train<")));
  EXPECT_THAT(Page(port, "/metrics", kOtherTrainer), Not(HasSubstr("train\"")));
}

TEST_P(Authorization, AStatusShowsATrainerOnlyItsOwn) {
  EXPECT_EQ(StubOf(kOtherTrainer)->GetStatus(kPatient)->jobs.size(), 0u);
  EXPECT_EQ(owner_->GetStatus(kPatient)->jobs.size(), 1u);
  EXPECT_EQ(StubOf(kOperator)->GetStatus(kPatient)->jobs.at(0).owner, "owner");
}

TEST_P(Authorization, AWorkerAndATrainerReadWithTheirCredentials) {
  WorkerConfig config = {.dispatcher_address = dispatcher_->target(),
                         .heartbeat_interval = absl::Milliseconds(100),
                         .tls = tls_[kWorker]};
  const auto worker = WorkerServer::Start(config);
  ASSERT_TRUE(worker.ok()) << worker.status();
  Become(kOwner);
  EXPECT_EQ(ReadAll(penstock::Dataset::Range(100).Distribute(
                        {.service = dispatcher_->target(), .timeout = absl::Seconds(20)}))
                .size(),
            100u);
  config.tls = tls_[kOwner];
  const absl::Status refused = WorkerServer::Start(config).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  (*worker)->Stop();
}

TEST_P(Authorization, AnOpenStreamEndsWhenItsPrincipalLosesItsRights) {
  const auto worker = StubOf(kWorker), operator_ = StubOf(kOperator);
  End<control::ClientDown> of_owner, of_operator;
  End<control::WorkerDown> of_worker;
  const auto owners = owner_->OpenClientSession(&of_owner);
  owners->Send(control::ClientHello{
      .job = job_.job, .client = ClientId(1), .incarnation = Incarnation(1), .token = job_.token});
  const auto workers = worker->OpenWorkerSession(&of_worker);
  workers->Send(control::WorkerHello{.worker = WorkerId(1), .address = "a:1", .permits = 1});
  const auto operators = operator_->OpenClientSession(&of_operator);
  operators->Send(control::ClientHello{
      .job = job_.job, .client = ClientId(2), .incarnation = Incarnation(2), .token = job_.token});
  ASSERT_TRUE(of_owner.Begins());
  ASSERT_TRUE(of_worker.Begins());
  ASSERT_TRUE(of_operator.Begins());

  WriteAuthFile({{kWorker, "trainer"}, {kOperator, "operator"}});
  const absl::Time changed = absl::Now();
  const absl::Status removed = of_owner.Wait();
  const absl::Status demoted = of_worker.Wait();
  EXPECT_LT(absl::Now() - changed, absl::Seconds(20));
  EXPECT_TRUE(absl::IsUnauthenticated(removed)) << removed;
  EXPECT_THAT(std::string(removed.message()), HasSubstr("the dispatcher's auth_file "));
  EXPECT_TRUE(absl::IsPermissionDenied(demoted)) << demoted;
  EXPECT_THAT(std::string(demoted.message()), HasSubstr("changed the rights of 'worker'"));
  EXPECT_FALSE(of_operator.IsOver());
  EXPECT_TRUE(absl::IsUnauthenticated(Read(*owner_)));
  EXPECT_TRUE(absl::IsPermissionDenied(Serve(*worker)));
}

TEST_P(Authorization, AReadingTrainerIsToldThatItHasLostItsRights) {
  const auto worker = WorkerServer::Start({.dispatcher_address = dispatcher_->target(),
                                           .heartbeat_interval = absl::Milliseconds(100),
                                           .tls = tls_[kWorker]});
  ASSERT_TRUE(worker.ok()) << worker.status();
  Become(kOwner);
  Iterator it =
      IteratorOf(penstock::Dataset::Range(int64_t{1} << 40)
                     .Distribute({.service = dispatcher_->target(), .timeout = absl::Seconds(20)}));
  ASSERT_TRUE(it.Next().ok());
  WriteAuthFile({{kWorker, "worker"}});
  absl::Status end;
  for (const absl::Time until = absl::Now() + absl::Minutes(1); end.ok() && absl::Now() < until;) {
    end = it.Next().status();
  }
  EXPECT_TRUE(absl::IsUnauthenticated(end)) << end;
  (*worker)->Stop();
}

TEST(Token, IsReadAgainForEachCall) {
  const TemporaryFolder folder;
  const std::string token = folder.path() + "/token", auth = folder.path() + "/auth.toml";
  std::ofstream(auth) << "[me]\nrole = \"operator\"\ntokens = [\"" << control::TokenDigest("new")
                      << "\"]\n";
  const auto dispatcher = DispatchServer::Start({.auth_file = auth}).value();
  TlsConfig tls;
  tls.token_file = token;
  const auto stub = DispatcherStub::Make(dispatcher->target(), tls).value();
  EXPECT_TRUE(absl::IsNotFound(stub->GetStatus(kPatient).status()));
  FirstAnswer<control::ClientDown, control::SessionError> answer;
  const auto session = stub->OpenClientSession(&answer);
  EXPECT_THAT(std::string(answer.Wait().message()), HasSubstr("token_file: "));
  std::ofstream(token) << "old";
  EXPECT_TRUE(absl::IsUnauthenticated(stub->GetStatus(kPatient).status()));
  std::ofstream(token) << "new\n";
  EXPECT_TRUE(stub->GetStatus(kPatient).ok());
  dispatcher->Stop();
}

// A token file that is replaced in place is empty for a moment.
TEST(Token, TheLastValidOneIsUsedWhileTheFileIsReplaced) {
  const TemporaryFolder folder;
  const std::string token = folder.path() + "/token", auth = folder.path() + "/auth.toml";
  std::ofstream(auth) << "[me]\nrole = \"operator\"\ntokens = [\"" << control::TokenDigest("mine")
                      << "\"]\n";
  const auto dispatcher = DispatchServer::Start({.auth_file = auth}).value();
  TlsConfig tls;
  tls.token_file = token;
  const auto stub = DispatcherStub::Make(dispatcher->target(), tls).value();
  const auto read = [&] {
    FirstAnswer<control::ClientDown, control::SessionError> answer;
    const auto session = stub->OpenClientSession(&answer);
    session->Send(control::ClientHello{
        .job = JobId(1), .client = ClientId(1), .incarnation = Incarnation(1), .token = {}});
    return answer.Wait();  // there is no such job
  };
  std::ofstream(token) << "two words";
  EXPECT_TRUE(absl::IsInvalidArgument(stub->GetStatus(kPatient).status()));
  std::ofstream(token) << "mine\n";
  EXPECT_TRUE(stub->GetStatus(kPatient).ok());
  for (const char* unfinished : {"", "two words"}) {
    std::ofstream(token) << unfinished;
    EXPECT_TRUE(stub->GetStatus(kPatient).ok());
    EXPECT_THAT(std::string(read().message()), Not(HasSubstr("token_file: ")));
  }
  std::filesystem::remove(token);
  EXPECT_TRUE(stub->GetStatus(kPatient).ok());
  EXPECT_THAT(std::string(read().message()), Not(HasSubstr("token_file: ")));
  dispatcher->Stop();
}

TEST(Token, IsNotSentInPlainTextToOtherHosts) {
  TlsConfig tls;
  tls.token_file = "/token";
  const absl::Status refused = DispatcherStub::Make("head:5050", tls).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("give \"grpcs://head:5050\""));
  EXPECT_TRUE(DispatcherStub::Make("grpcs://head:5050", tls).ok());
  EXPECT_TRUE(DispatcherStub::Make("127.0.0.1:5050", tls).ok());
  EXPECT_TRUE(DispatcherStub::Make("[::1]:5050", tls).ok());
}

}  // namespace
}  // namespace penstock
