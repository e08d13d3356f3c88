// SPDX-License-Identifier: Apache-2.0
// The rights of principals at a dispatcher's core: owners, refusals, and the events that name the
// principal. tests/control/policy has the table of rights.
#include <algorithm>
#include <functional>

#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Caller kA = Principal{.name = "a", .role = Role::kTrainer};
const Caller kB = Principal{.name = "b", .role = Role::kTrainer};
const Caller kWorker = Principal{.name = "w", .role = Role::kWorker};
const Caller kOperator = Principal{.name = "o", .role = Role::kOperator};

class RightsTest : public CoreTest {
 protected:
  void SetUp() override { Start(); }

  // Returns the id, or the error.
  std::string RegisterFor(const Caller& caller, RegisterDatasetRequest request = {}) {
    std::string id;
    request.definition = "definition";
    request.summary = {.fingerprint = 7,
                       .cardinality = 100,
                       .nodes = {{"Range#0", 7}},
                       .plan = {{.node = "Range#0", .count = 100}}};
    core_->RegisterDataset(
        request,
        [&](const auto& answer) {
          id = answer.ok() ? answer->dataset_id : std::string(answer.status().message());
        },
        caller);
    return id;
  }
  absl::StatusOr<JobAnswer> CreateFor(const Caller& caller, GetOrCreateJobRequest request) {
    absl::StatusOr<JobAnswer> job;
    core_->GetOrCreateJob(
        request, [&](auto answer) { job = std::move(answer); }, caller);
    return job;
  }
  absl::Status Ask(const std::function<void(Core::DoneEmpty)>& ask) {
    absl::Status status = absl::UnknownError("no answer");
    ask([&](absl::Status answer) { status = std::move(answer); });
    return status;
  }
  absl::Status Cancel(const std::string& job, const Caller& caller) {
    return Ask([&](auto done) { core_->CancelJob(job, done, caller); });
  }
  absl::Status Remove(const std::string& job, const Caller& caller) {
    return Ask([&](auto done) { core_->RemoveJob(job, done, caller); });
  }
  absl::Status Unregister(const std::string& id, const Caller& caller) {
    return Ask([&](auto done) { core_->UnregisterDataset(id, done, caller); });
  }
  absl::Status Fetch(const std::string& id, const Caller& caller) {
    return Ask([&](auto done) {
      core_->GetDataset(
          id, 0, [&](const auto& answer) { done(answer.status()); }, caller);
    });
  }
  static Caller InNamespace(const std::string& name_space) {
    return Principal{.name = "n", .role = Role::kTrainer, .namespaces = {name_space}};
  }
  absl::Status Save(const JobAnswer& job, const Caller& caller) {
    return Ask([&](auto done) {
      core_->GetReading(
          {.job = job.job}, [&](const auto& answer) { done(answer.status()); }, caller);
    });
  }
  // Returns the error with which the client's hello was refused; OK if it was welcomed.
  absl::Status Hello(const JobAnswer& job, const Caller& caller, const Heard& heard = {}) {
    auto inbox = std::make_shared<Inbox<ClientStreamWriter, ClientDown>>();
    const auto peer = core_->OpenClient(inbox, caller);
    core_->OnMessage(peer, ClientHello{.job = job.job,
                                       .client = ClientId(++random_),
                                       .incarnation = Incarnation(1),
                                       .token = job.token,
                                       .heard = heard});
    const auto refused = inbox->Take<SessionError>();
    core_->OnClosed(peer);
    return refused.has_value() ? refused->status : absl::OkStatus();
  }
  absl::Status HelloOfWorker(const Caller& caller) {
    auto inbox = std::make_shared<Inbox<WorkerStreamWriter, WorkerDown>>();
    const auto peer = core_->OpenWorker(inbox, caller);
    core_->OnMessage(peer, WorkerHello{.worker = WorkerId(1), .address = "worker"});
    const auto refused = inbox->Take<WorkerRefused>();
    core_->OnClosed(peer);
    return refused.has_value() ? refused->status : absl::OkStatus();
  }
  DispatcherStatus StatusFor(const Caller& caller, const StatusRequest& request = {}) {
    DispatcherStatus status;
    core_->GetStatus(
        request, [&](const auto& answer) { status = answer.value(); }, caller);
    return status;
  }
  std::string PrincipalOf(const std::string& event) const {
    return events_->WaitFor(event, absl::ZeroDuration()).field("principal");
  }
  // The last event of this name.
  Event Last(const std::string& name) const {
    Event last;
    for (const Event& event : events_->All()) {
      if (event.name == name) last = event;
    }
    return last;
  }
};

TEST_F(RightsTest, ADatasetBelongsToTheTrainerThatRegisteredIt) {
  const std::string id = RegisterFor(kA);
  EXPECT_EQ(RegisterFor(kA), id);
  EXPECT_EQ(PrincipalOf("registered"), "a");
  EXPECT_NE(RegisterFor(kB), id);  // an equal definition, but not its own
  EXPECT_THAT(RegisterFor(kB, {.dataset_id = id}), HasSubstr("belongs to a"));
  EXPECT_THAT(RegisterFor(kB, {.dataset_id = id, .replace = true}), HasSubstr("belongs to a"));
  EXPECT_THAT(RegisterFor(kWorker), HasSubstr("needs the role trainer or operator"));

  EXPECT_TRUE(Fetch(id, kA).ok());
  EXPECT_TRUE(Fetch(id, kWorker).ok());
  EXPECT_TRUE(Fetch(id, kOperator).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Fetch(id, kB)));
  EXPECT_TRUE(absl::IsPermissionDenied(CreateFor(kB, {.dataset_id = id}).status()));

  now_ += absl::Seconds(1);
  EXPECT_TRUE(absl::IsPermissionDenied(Unregister(id, kB)));
  EXPECT_THAT(Last("refused").field("why"), HasSubstr("may not unregister a dataset"));
  EXPECT_EQ(Last("refused").field("principal"), "b");
  EXPECT_TRUE(absl::IsPermissionDenied(Unregister(id, kWorker)));
  EXPECT_TRUE(absl::IsPermissionDenied(Unregister("nothing", kWorker)));
  EXPECT_TRUE(absl::IsNotFound(Unregister("nothing", kB)));
  EXPECT_TRUE(Unregister(id, kOperator).ok());
  EXPECT_EQ(PrincipalOf("unregistered"), "o");
}

TEST_F(RightsTest, AJobBelongsToTheTrainerThatCreatedIt) {
  const std::string of_a = RegisterFor(kA);
  const std::string of_b = RegisterFor(kB);
  const JobAnswer job = CreateFor(kA, {.name = "train", .dataset_id = of_a}).value();
  EXPECT_EQ(PrincipalOf("job_created"), "a");
  EXPECT_TRUE(CreateFor(kA, {.name = "train", .dataset_id = of_a})->existed);

  const absl::Status joins = CreateFor(kB, {.name = "train", .dataset_id = of_b}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(joins));
  EXPECT_THAT(std::string(joins.message()), HasSubstr("job train belongs to a"));
  absl::Status restores;
  core_->RestoreJob(
      {.job = {.name = "train", .dataset_id = of_b}, .restoration = {}},
      [&](const auto& answer) { restores = answer.status(); }, kB);
  EXPECT_TRUE(absl::IsPermissionDenied(restores)) << restores;

  for (const Caller& other : {kB, kWorker}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Hello(job, other)));
    EXPECT_TRUE(absl::IsPermissionDenied(Save(job, other)));
    EXPECT_TRUE(absl::IsPermissionDenied(Cancel("train", other)));
    EXPECT_TRUE(absl::IsPermissionDenied(Cancel(absl::StrCat(job.job.value()), other)));
    EXPECT_TRUE(absl::IsPermissionDenied(Remove("train", other)));
  }
  EXPECT_TRUE(Hello(job, kA).ok());
  EXPECT_TRUE(Hello(job, kOperator).ok());
  EXPECT_TRUE(Save(job, kA).ok());
  EXPECT_TRUE(Cancel("train", kA).ok());
  EXPECT_EQ(PrincipalOf("job_cancelled"), "a");
  // A job that is over still has its name.
  EXPECT_TRUE(absl::IsPermissionDenied(
      CreateFor(kB, {.name = "train", .run_id = "2", .dataset_id = of_b}).status()));
  EXPECT_TRUE(Remove("train", kOperator).ok());
  EXPECT_EQ(PrincipalOf("job_removed"), "o");
  EXPECT_TRUE(CreateFor(kB, {.name = "train", .dataset_id = of_b}).ok());
}

TEST_F(RightsTest, ANameOfDigitsDoesNotHideANumber) {
  const JobAnswer job = CreateFor(kA, {.name = "x", .dataset_id = RegisterFor(kA)}).value();
  const std::string number = absl::StrCat(job.job.value());
  ASSERT_TRUE(CreateFor(kB, {.name = number, .dataset_id = RegisterFor(kB)}).ok());
  const absl::Status both = Cancel(number, kOperator);
  EXPECT_TRUE(absl::IsInvalidArgument(both)) << both;
  EXPECT_THAT(std::string(both.message()), HasSubstr("the number of job x"));
  EXPECT_TRUE(Cancel(number, kA).ok());  // may act only on one of them
  EXPECT_TRUE(recovered_.FindJobByName("x")->cancelled);
  EXPECT_FALSE(recovered_.FindJobByName(number)->cancelled);
  EXPECT_TRUE(Cancel(number, kB).ok());
  EXPECT_TRUE(recovered_.FindJobByName(number)->cancelled);
}

TEST_F(RightsTest, ARequestNumberGivesNobodyTheAnswerOfAnother) {
  const std::string of_a = RegisterFor(kA);
  const std::string of_b = RegisterFor(kB);
  const RequestId number{Incarnation(5), 1};
  ASSERT_TRUE(CreateFor(kA, {.request = number, .dataset_id = of_a}).ok());
  EXPECT_TRUE(
      absl::IsPermissionDenied(CreateFor(kB, {.request = number, .dataset_id = of_b}).status()));
  EXPECT_TRUE(CreateFor(kA, {.request = number, .dataset_id = of_a}).ok());
}

TEST_F(RightsTest, ARequestNumberGivesNobodyTheDatasetOfAnother) {
  const RequestId number{Incarnation(5), 1};
  const std::string id = RegisterFor(kA, {.request = number, .name_space = "v"});
  EXPECT_EQ(RegisterFor(kA, {.request = number, .name_space = "v"}), id);
  EXPECT_THAT(RegisterFor(kB, {.request = number}), HasSubstr("belongs to a"));
  Caller elsewhere = kA;
  elsewhere->namespaces = {"w"};
  EXPECT_THAT(RegisterFor(elsewhere, {.request = number, .name_space = "w"}),
              HasSubstr("namespace v is not one of"));
  ASSERT_TRUE(Unregister(id, kA).ok());
  EXPECT_THAT(RegisterFor(kB, {.request = number}), HasSubstr("no longer registered"));
}

TEST_F(RightsTest, ARequestNumberGivesNobodyARemovedJob) {
  const RequestId number{Incarnation(5), 1};
  const GetOrCreateJobRequest request{
      .request = number, .name = "x", .dataset_id = RegisterFor(kA)};
  ASSERT_TRUE(CreateFor(kA, request).ok());
  ASSERT_TRUE(Cancel("x", kA).ok());
  ASSERT_TRUE(Remove("x", kA).ok());
  EXPECT_TRUE(
      absl::IsNotFound(CreateFor(kB, {.request = number, .dataset_id = RegisterFor(kB)}).status()));
}

TEST_F(RightsTest, OnlyWorkersServe) {
  for (const Caller& caller : {kA, kOperator}) {
    EXPECT_TRUE(absl::IsPermissionDenied(HelloOfWorker(caller)));
    EXPECT_EQ(Last("worker_refused").field("principal"), caller->name);
  }
  EXPECT_EQ(core_->NumWorkers(), 0);
  EXPECT_TRUE(HelloOfWorker(kWorker).ok());
  EXPECT_EQ(PrincipalOf("joined"), "w");
}

TEST_F(RightsTest, AWorkerTakesNoStreamOfAnotherPrincipal) {
  const WorkerHello hello{.worker = WorkerId(1), .address = "worker"};
  const auto come = [&](const Caller& caller) {
    Worker worker;
    worker.peer = core_->OpenWorker(worker.inbox, caller);
    core_->OnMessage(worker.peer, hello);
    return worker;
  };
  Caller other = kWorker;
  other->name = "x";
  const Worker first = come(kWorker);
  const Worker stranger = come(other);
  const auto refused = stranger.inbox->Take<WorkerRefused>();
  ASSERT_TRUE(refused.has_value());
  EXPECT_THAT(std::string(refused->status.message()),
              HasSubstr("worker id 1 belongs to principal w"));
  EXPECT_FALSE(first.inbox->finished.has_value());
  EXPECT_EQ(Last("worker_refused").field("principal"), "x");

  const Worker back = come(kWorker);  // its connection broke, and nobody has noticed yet
  EXPECT_FALSE(back.inbox->Take<WorkerRefused>().has_value());
  EXPECT_TRUE(first.inbox->finished.has_value());
  EXPECT_EQ(PrincipalOf("worker_reconnected"), "w");
}

TEST_F(RightsTest, AWorkerIdBelongsToThePrincipalThatFirstUsedIt) {
  Caller other = kWorker;
  other->name = "x";
  const auto expect_refused = [&](const char* when) {
    const absl::Status refused = HelloOfWorker(other);
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << when << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("worker id 1 belongs to principal w"));
  };
  EXPECT_TRUE(HelloOfWorker(kWorker).ok());
  expect_refused("not connected");
  Reopen();
  expect_refused("after a restart");
  EXPECT_TRUE(HelloOfWorker(kWorker).ok());
  Pass(absl::Seconds(30), absl::Milliseconds(100));
  EXPECT_EQ(recovered_.FindWorker(WorkerId(1)), nullptr);
  expect_refused("after its death");
  Reopen();
  expect_refused("after its death and a restart");
  EXPECT_TRUE(HelloOfWorker(kWorker).ok());
  EXPECT_TRUE(HelloOfWorker({}).ok());  // the dispatcher has no auth_file any more
  expect_refused("after a time without an auth_file");
}

TEST_F(RightsTest, AWorkerIdOfATimeWithoutAnAuthFileBelongsToItsNextPrincipal) {
  Caller other = kWorker;
  other->name = "x";
  EXPECT_TRUE(HelloOfWorker({}).ok());
  EXPECT_TRUE(HelloOfWorker(kWorker).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(HelloOfWorker(other)));
}

// A client chooses its id, so another principal may choose the same one.
TEST_F(RightsTest, AClientIdOfAnotherPrincipalGivesNoRights) {
  const JobAnswer of_a = CreateFor(kA, {.name = "x", .dataset_id = RegisterFor(kA)}).value();
  const JobAnswer of_b = CreateFor(kB, {.name = "y", .dataset_id = RegisterFor(kB)}).value();
  const auto come = [&](const Caller& caller, const JobAnswer& job, uint64_t incarnation) {
    Reader reader;
    reader.peer = core_->OpenClient(reader.inbox, caller);
    core_->OnMessage(reader.peer, ClientHello{.job = job.job,
                                              .client = ClientId(1),
                                              .incarnation = Incarnation(incarnation),
                                              .token = job.token});
    return reader;
  };
  const Worker worker = Work(1);
  const Reader owner = come(kA, of_a, 1);
  ASSERT_TRUE(owner.inbox->Take<Welcome>().has_value());
  for (const uint64_t incarnation : {1, 2}) {
    const Reader stranger = come(kB, of_a, incarnation);
    const auto refused = stranger.inbox->Take<SessionError>();
    ASSERT_TRUE(refused.has_value());
    EXPECT_TRUE(absl::IsPermissionDenied(refused->status)) << refused->status;
    core_->OnMessage(stranger.peer, Commit{1, {}});  // on a stream without a session
    core_->OnMessage(stranger.peer, Leave{});
    core_->OnClosed(stranger.peer);
  }
  const Reader other = come(kB, of_b, 2);  // a client of its own, although the ids are equal
  ASSERT_TRUE(other.inbox->Take<Welcome>().has_value());
  core_->OnMessage(other.peer, Leave{});
  EXPECT_TRUE(other.inbox->Take<Left>().has_value());
  core_->OnClosed(other.peer);
  EXPECT_FALSE(owner.inbox->finished.has_value());
  EXPECT_FALSE(owner.inbox->Take<SessionError>().has_value());
  EXPECT_EQ(StatusFor(kA).jobs.at(0).iterations.at(0).readers.size(), 1u);
}

TEST_F(RightsTest, AJobMadeWithoutAnAuthFileBelongsToAllTrainers) {
  const std::string id = Register(1);
  const JobAnswer job = Job("train", id, {});
  EXPECT_TRUE(Fetch(id, kB).ok());
  EXPECT_TRUE(Hello(job, kB).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Hello(job, kWorker)));
  EXPECT_THAT(StatusFor(kB).jobs[0].owner, IsEmpty());
  EXPECT_TRUE(Cancel("train", kB).ok());
}

TEST_F(RightsTest, ATrainerThatClaimsAnotherLifeEndsOnlyItsOwnJobs) {
  const JobAnswer of_a = CreateFor(kA, {.name = "x", .dataset_id = RegisterFor(kA)}).value();
  const JobAnswer of_b = CreateFor(kB, {.name = "y", .dataset_id = RegisterFor(kB)}).value();
  ASSERT_TRUE(Hello(of_a, kA).ok());
  ASSERT_TRUE(Hello(of_b, kB).ok());
  Reopen();
  Heard forged{.life = recovered_.lives.back().life, .sequence = 1};
  forged.life.id += 1000;
  forged.life.term = Term(1000);
  EXPECT_TRUE(absl::IsFailedPrecondition(Hello(of_b, kB, forged)));
  EXPECT_TRUE(Hello(of_a, kA).ok());
  const absl::Status ended = Hello(of_b, kB);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("an older copy of the journal"));
}

TEST_F(RightsTest, NamespacesLimitATrainerAndAnOperator) {
  Caller vision = kA, operator_of_vision = kOperator;
  vision->namespaces = operator_of_vision->namespaces = {"vision"};
  EXPECT_THAT(RegisterFor(vision), HasSubstr("namespace default is not one of"));
  const std::string id = RegisterFor(vision, {.name_space = "vision"});
  EXPECT_TRUE(
      CreateFor(vision, {.name = "vision/x", .dataset_id = id, .name_space = "vision"}).ok());
  ASSERT_TRUE(CreateFor(kB, {.name = "y", .dataset_id = RegisterFor(kB)}).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Cancel("y", operator_of_vision)));
  EXPECT_TRUE(Cancel("vision/x", operator_of_vision).ok());
  EXPECT_EQ(StatusFor(operator_of_vision).jobs.size(), 1u);
}

TEST_F(RightsTest, LongTextsAreRefusedAndNotLogged) {
  Caller vision = kA;
  vision->namespaces = {"vision"};
  const std::string text(1 << 20, 'x');
  EXPECT_THAT(RegisterFor(vision, {.name_space = text}), HasSubstr("at most 256 bytes"));
  EXPECT_THAT(RegisterFor(vision, {.dataset_id = text + "/y"}), HasSubstr("at most 256 bytes"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(CreateFor(vision, {.name = "x", .name_space = text}).status()));
  EXPECT_THAT(Last("refused").name, IsEmpty());
  const absl::Status denied = Fetch(text + "/y", vision);
  EXPECT_TRUE(absl::IsPermissionDenied(denied));
  EXPECT_LT(denied.message().size(), 1000u);
  EXPECT_LT(Last("refused").field("why").size(), 1000u);
  auto inbox = std::make_shared<Inbox<WorkerStreamWriter, WorkerDown>>();
  core_->OnMessage(core_->OpenWorker(inbox, kWorker),
                   WorkerHello{.worker = WorkerId(1), .address = text});
  EXPECT_LT(Last("worker_refused").field("address").size(), 5000u);
}

TEST_F(RightsTest, RefusalsAreEventsAtMostOnceASecond) {
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(absl::IsPermissionDenied(Fetch("v/x", InNamespace("w"))));
  const auto count = [&] {
    return std::ranges::count_if(events_->All(),
                                 [](const Event& event) { return event.name == "refused"; });
  };
  EXPECT_EQ(count(), 1);
  now_ += absl::Seconds(1);
  EXPECT_TRUE(absl::IsPermissionDenied(Fetch("v/x", InNamespace("w"))));
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(Last("refused").field("others"), "9");
}

TEST_F(RightsTest, AStatusShowsATrainerOnlyItsOwn) {
  ASSERT_TRUE(CreateFor(kA, {.name = "x", .dataset_id = RegisterFor(kA)}).ok());
  ASSERT_TRUE(CreateFor(kB, {.name = "y", .dataset_id = RegisterFor(kB)}).ok());
  const DispatcherStatus of_a = StatusFor(kA);
  ASSERT_EQ(of_a.jobs.size(), 1u);
  EXPECT_EQ(of_a.jobs[0].name, "x");
  EXPECT_EQ(of_a.jobs[0].owner, "a");
  ASSERT_EQ(of_a.datasets.size(), 1u);
  EXPECT_EQ(of_a.datasets[0].owner, "a");
  EXPECT_EQ(StatusFor(kOperator).jobs.size(), 2u);
  EXPECT_EQ(StatusFor({}).datasets.size(), 2u);
  absl::Status refused;
  core_->GetStatus(
      {}, [&](const auto& answer) { refused = answer.status(); }, kWorker);
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
}

TEST_F(RightsTest, WorkOnForgottenDatasetsIsShownOnlyToOperatorsOfItsNamespace) {
  Caller vision = kA, operator_of_vision = kOperator;
  vision->namespaces = operator_of_vision->namespaces = {"vision"};
  const Worker worker = Work(1);
  core_->OnMessage(worker.peer,
                   WorkerHeartbeat{.counter = 1,
                                   .work = {DatasetWork{.dataset_id = "gone", .stats = {}},
                                            DatasetWork{.dataset_id = "vision/gone", .stats = {}}},
                                   .iterations = {}});
  EXPECT_EQ(StatusFor(kOperator).work.size(), 2u);
  EXPECT_EQ(StatusFor({}, {.name_space = "vision"}).work.size(), 1u);
  const DispatcherStatus status = StatusFor(operator_of_vision);
  ASSERT_EQ(status.work.size(), 1u);
  EXPECT_EQ(status.work[0].work.dataset_id, "vision/gone");
  EXPECT_THAT(StatusFor(vision).work, IsEmpty());
}

TEST_F(RightsTest, ARestartKeepsOwners) {
  const std::string id = RegisterFor(kA);
  ASSERT_TRUE(CreateFor(kA, {.name = "x", .dataset_id = id}).ok());
  ASSERT_TRUE(HelloOfWorker(kWorker).ok());
  EXPECT_EQ(recovered_.FindJobByName("x")->owner, "a");
  EXPECT_EQ(recovered_.FindDataset(id)->owner, "a");
  const State snapshot = DecodeState(EncodeState(recovered_).value()).value();
  EXPECT_EQ(snapshot.FindJobByName("x")->owner, "a");
  EXPECT_EQ(snapshot.FindDataset(id)->owner, "a");
  EXPECT_EQ(snapshot.OwnerOf(WorkerId(1)), "w");
}

TEST_F(RightsTest, PagesOfAStatusHaveEveryJobAndDatasetOnce) {
  const std::string of_a = RegisterFor(kA);
  for (int j = 0; j < 5; ++j) {
    ASSERT_TRUE(CreateFor(kA, {.name = absl::StrCat("x", j), .dataset_id = of_a}).ok());
    ASSERT_TRUE(CreateFor({}, {.name = absl::StrCat("v/", j),
                               .dataset_id = RegisterFor(
                                   {}, {.dataset_id = absl::StrCat("v/", j), .name_space = "v"}),
                               .name_space = "v"})
                    .ok());
  }
  for (const int64_t size : {1, 2, 3, 4, 100}) {
    for (const std::string& name_space : {std::string(), std::string("v")}) {
      std::vector<std::string> found;
      StatusRequest request{.name_space = name_space, .page_size = size};
      do {
        const DispatcherStatus page = StatusFor({}, request);
        EXPECT_LE(page.jobs.size() + page.datasets.size(), static_cast<size_t>(size));
        for (const JobStatus& job : page.jobs) found.push_back(job.name);
        for (const DatasetStatus& dataset : page.datasets) found.push_back(dataset.dataset_id);
        request.page_token = page.next_page_token;
      } while (!request.page_token.empty());
      const std::vector<std::string> v = {"v/0", "v/1", "v/2", "v/3", "v/4"};
      std::vector<std::string> all = {"x0", "x1", "x2", "x3", "x4", of_a};
      if (!name_space.empty()) all.clear();
      all.insert(all.end(), v.begin(), v.end());
      all.insert(all.end(), v.begin(), v.end());
      EXPECT_THAT(found, testing::UnorderedElementsAreArray(all)) << size << name_space;
    }
  }
  absl::Status wrong;
  core_->GetStatus({.page_token = "x"}, [&](const auto& answer) { wrong = answer.status(); });
  EXPECT_TRUE(absl::IsInvalidArgument(wrong));
}

}  // namespace
}  // namespace penstock::control
