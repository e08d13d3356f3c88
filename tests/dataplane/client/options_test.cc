// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "dataplane/client/distribute_options.h"
#include "dataplane/client/session_state/delivery_fields.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/dataset.h"
#include "penstock/register.h"
#include "penstock/server.h"
#include "penstock/sharding.h"
#include "penstock/step_aligner.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::Pair;

DistributeOptions Good() {
  return {.service = "grpc://localhost:5050", .job_name = "j"};
}

void ExpectRefused(const DistributeOptions& options, absl::StatusCode code,
                   const std::string& says) {
  absl::Status status = Dataset::Range(3).Distribute(options).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Distribute"));
}

TEST(DistributeOptionsTest, GoodOnesAreADataset) {
  EXPECT_TRUE(Dataset::Range(3).Distribute(Good()).status().ok());
  EXPECT_EQ(Dataset::Range(3).Distribute(Good()).element_spec(), Spec(Scalar(kInt64)));
}

TEST(DistributeOptionsTest, CardinalityIsUnknownUnlessInfinite) {
  EXPECT_EQ(Dataset::Range(3).Distribute(Good()).cardinality(), kUnknown);
  EXPECT_EQ(Dataset::Range(3).Repeat().Distribute(Good()).cardinality(), kInfinite);
}

TEST(DistributeOptionsTest, ACacheAfterDistributeIsRefused) {
  const Dataset cached = Dataset::Range(3).Distribute(Good()).Map([](Expr x) { return x; }).Cache();
  EXPECT_EQ(cached.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(cached.status().message()),
              HasSubstr("Cache#3: comes after Distribute#1"));
}

TEST(DistributeOptionsTest, ExplainNamesTheModeTheServiceAndUnusualOptions) {
  const Dataset numbers = Dataset::Range(9);
  EXPECT_EQ(numbers.Distribute({.service = "grpc://localhost:5050"}).Explain(),
            "Distribute#1 -> TensorSpec([], int64), unknown\n"
            "  | processing_mode=OFF service=\"grpc://localhost:5050\"\n"
            "  Range#0 start=0 step=1 stop=9 -> TensorSpec([], int64), 9\n");
  DistributeOptions options = Good();
  options.processing_mode = ShardingPolicy::kFileOrData;
  options.delivery = FirstComeFirstServed{.fair = true};
  options.ack_mode = AckMode::kOnCommit;
  options.timeout = absl::Minutes(2);
  options.compression = LinkCompression::kLz4;
  options.fallback = {"shm", "tcp"};
  options.quota.max_permits = 2;
  EXPECT_THAT(numbers.Distribute(options).Explain(),
              HasSubstr("  | ack_mode=ON_COMMIT compression=LZ4 fallback=[\"shm\", \"tcp\"] "
                        "job_name=\"j\" max_permits=2 order=FAIR processing_mode=FILE_OR_DATA "
                        "service=\"grpc://localhost:5050\" timeout=2m\n"));
  for (const Dataset& last :
       {numbers.Prefetch(2), numbers.Prefetch(2).WithOptions({.threads = 1})}) {
    EXPECT_THAT(last.Distribute(Good()).Explain(),
                HasSubstr("(its window replaces the Prefetch before it)\n"));
  }
}

TEST(DistributeOptionsTest, AreTheSameAsAttributes) {
  DistributeOptions options = Good();
  options.processing_mode = ShardingPolicy::kDynamic;
  options.run_id = "r";
  options.max_outstanding_requests = 7;
  options.max_outstanding_bytes = 12345;
  options.data_transfer_protocol = "local";
  options.fallback = {"grpc"};
  options.ack_mode = AckMode::kOnCommit;
  options.timeout = absl::Milliseconds(1500);
  options.seed = ~uint64_t{0};
  options.target_workers = TargetWorkers::kLocal;
  options.compression = LinkCompression::kLz4;
  options.quota = {.max_bytes_in_flight = 3, .max_permits = 4};
  options.share = {.weight = 5, .priority = -6};
  options.name_space = "vision";
  options.task_refresh_interval_hint = absl::Milliseconds(20);
  const DistributeOptions back = *FromAttrs(ToAttrs(options));
  EXPECT_EQ(back.processing_mode, options.processing_mode);
  EXPECT_EQ(back.service, options.service);
  EXPECT_EQ(back.job_name, options.job_name);
  EXPECT_EQ(back.run_id, options.run_id);
  EXPECT_EQ(back.max_outstanding_requests, 7);
  EXPECT_EQ(back.max_outstanding_bytes, 12345);
  EXPECT_EQ(back.data_transfer_protocol, "local");
  EXPECT_EQ(back.fallback, options.fallback);
  EXPECT_EQ(back.ack_mode, options.ack_mode);
  EXPECT_EQ(back.timeout, options.timeout);
  EXPECT_EQ(back.seed, options.seed);
  EXPECT_EQ(TermsOf(back), TermsOf(options));
  EXPECT_EQ(back.compression, LinkCompression::kLz4);
  EXPECT_EQ(back.name_space, "vision");
  EXPECT_EQ(back.task_refresh_interval_hint, absl::Milliseconds(20));
}

TEST(DistributeOptionsTest, EachDeliveryIsTheSameAsAttributes) {
  for (const DeliveryMode& delivery : std::initializer_list<DeliveryMode>{
           FirstComeFirstServed(),
           FirstComeFirstServed{
               .fair = true, .visitation = Visitation::kAtLeastOnce, .early_end = true},
           CoordinatedRounds{.consumer_index = 1, .num_consumers = 2},
           CoordinatedRounds{.consumer_index = 1,
           .num_consumers = 2,
           .remainder_policy = RemainderPolicy::kError,
           .on_error = RoundErrorPolicy::kStop,
           .group = {3, 1}},
           DeterministicOrder(), DeterministicOrder{.partitions = 5},
           DeterministicOrder{.partitions = 5, .consumer_index = 1, .num_consumers = 3},
           CrossTrainerCache{"trainer"}}) {
    DistributeOptions options = Good();
    options.delivery = delivery;
    const absl::StatusOr<DistributeOptions> back = FromAttrs(ToAttrs(options));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->delivery, delivery) << "alternative " << delivery.index();
    EXPECT_EQ(TermsOf(*back), TermsOf(options));
  }
}

// The spelling before 0.9.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST(MovedFields, AreTheDeliveryThatReplacesThem) {
  const auto delivery = [](const std::function<void(DistributeOptions&)>& set) {
    DistributeOptions options = Good();
    set(options);
    const absl::StatusOr<DistributeOptions> read = FromAttrs(ToAttrs(options));
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? read->delivery : DeliveryMode();
  };
  EXPECT_EQ(delivery([](auto&) {}), DeliveryMode(FirstComeFirstServed()));
  EXPECT_EQ(delivery([](auto& o) { o.order = MergeOrder::kFair, o.early_end = true; }),
            DeliveryMode(FirstComeFirstServed{.fair = true, .early_end = true}));
  EXPECT_EQ(delivery([](auto& o) { o.visitation = Visitation::kAtLeastOnce; }),
            DeliveryMode(FirstComeFirstServed{.visitation = Visitation::kAtLeastOnce}));
  EXPECT_EQ(delivery([](auto& o) {
              o.consumer_index = 1, o.num_consumers = 2, o.rests = RemainderPolicy::kDrop;
              o.on_error = RoundErrorPolicy::kStop, o.consumer_group = ConsumerGroup{3, 2};
            }),
            DeliveryMode(CoordinatedRounds{.consumer_index = 1,
                                           .num_consumers = 2,
                                           .remainder_policy = RemainderPolicy::kDrop,
                                           .on_error = RoundErrorPolicy::kStop,
                                           .group = {3, 2}}));
  EXPECT_EQ(delivery([](auto& o) { o.order = MergeOrder::kDeterministic, o.partitions = 4; }),
            DeliveryMode(DeterministicOrder{.partitions = 4}));
  EXPECT_EQ(delivery([](auto& o) { o.cross_trainer_cache = CrossTrainerCache{"a"}; }),
            DeliveryMode(CrossTrainerCache{"a"}));
  EXPECT_EQ(delivery([](auto& o) {
              o.cross_trainer_cache = CrossTrainerCache{"a"}, o.order = MergeOrder::kFair;
            }),
            DeliveryMode(CrossTrainerCache{.trainer_id = "a", .fair = true}));
  EXPECT_EQ(
      delivery([](auto& o) {
        o.consumer_index = std::optional<int64_t>(1), o.num_consumers = std::optional(2);
        o.consumer_group = {3, 2}, o.on_error = std::nullopt;
      }),
      DeliveryMode(CoordinatedRounds{.consumer_index = 1, .num_consumers = 2, .group = {3, 2}}));
}

TEST(MovedFields, AreSetAsTheOldFieldsWere) {
  const WorkerConfig worker{.allowed_plugins = {"/opt/a", "/opt/b"}};
  EXPECT_THAT(worker.allowed_plugins.given(), Optional(ElementsAre("/opt/a", "/opt/b")));
  StepAlignerOptions aligner;
  aligner.alike = {{"model", "7"}};
  EXPECT_THAT(aligner.alike.given(), Optional(ElementsAre(Pair("model", "7"))));
  const DistributeOptions options{.keep = Keep::kCommitted, .consumer_group = {2, 1}};
  EXPECT_EQ(options.keep.given(), AckMode::kOnCommit);
  EXPECT_EQ(options.consumer_group.given(), (ConsumerGroup{2, 1}));
}

TEST(MovedFields, ThatExcludeEachOtherAreNamed) {
  const auto refused = [](const std::function<void(DistributeOptions&)>& set) {
    DistributeOptions options = Good();
    options.processing_mode = ShardingPolicy::kDynamic;
    set(options);
    const absl::Status status = Dataset::Range(3).Repeat().Distribute(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Distribute"));
    return std::string(status.message());
  };
  static constexpr auto kAtLeastOnce = Visitation::kAtLeastOnce;
  static constexpr auto kDeterministic = MergeOrder::kDeterministic;
  EXPECT_THAT(refused([](auto& o) { o.consumer_index = 0; }), HasSubstr("go together"));
  EXPECT_THAT(refused([](auto& o) { o.num_consumers = 2; }), HasSubstr("go together"));
  EXPECT_THAT(refused([](auto& o) {
                o.delivery = CrossTrainerCache{"a"};
                o.num_consumers = 2, o.consumer_index = 0;
              }),
              HasSubstr("coordinated reads"));
  EXPECT_THAT(
      refused([](auto& o) { o.delivery = CrossTrainerCache{"a"}, o.order = kDeterministic; }),
      HasSubstr("kDeterministic"));
  EXPECT_THAT(
      refused([](auto& o) { o.delivery = CrossTrainerCache{"a"}, o.visitation = kAtLeastOnce; }),
      HasSubstr("cross_trainer_cache"));
  EXPECT_THAT(refused([](auto& o) { o.partitions = 2; }),
              HasSubstr("requires order kDeterministic"));
  EXPECT_THAT(refused([](auto& o) {
                o.consumer_group = ConsumerGroup{2, 0};
              }),
              HasSubstr("set num_consumers"));
  const DeterministicOrder ordered{.num_consumers = 4};
  EXPECT_THAT(refused([&](auto& o) { o.delivery = ordered, o.rests = RemainderPolicy::kDrop; }),
              HasSubstr("remainder_policy and on_error"));
  EXPECT_THAT(refused([&](auto& o) { o.delivery = ordered, o.on_error = RoundErrorPolicy::kStop; }),
              HasSubstr("remainder_policy and on_error"));
  EXPECT_THAT(refused([&](auto& o) { o.delivery = ordered, o.visitation = kAtLeastOnce; }),
              HasSubstr("kAtLeastOnce"));
  EXPECT_THAT(refused([&](auto& o) {
                o.delivery = ordered, o.consumer_group = ConsumerGroup{2, 0};
              }),
              HasSubstr("consumer_group"));
  EXPECT_THAT(
      refused([](auto& o) { o.delivery = CoordinatedRounds(), o.visitation = kAtLeastOnce; }),
      HasSubstr("coordinated read"));
  EXPECT_THAT(refused([](auto& o) { o.rests = RemainderPolicy::kDrop; }),
              HasSubstr("require num_consumers"));
  EXPECT_THAT(refused([](auto& o) { o.delivery = CoordinatedRounds(), o.early_end = true; }),
              HasSubstr("early_end"));
  EXPECT_THAT(
      refused([](auto& o) { o.delivery = CoordinatedRounds(), o.order = MergeOrder::kFair; }),
      HasSubstr("kFair"));
}

#pragma GCC diagnostic pop

TEST(DistributeOptionsTest, ErrorsNameTheBadOption) {
  DistributeOptions options = Good();
  options.service = "";
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "");
  options = Good();
  options.service = "http://localhost:5050";
  ExpectRefused(options, absl::StatusCode::kNotFound, "http");
  options = Good();
  options.max_outstanding_requests = -1;
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "max_outstanding_requests");
  options = Good();
  options.max_outstanding_bytes = 0;
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "max_outstanding_bytes");
  options = Good();
  options.compression = static_cast<LinkCompression>(9);
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "unknown compression 9");
  options = Good();
  options.timeout = absl::ZeroDuration();
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "timeout");
  options = Good();
  options.job_name = "a\nb";
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "job_name");
  options = Good();
  options.job_name = "";
  options.run_id = "second";
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "run_id");
}

TEST(DistributeOptionsTest, ConsumersOfACoordinatedReadAreChecked) {
  const auto consumer = [](int64_t index, int64_t of) {
    DistributeOptions options = Good();
    options.job_name = "rounds";
    options.delivery = CoordinatedRounds{.consumer_index = index, .num_consumers = of};
    return options;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  ExpectRefused(consumer(0, 0), kInvalid, "num_consumers");
  ExpectRefused(consumer(-1, 2), kInvalid, "consumer_index must be from 0 to 1");
  ExpectRefused(consumer(2, 2), kInvalid, "consumer_index must be from 0 to 1");
  DistributeOptions options = consumer(0, 2);
  options.job_name = "";
  ExpectRefused(options, kInvalid, "job_name");
  options = consumer(0, 2);
  options.target_workers = TargetWorkers::kLocal;
  ExpectRefused(options, kInvalid, "LOCAL");
}

TEST(DistributeOptionsTest, GroupsOfConsumersAreChecked) {
  const auto member = [](int64_t size, int64_t number) {
    DistributeOptions options = Good();
    options.job_name = "rounds";
    options.delivery =
        CoordinatedRounds{.consumer_index = 1, .num_consumers = 2, .group = {size, number}};
    return options;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(Dataset::Range(3).Distribute(member(2, 1)).status().ok());
  ExpectRefused(member(0, 0), kInvalid, "size must be from 1");
  ExpectRefused(member(1 << 20, 0), kInvalid, "size must be from 1");
  ExpectRefused(member(2, 2), kInvalid, "member must be from 0 to 1");
  ExpectRefused(member(2, -1), kInvalid, "member must be from 0 to 1");
}

TEST(DistributeOptionsTest, RoundsAreForAsManyConsumersAsThereAre) {
  const Dataset rounds =
      Dataset::Range(9).Rounds(4, {.bucket = [](auto x) { return x; }}).Prefetch(2);
  const auto mistake = [&](std::optional<int64_t> consumers) {
    DistributeOptions options = Good();
    options.job_name = "rounds";
    if (consumers) options.delivery = CoordinatedRounds{.num_consumers = *consumers};
    return std::string(rounds.Distribute(options).status().message());
  };
  EXPECT_EQ(mistake(4), "");
  EXPECT_EQ(mistake(2), "");  // two rounds of one bucket
  EXPECT_THAT(mistake(3), HasSubstr("num_consumers is 3, but Rounds(4)"));
  EXPECT_THAT(mistake(std::nullopt), HasSubstr("set num_consumers"));
}

TEST(DistributeOptionsTest, ThereAreSixModes) {
  DistributeOptions options = Good();
  for (uint8_t mode = 0; mode < 6; ++mode) {
    options.processing_mode = static_cast<ShardingPolicy>(mode);
    EXPECT_TRUE(Dataset::Range(3).Distribute(options).status().ok()) << int{mode};
  }
  options.processing_mode = static_cast<ShardingPolicy>(6);
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "FILE_OR_DATA or HINT");
}

const bool kRegistered =
    RegisterMap("options.of_the_moment",
                {.output_spec = [](const Spec& input) -> absl::StatusOr<Spec> { return input; },
                 .call = [](CallContext&) { return absl::UnimplementedError("is never called"); },
                 .deterministic = false})
        .ok();

// Every worker must see the same elements above the cut.
TEST(DistributeOptionsTest, NondeterministicDatasetsAreNotCutByElements) {
  ASSERT_TRUE(kRegistered);
  const Dataset data =
      Dataset::Range(3).Map([](Expr x) { return Call("options.of_the_moment", x); });
  DistributeOptions options = Good();
  auto refused = [&](const Dataset& dataset) {
    const absl::Status status = dataset.Distribute(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not deterministic"));
  };
  options.processing_mode = ShardingPolicy::kData;
  refused(data);
  options.processing_mode = ShardingPolicy::kHint;
  refused(data.Shard(kShardHint, 0));
  EXPECT_TRUE(Dataset::Range(3)
                  .Shard(kShardHint, 0)
                  .Map([](Expr x) { return Call("options.of_the_moment", x); })
                  .Distribute(options)
                  .status()
                  .ok());
  options.processing_mode = ShardingPolicy::kFile;
  EXPECT_TRUE(data.Distribute(options).status().ok());
}

TEST(DistributeOptionsTest, ACrossTrainerCacheNamesItsRequirements) {
  const auto refused = [](const std::function<void(DistributeOptions&)>& change) {
    DistributeOptions options = Good();
    options.delivery = CrossTrainerCache{"a"};
    change(options);
    const absl::Status status = Dataset::Range(3).Repeat().Distribute(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refused([](auto& o) { o.delivery = CrossTrainerCache(); }), HasSubstr("trainer_id"));
  EXPECT_THAT(refused([](auto& o) { o.job_name = ""; }), HasSubstr("job_name"));
  EXPECT_THAT(refused([](auto& o) { o.ack_mode = AckMode::kOnCommit; }), HasSubstr("kOnCommit"));
}

TEST(DistributeOptionsTest, AFixedOrderSaysWhereItCannotHold) {
  const auto refused = [](const std::function<void(DistributeOptions&)>& change) {
    DistributeOptions options = Good();
    options.processing_mode = ShardingPolicy::kDynamic;
    options.delivery = DeterministicOrder();
    EXPECT_TRUE(Dataset::Range(3).Distribute(options).status().ok());
    change(options);
    const absl::Status status = Dataset::Range(3).Distribute(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refused([](auto& o) { o.processing_mode = ShardingPolicy::kOff; }),
              HasSubstr("depends on their number"));
  EXPECT_THAT(refused([](auto& o) { o.max_outstanding_requests = 7; }),
              HasSubstr("8 partitions in turn: max_outstanding_requests must be at least that, "
                        "not 7"));
  EXPECT_THAT(refused([](auto& o) { o.quota.max_permits = 2; }), HasSubstr("max_permits"));
  EXPECT_THAT(refused([](auto& o) { o.delivery = DeterministicOrder{.partitions = -1}; }),
              HasSubstr("partitions"));
}

TEST(DistributeOptionsTest, AFixedOrderOfSeveralConsumersHasNoRounds) {
  DistributeOptions good = Good();
  good.processing_mode = ShardingPolicy::kDynamic;
  good.delivery = DeterministicOrder{.consumer_index = 3, .num_consumers = 4};
  good.max_outstanding_requests = 2;  // of the 8 partitions, this consumer's
  EXPECT_TRUE(Dataset::Range(3).Distribute(good).status().ok());
  const auto refused = [&](const std::function<void(DistributeOptions&)>& change) {
    DistributeOptions options = good;
    change(options);
    const absl::Status status = Dataset::Range(3).Distribute(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refused([](auto& o) { o.max_outstanding_requests = 1; }),
              HasSubstr("each of 2 partitions"));
  EXPECT_THAT(refused([](auto& o) {
                o.delivery = DeterministicOrder{.consumer_index = 4, .num_consumers = 4};
              }),
              HasSubstr("consumer_index"));
  EXPECT_THAT(refused([](auto& o) { o.job_name = ""; }), HasSubstr("job_name"));
  const absl::Status rounds =
      Dataset::Range(9).Rounds(4, {.bucket = [](auto x) { return x; }}).Distribute(good).status();
  EXPECT_EQ(rounds.code(), absl::StatusCode::kInvalidArgument) << rounds;
  EXPECT_THAT(std::string(rounds.message()), HasSubstr("deals element by element"));
}

TEST(DistributeOptionsTest, QuotasAndNamespacesAreChecked) {
  DistributeOptions options = Good();
  options.quota.max_permits = -1;
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "max_permits");
  for (const JobShare share : {JobShare{.weight = 0}, JobShare{.weight = 1001},
                               JobShare{.priority = 1001}, JobShare{.priority = -1001}}) {
    options = Good();
    options.share = share;
    ExpectRefused(options, absl::StatusCode::kInvalidArgument, "a job's weight must be from 1");
  }
  options = Good();
  options.name_space = "a/b";
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, "name_space");
}

TEST(DistributeOptionsTest, ProcessingModesHaveTheirNames) {
  EXPECT_EQ(*ProcessingModeFromName("parallel_epochs"), ShardingPolicy::kOff);
  EXPECT_EQ(*ProcessingModeFromName("distributed_epoch"), ShardingPolicy::kDynamic);
  absl::Status status = ProcessingModeFromName("sometimes").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("distributed_epoch"));
}

}  // namespace
}  // namespace penstock::client
