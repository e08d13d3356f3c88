// SPDX-License-Identifier: Apache-2.0
// Unauthenticated peers get nothing: at each port and socket of a cluster, and over TLS.
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
  }

  // A trainer with this TLS, which it reads from its environment.
  DistributeOptions Options(const TlsConfig& tls, std::string protocol) const {
    setenv("PENSTOCK_TLS_CA", tls.ca.c_str(), 1);
    setenv("PENSTOCK_TLS_CERTIFICATE", tls.certificate.c_str(), 1);
    setenv("PENSTOCK_TLS_KEY", tls.key.c_str(), 1);
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

TEST(Tls, IsNeverLeftOutSilently) {
  auto stub = control::DispatcherStub::Make("localhost:5050", OurProcess());
  EXPECT_THAT(std::string(stub.status().message()), HasSubstr("grpcs://localhost:5050"));
  auto worker = WorkerServer::Start(
      {.dispatcher_address = "grpcs://localhost:5050", .tls = {.ca = Ours().ca()}});
  EXPECT_THAT(std::string(worker.status().message()), HasSubstr("needs tls_certificate"));
}

}  // namespace
}  // namespace penstock
