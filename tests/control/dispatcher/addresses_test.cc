// SPDX-License-Identifier: Apache-2.0
// Services with several addresses, over real streams: a dispatcher that was replaced, and an
// address at which connections are accepted, but nobody answers.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/control/dispatcher/dispatcher_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

// Notes what a session that follows its service reports.
template <class Up, class Down>
class Followed : public ReconnectingEvents<Up, Down> {
 public:
  explicit Followed(Up hello) : hello_(std::move(hello)) {}

  Up Hello() override {
    std::lock_guard lock(mu_);
    return hello_;
  }
  void OnMessage(Down message, uint64_t) override { Note(std::move(message)); }
  void OnLost(const absl::Status& status) override { Note(status); }
  void OnGivenUp(const absl::Status& status) override {
    ADD_FAILURE() << "given up: " << status;
    Note(status);
  }

  // Waits for a welcome, and returns its life.
  template <class Welcomed>
  Life AwaitWelcome() {
    return Await([](const auto& note) -> std::optional<Life> {
             const auto* message = std::get_if<Down>(&note);
             const auto* welcome = message ? std::get_if<Welcomed>(message) : nullptr;
             return welcome == nullptr ? std::nullopt : std::optional(welcome->life);
           })
        .value_or(Life());
  }
  // Waits until a stream is lost for a reason that contains `text`.
  void AwaitLoss(const std::string& text) {
    Await([&](const auto& note) -> std::optional<bool> {
      const auto* status = std::get_if<absl::Status>(&note);
      const bool is_it = status != nullptr && absl::StrContains(status->message(), text);
      return is_it ? std::optional(true) : std::nullopt;
    });
  }

 private:
  using Event = std::variant<Down, absl::Status>;

  void Note(Event event) {
    std::lock_guard lock(mu_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // Takes events until `find` returns a result for one.
  template <class Find>
  auto Await(Find find) -> decltype(find(Event())) {
    std::unique_lock lock(mu_);
    while (changed_.wait_for(lock, std::chrono::minutes(1), [this] { return !events_.empty(); })) {
      const Event event = std::move(events_.front());
      events_.pop_front();
      if (auto found = find(event)) return found;
    }
    ADD_FAILURE() << "not heard within a minute";
    return std::nullopt;
  }

  const Up hello_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Event> events_;  // guarded by mu_
};

class AddressesTest : public DispatcherTest {
 protected:
  // Starts a dispatcher of a later term from a copy of the journal, at `port`.
  void Replace(int port = 0) {
    newer_.reset();
    auto started = DispatchServer::Start(
        {.port = port, .work_dir = folder_ + ".copy", .fault_tolerant_mode = true});
    ASSERT_TRUE(started.ok()) << started.status();
    newer_ = *std::move(started);
  }
  void Copy() {
    std::filesystem::remove_all(folder_ + ".copy");
    std::filesystem::copy(folder_, folder_ + ".copy", std::filesystem::copy_options::recursive);
  }
  // The address of the dispatcher that has been replaced comes second.
  std::unique_ptr<DispatcherStub> StubOfBoth() {
    auto stub = DispatcherStub::Make(
        absl::StrCat("localhost:", newer_->port(), ",localhost:", server_->port()));
    EXPECT_TRUE(stub.ok()) << stub.status();
    return *std::move(stub);
  }
  // Checks that a session welcomed by the newer dispatcher does not follow the older one while the
  // newer one is away, and is welcomed when it is back.
  template <class Welcomed, class Events, class Keep>
  void ExpectFollows(Events& events, Keep keep) {
    const std::unique_ptr<DispatcherStub> stub = StubOfBoth();
    auto session = keep(*stub);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(events.template AwaitWelcome<Welcomed>().term, Term(2));
    const int port = newer_->port();
    newer_.reset();
    events.AwaitLoss("the dispatcher is in term 1, but another one leads since term 2");
    Replace(port);
    EXPECT_EQ(events.template AwaitWelcome<Welcomed>().term, Term(3));
    (*session)->Stop();
  }

  std::unique_ptr<DispatchServer> newer_;
};

TEST_F(AddressesTest, AClientDoesNotFollowADispatcherThatWasReplaced) {
  Start(Journaled());
  const JobAnswer job = MakeJob("job");
  Copy();
  Replace();
  struct Client : Followed<ClientUp, ClientDown> {
    using Followed::Followed;
    // Names what it heard, as a session does.
    ClientUp Hello() override {
      ClientHello hello = std::get<ClientHello>(Followed::Hello());
      std::lock_guard lock(heard_mu);
      hello.heard = heard;
      return hello;
    }
    void OnMessage(ClientDown message, uint64_t sequence) override {
      if (const auto* welcome = std::get_if<Welcome>(&message)) {
        std::lock_guard lock(heard_mu);
        heard = {welcome->life, sequence};
      }
      Followed::OnMessage(std::move(message), sequence);
    }
    std::mutex heard_mu;
    control::Heard heard;
  } client(ClientHello{.job = job.job,
                       .client = ClientId(5),
                       .incarnation = Incarnation(1),
                       .state = std::nullopt,
                       .token = job.token});
  ExpectFollows<Welcome>(client,
                         [&](DispatcherStub& stub) { return stub.KeepClientSession(&client); });
}

// Its hello names nothing, so that the older dispatcher welcomes it.
TEST_F(AddressesTest, AWorkerDoesNotFollowADispatcherThatWasReplaced) {
  Start(Journaled());
  Copy();
  Replace();
  Followed<WorkerUp, WorkerDown> worker(
      WorkerHello{.worker = WorkerId(1), .address = "worker1", .permits = 1});
  ExpectFollows<WorkerWelcome>(
      worker, [&](DispatcherStub& stub) { return stub.KeepWorkerSession(&worker); });
}

// The kernel accepts connections for a process that is stopped.
TEST_F(AddressesTest, AnAddressThatAcceptsAndIsSilentIsLeft) {
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(listen(silent, 5), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&at), &size), 0);
  Start();
  const std::string here = absl::StrCat("localhost:", server_->port());
  const std::string service = absl::StrCat("127.0.0.1:", ntohs(at.sin_port), ",", here);
  auto of_calls = DispatcherStub::Make(service);
  auto of_worker = DispatcherStub::Make(service);
  ASSERT_TRUE(of_calls.ok() && of_worker.ok()) << of_calls.status() << of_worker.status();
  const auto status = (*of_calls)->GetStatus({});
  EXPECT_TRUE(status.ok()) << status.status();
  EXPECT_EQ((*of_calls)->addresses().first(), 1u);
  Followed<WorkerUp, WorkerDown> worker(
      WorkerHello{.worker = WorkerId(1), .address = "worker1", .permits = 1});
  auto session = (*of_worker)->KeepWorkerSession(&worker);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(worker.AwaitWelcome<WorkerWelcome>().term, Term(1));
  EXPECT_EQ((*of_worker)->addresses().first(), 1u);
  (*session)->Stop();
  close(silent);
}

}  // namespace
}  // namespace penstock::control
