// SPDX-License-Identifier: Apache-2.0
// Unauthenticated peers get nothing: at each port and socket of a cluster, and over TLS.
#include <cstdio>
#include <fstream>

#include "control/stub/dispatcher_stub.h"
#include "dataplane/transfer/transport.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/strangers.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SecureCluster : public testing::Test {
 protected:
  void Start(TlsConfig tls) {
    auto dispatcher = DispatchServer::Start({.heartbeat_interval = absl::Milliseconds(100),
                                             .metrics_port = 0,
                                             .metrics_token = "page-secret",
                                             .tls = tls});
    ASSERT_TRUE(dispatcher.ok()) << dispatcher.status();
    dispatcher_ = *std::move(dispatcher);
    ASSERT_THAT(dispatcher_->target(), testing::StartsWith("grpcs://localhost:"));
    auto worker = WorkerServer::Start({.dispatcher_address = dispatcher_->target(),
                                       .heartbeat_interval = absl::Milliseconds(100),
                                       .metrics_port = 0,
                                       .metrics_token = "page-secret",
                                       .tls = tls});
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }
  ~SecureCluster() override {
    if (worker_ != nullptr) worker_->Stop();
    if (dispatcher_ != nullptr) dispatcher_->Stop();
    for (const char* of_trainer :
         {"PENSTOCK_TLS_CA", "PENSTOCK_TLS_CERTIFICATE", "PENSTOCK_TLS_KEY"}) {
      unsetenv(of_trainer);
    }
  }

  // A trainer with this TLS, which it reads from its environment.
  DistributeOptions Options(const TlsConfig& tls, std::string protocol) const {
    const auto set = [](const char* variable, const std::string& value) {
      value.empty() ? unsetenv(variable) : setenv(variable, value.c_str(), 1);
    };
    set("PENSTOCK_TLS_CA", tls.ca);
    set("PENSTOCK_TLS_CERTIFICATE", tls.certificate);
    set("PENSTOCK_TLS_KEY", tls.key);
    return {.service = dispatcher_->target(),
            .data_transfer_protocol = std::move(protocol),
            .timeout = absl::Seconds(20)};
  }
  absl::Status AskDispatcher(const std::string& service, const TlsConfig& tls,
                             absl::Duration timeout = kShortTimeout) const {
    auto stub = control::DispatcherStub::Make(service, tls);
    if (!stub.ok()) return stub.status();
    return (*stub)->GetVersion({.timeout = timeout, .stop = {}}).status();
  }
  // Returns the error that ends a link to the worker's grpc port.
  absl::Status DialWorker(const std::string& address, const TlsConfig& tls) const {
    auto client = std::make_shared<transfer::ClientEnd>();
    auto link =
        (*transfer::FindTransport("grpc"))
            ->Dial(address, {.spec = Scalar(kInt64), .timeout = kLongTimeout, .tls = tls}, client);
    return link.ok() ? client->AwaitClosed() : link.status();
  }
  std::string WorkerAddress() const { return absl::StrCat("grpcs://", worker_->address()); }

  std::unique_ptr<DispatchServer> dispatcher_;
  std::unique_ptr<WorkerServer> worker_;
};

TEST_F(SecureCluster, ReadsOverTls) {
  Start(OurProcess());
  const Dataset numbers = Dataset::Range(1000).Distribute(Options({.ca = Ours().ca()}, "grpc"));
  const std::vector<int64_t> read = Sorted(ReadAll(numbers));
  ASSERT_EQ(read.size(), 1000u);
  EXPECT_EQ(read[999], 999);
}

TEST_F(SecureCluster, OffersOnlyEncryptedProtocolsOverTheNetwork) {
  Start(OurProcess());
  auto it = Dataset::Range(10).Distribute(Options({.ca = Ours().ca()}, "tcp")).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  const absl::Status refused = it->Next().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'tcp' is not available"));
}

TEST_F(SecureCluster, AClientThatTrustsAnotherAuthorityRefusesTheCluster) {
  Start(OurProcess());
  const TlsConfig other = {.ca = Authority("other").ca()};
  EXPECT_TRUE(absl::IsUnavailable(AskDispatcher(dispatcher_->target(), other)));
  EXPECT_FALSE(DialWorker(WorkerAddress(), other).ok());
}

// The dispatcher's certificate is for localhost and 127.0.0.1.
TEST_F(SecureCluster, AWrongNameIsNotHiddenByTheNextAddress) {
  auto dispatcher = DispatchServer::Start({.host = "0.0.0.0", .tls = OurProcess()});
  ASSERT_TRUE(dispatcher.ok()) << dispatcher.status();
  const std::string wrong = absl::StrCat("127.0.0.2:", (*dispatcher)->port());
  const std::string right = absl::StrCat("localhost:", (*dispatcher)->port());
  const TlsConfig client = {.ca = Ours().ca()};
  const absl::Status refused =
      AskDispatcher(absl::StrCat("grpcs://", wrong, ",", right), client, absl::Seconds(2));
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              testing::ContainsRegex(
                  absl::StrCat(": ", wrong, ": .*Peer name 127.0.0.2 is not in peer certificate")));
  const absl::Status met =
      AskDispatcher(absl::StrCat("grpcs://", right, ",", wrong), client, kLongTimeout);
  EXPECT_TRUE(met.ok()) << met;
}

TEST_F(SecureCluster, WithMutualTlsUnauthenticatedPeersReachNothing) {
  Start(Mutual());
  EXPECT_TRUE(AskDispatcher(dispatcher_->target(), OurProcess(), kLongTimeout).ok());
  // It is let in and gets an error: no such iteration.
  const absl::Status known = DialWorker(WorkerAddress(), OurProcess());
  EXPECT_THAT(std::string(known.message()), HasSubstr("is placed on this worker"));
  EXPECT_EQ(ReadAll(Dataset::Range(100).Distribute(Options(OurProcess(), "grpc"))).size(), 100u);

  const std::string plain = absl::StrCat("localhost:", dispatcher_->port());
  const TlsConfig without_certificate = {.ca = Ours().ca()};
  EXPECT_TRUE(absl::IsUnavailable(AskDispatcher(plain, {})));
  EXPECT_TRUE(absl::IsUnavailable(AskDispatcher(dispatcher_->target(), without_certificate)));
  EXPECT_TRUE(absl::IsUnavailable(AskDispatcher(dispatcher_->target(), Stranger())));
  for (const auto& [address, tls] :
       {std::pair(worker_->address(), TlsConfig()), std::pair(WorkerAddress(), without_certificate),
        std::pair(WorkerAddress(), Stranger())}) {
    const absl::Status refused = DialWorker(address, tls);
    EXPECT_FALSE(refused.ok());
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("is placed on this worker")));
  }
}

TEST_F(SecureCluster, PagesNeedTheToken) {
  Start(OurProcess());
  EXPECT_EQ(ReadAll(Dataset::Range(10).Distribute(Options({.ca = Ours().ca()}, "grpc"))).size(),
            10u);
  const std::string shown = "Authorization: Bearer page-secret\r\n\r\n";
  EXPECT_THAT(Say(absl::StrCat("localhost:", dispatcher_->metrics_port()),
                  absl::StrCat("GET / HTTP/1.1\r\n", shown)),
              HasSubstr(absl::StrCat("<td>", worker_->address(), "</td>")));
  EXPECT_THAT(Say(absl::StrCat("localhost:", dispatcher_->metrics_port()),
                  absl::StrCat("GET /metrics HTTP/1.1\r\n", shown)),
              HasSubstr("penstock_dispatcher_jobs_created_total{mode=\"OFF\"}"));
  const std::string of_worker = Say(absl::StrCat("localhost:", worker_->metrics_port()),
                                    absl::StrCat("GET / HTTP/1.1\r\n", shown));
  EXPECT_THAT(of_worker, HasSubstr("<h1>Penstock worker localhost:"));
  EXPECT_THAT(of_worker, HasSubstr("waits_for=&quot;produce&quot;"));
  ExpectPagesAskForTheToken(dispatcher_->metrics_port());
  ExpectPagesAskForTheToken(worker_->metrics_port());
}

// --- Certificates replaced while the servers run ---------------------------------

// Returns the subject of the certificate that a server shows to a new connection.
std::string SubjectShownAt(const std::string& host_and_port) {
  const std::string command =
      absl::StrCat("openssl s_client -connect ", host_and_port, " -alpn h2 </dev/null 2>/dev/null",
                   " | openssl x509 -noout -subject 2>&1");
  std::FILE* const output = popen(command.c_str(), "r");
  char line[256] = "";
  while (std::fgets(line, sizeof line, output) != nullptr) {
  }
  pclose(output);
  return line;
}

// A trainer that stops after half of the numbers until it may go on.
class HalfwayTrainer {
 public:
  static constexpr int64_t kCount = 2000;

  explicit HalfwayTrainer(const DistributeOptions& options)
      : it_(IteratorOf(Dataset::Range(kCount).Distribute(options))) {
    while (read_.size() < kCount / 2) ReadOne();
  }
  std::vector<int64_t> ReadTheRest() {
    while (ReadOne()) {
    }
    return Sorted(read_);
  }

 private:
  bool ReadOne() {
    absl::StatusOr<std::optional<Element>> element = it_.Next();
    EXPECT_TRUE(element.ok()) << element.status();
    if (!element.ok() || !element->has_value()) return false;
    read_.push_back((*element)->tensor(0).scalar<int64_t>());
    return true;
  }

  Iterator it_;
  std::vector<int64_t> read_;
};

TEST_F(SecureCluster, ACertificateIsReplacedWhileFourTrainersRead) {
  const TlsConfig tls = Ours().Issue("first");
  Start(tls);
  const TlsConfig trusts = {.ca = Ours().ca()};
  std::vector<std::unique_ptr<HalfwayTrainer>> trainers;
  for (int i = 0; i < 4; ++i) {
    trainers.push_back(std::make_unique<HalfwayTrainer>(Options(trusts, "grpc")));
  }
  const std::string dispatcher = absl::StrCat("localhost:", dispatcher_->port());
  EXPECT_THAT(SubjectShownAt(dispatcher), HasSubstr("first"));
  Authority::Replace(tls, Ours().Issue("second"));
  EXPECT_THAT(SubjectShownAt(dispatcher), HasSubstr("second"));
  EXPECT_THAT(SubjectShownAt(worker_->address()), HasSubstr("second"));
  EXPECT_EQ(HalfwayTrainer(Options(trusts, "grpc")).ReadTheRest(), UpTo(HalfwayTrainer::kCount));
  std::ofstream(tls.certificate) << "no certificate";
  EXPECT_THAT(SubjectShownAt(dispatcher), HasSubstr("second"));
  EXPECT_THAT(SubjectShownAt(worker_->address()), HasSubstr("second"));
  EXPECT_EQ(HalfwayTrainer(Options(trusts, "grpc")).ReadTheRest(), UpTo(HalfwayTrainer::kCount));
  for (const auto& trainer : trainers) {
    EXPECT_EQ(trainer->ReadTheRest(), UpTo(HalfwayTrainer::kCount));
  }
}

TEST_F(SecureCluster, AStubShowsTheLatestCertificateOfItsProcess) {
  Start(Mutual());
  Authority theirs("theirs-at-first");
  TlsConfig tls = theirs.Issue("client");
  tls.ca = Ours().ca();
  auto stub = control::DispatcherStub::Make(dispatcher_->target(), tls);
  ASSERT_TRUE(stub.ok()) << stub.status();
  EXPECT_TRUE(
      absl::IsUnavailable((*stub)->GetVersion({.timeout = kShortTimeout, .stop = {}}).status()));
  Authority::Replace(tls, Ours().Issue("renewed-client"));
  EXPECT_TRUE((*stub)->GetVersion({.timeout = kLongTimeout, .stop = {}}).ok());
}

TEST_F(SecureCluster, ALinkDialledDuringAReplacementUsesTheLastCertificate) {
  Start(Mutual());
  const TlsConfig tls = Ours().Issue("trainer");
  EXPECT_THAT(std::string(DialWorker(WorkerAddress(), tls).message()),
              HasSubstr("is placed on this worker"));
  std::ofstream(tls.certificate) << "no certificate";
  EXPECT_THAT(std::string(DialWorker(WorkerAddress(), tls).message()),
              HasSubstr("is placed on this worker"));
}

// --- Settings that cannot be used ------------------------------------------------

struct Unusable {
  std::string name;
  std::string service;  // empty: a dispatcher is started; else the dispatcher's address
  TlsConfig tls;
  std::string error;
};

class UnusableTls : public testing::TestWithParam<Unusable> {};

TEST_P(UnusableTls, IsAnErrorOfTheServer) {
  const Unusable& given = GetParam();
  const absl::Status refused =
      given.service.empty()
          ? DispatchServer::Start({.tls = given.tls}).status()
          : WorkerServer::Start({.dispatcher_address = given.service, .tls = given.tls}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused) || absl::IsNotFound(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(given.error));
}

INSTANTIATE_TEST_SUITE_P(
    Table, UnusableTls,
    testing::Values(
        Unusable{"AuthorityWithoutCertificate", "", {.ca = "ca.pem"}, "tls_ca is given to a serv"},
        Unusable{"KeyWithoutCertificate", "", {.key = "a.key"}, "belong together"},
        Unusable{"CertificateWithoutKey", "", {.certificate = "a.pem"}, "belong together"},
        Unusable{"MutualAlone", "", {.mutual = true}, "tls_mutual needs tls_ca"},
        Unusable{
            "MutualWithoutCertificate", "", {.ca = "ca.pem", .mutual = true}, "tls_mutual needs"},
        Unusable{"MissingFile",
                 "",
                 {.certificate = "/none/a.pem", .key = "/none/a.key"},
                 "tls_certificate: cannot open /none/a.pem"},
        Unusable{"WorkerInPlainText",
                 "grpc://localhost:5050",
                 {.ca = "ca.pem"},
                 "give \"grpcs://localhost:5050\""},
        Unusable{"MutualWorkerInPlainText",
                 "localhost:5050",
                 {.mutual = true},
                 "give \"grpcs://localhost:5050\""},
        Unusable{"WorkerWithoutCertificate",
                 "grpcs://localhost:5050",
                 {.ca = "ca.pem"},
                 "needs tls_certificate"}),
    [](const auto& info) { return info.param.name; });

TEST(Tls, IsNeverLeftOutSilently) {
  auto stub = control::DispatcherStub::Make("localhost:5050", OurProcess());
  EXPECT_THAT(std::string(stub.status().message()), HasSubstr("grpcs://localhost:5050"));
}

TEST(Tls, ATrainerRefusesUnusableVariables) {
  const auto error = [](const char* variable, const char* value, const std::string& service) {
    setenv(variable, value, 1);
    const absl::Status refused =
        FirstError(Dataset::Range(1).Distribute({.service = service, .timeout = kShortTimeout}));
    unsetenv(variable);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    return std::string(refused.message());
  };
  for (const char* variable : {"PENSTOCK_TLS_CA", "PENSTOCK_TLS_CERTIFICATE", "PENSTOCK_TLS_KEY"}) {
    unsetenv(variable);
  }
  EXPECT_THAT(error("PENSTOCK_TLS_MUTUAL", "1", "grpcs://localhost:1"),
              HasSubstr("PENSTOCK_TLS_MUTUAL is set"));
  EXPECT_THAT(error("PENSTOCK_TLS_CA", "", "grpcs://localhost:1"),
              HasSubstr("PENSTOCK_TLS_CA is empty"));
  EXPECT_THAT(error("PENSTOCK_TLS_CA", "ca.pem", "localhost:1"), HasSubstr("grpcs://localhost:1"));
  EXPECT_THAT(error("PENSTOCK_TLS_KEY", "a.key", "grpcs://localhost:1"),
              HasSubstr("belong together"));
}

}  // namespace
}  // namespace penstock
