// SPDX-License-Identifier: Apache-2.0
// The parts of a dataset of this process that each replica reads.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "penstock/sharding.h"
#include "tests/dataplane/replica/replicas.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Steps = std::vector<std::vector<Rows>>;

InputOptions Sharded(AutoShardPolicy policy) {
  InputOptions options;
  options.auto_shard = policy;
  return options;
}

// Files of this many lines each: the numbers from 0.
class Files {
 public:
  Files(const std::string& name, int files, int lines)
      : folder_(std::filesystem::path(::testing::TempDir()) / name) {
    std::filesystem::create_directories(folder_);
    for (int f = 0, number = 0; f < files; ++f) {
      std::ofstream out(folder_ / absl::StrCat("part-", f));
      for (int line = 0; line < lines; ++line) out << number++ << "\n";
    }
  }
  ~Files() { std::filesystem::remove_all(folder_); }

  Dataset Numbers(bool shuffle = false) const {
    return Dataset::ListFiles((folder_ / "part-*").string(), {.shuffle = shuffle})
        .Interleave([](auto name) { return Dataset::TextLine(name); }, {.cycle_length = 1})
        .Map([](auto line) { return StringToNumber(line, kInt64); });
  }

 private:
  const std::filesystem::path folder_;
};

TEST(RebatchOfReplicas, RefillsAcrossBatches) {
  const Dataset batches = Dataset::Range(100).Batch(7, {.drop_remainder = true}).Repeat();
  const ReplicaGroup first = Process(0, {2, 2});
  const ReplicaGroup second = Process(1, {2, 2});
  EXPECT_EQ(ReadSteps(DistributeDataset(first, batches, Sharded(AutoShardPolicy::kOff)), 2),
            (Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6}}}));
  EXPECT_EQ(ReadSteps(DistributeDataset(second, batches, Sharded(AutoShardPolicy::kOff)), 2),
            (Steps{{{0, 1}, {2}}, {{3, 4}, {5, 6}}}));
  // A short batch is filled from the next one, so that no part is smaller.
  const Dataset with_short_ones = Dataset::Range(10).Batch(7).Repeat();
  EXPECT_EQ(ReadSteps(DistributeDataset(first, with_short_ones, Sharded(AutoShardPolicy::kOff)), 3),
            (Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6}}, {{7, 8}, {9, 0}}}));
}

TEST(RebatchOfReplicas, UnknownBatchSizesAreCutInEqualPartsToo) {
  const Dataset unknown = Dataset::Range(6).Batch(4).Map([](auto x) { return x + 0; });
  EXPECT_EQ(ReadSteps(DistributeDataset(Mirrored(3), unknown)),
            (Steps{{{0, 1}, {2}, {3}}, {{4}, {5}, {}}}));
}

TEST(RebatchOfReplicas, ProcessesMayHaveDifferentNumbersOfReplicas) {
  const Dataset batches = Dataset::Range(12).Batch(6);
  EXPECT_EQ(ReadSteps(DistributeDataset(Process(0, {1, 2}), batches)), (Steps{{{0, 1}}, {{6, 7}}}));
  EXPECT_EQ(ReadSteps(DistributeDataset(Process(1, {1, 2}), batches)),
            (Steps{{{2, 3}, {4, 5}}, {{8, 9}, {10, 11}}}));
}

TEST(RebatchOfReplicas, ElementsWithoutRowsMustBeBatchedFirst) {
  const absl::Status status = DistributeDataset(Mirrored(2), Dataset::Range(6)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("call Batch"));
  EXPECT_EQ(ReadSteps(DistributeDataset(Mirrored(1), Dataset::Range(2))), (Steps{{{0}}, {{1}}}));
}

TEST(AutoShard, DataKeepsGlobalBatchesWhole) {
  const Dataset batches = Dataset::Range(10).Batch(7);
  EXPECT_EQ(ReadSteps(DistributeDataset(Process(0, {2, 2}), batches)),
            (Steps{{{0, 1}, {2, 3}}, {{7}, {8}}}));
  EXPECT_EQ(ReadSteps(DistributeDataset(Process(1, {2, 2}), batches)),
            (Steps{{{4, 5}, {6}}, {{9}, {}}}));
}

TEST(AutoShard, UnseededShufflesAreAlikeInAllProcesses) {
  const Dataset batches = Dataset::Range(40).Shuffle(40).Batch(8);
  std::multiset<int64_t> seen;
  for (int pass = 0; pass < 2; ++pass) {
    for (int process = 0; process < 2; ++process) {
      absl::StatusOr<DistributedDataset> dataset =
          DistributeDataset(Process(process, {1, 1}), batches);
      ASSERT_TRUE(dataset.ok()) << dataset.status();
      ReadSteps(dataset, pass);  // the earlier passes
      for (const auto& step : ReadSteps(dataset))
        for (const Rows& rows : step) seen.insert(rows.begin(), rows.end());
    }
  }
  EXPECT_EQ(seen.size(), 80u);
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(seen.count(i), 2u) << i;
}

TEST(AutoShard, EachPassIsShuffledDifferently) {
  absl::StatusOr<DistributedDataset> dataset =
      DistributeDataset(Process(0, {1, 1}), Dataset::Range(64).Shuffle(64).Batch(8));
  EXPECT_NE(ReadSteps(dataset), ReadSteps(dataset));
}

TEST(AutoShard, FileGivesEachPipelineItsFiles) {
  const Files files("replica-files", 4, 3);
  for (const bool shuffle : {false, true}) {
    InputOptions options = Sharded(AutoShardPolicy::kFile);
    options.steps = 6;
    std::multiset<int64_t> seen;
    for (int process = 0; process < 2; ++process) {
      const Steps steps = ReadSteps(
          DistributeDataset(Process(process, {1, 1}), files.Numbers(shuffle).Batch(2), options));
      EXPECT_EQ(steps.size(), 6u);
      if (!shuffle && process == 1) {
        EXPECT_EQ(steps, (Steps{{{3}}, {{4}}, {{5}}, {{9}}, {{10}}, {{11}}}));
      }
      for (const auto& step : steps)
        for (const Rows& rows : step) seen.insert(rows.begin(), rows.end());
    }
    EXPECT_EQ(seen.size(), 12u);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 12u);
  }
}

TEST(AutoShard, FileRefusesDatasetsWithoutEnoughFiles) {
  InputOptions options = Sharded(AutoShardPolicy::kFile);
  options.steps = 1;
  const absl::Status no_files =
      DistributeDataset(Process(0, {1, 1}), Dataset::Range(6).Batch(2), options).status();
  EXPECT_EQ(no_files.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(no_files.message()), HasSubstr("Range"));
  const Files files("replica-few-files", 2, 3);
  const absl::Status few =
      DistributeDataset(Process(0, {1, 1, 1}), files.Numbers().Batch(3), options).status();
  EXPECT_EQ(few.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(few.message()), HasSubstr("only 2 file(s)"));
}

TEST(AutoShard, AutoTakesFilesWhereStepsNeedNotBeCountedElseData) {
  const Files files("replica-auto", 2, 4);
  const auto reads_files = [&](const Dataset& dataset) {
    absl::StatusOr<DistributedDataset> distributed = DistributeDataset(Process(0, {1, 1}), dataset);
    EXPECT_TRUE(distributed.ok()) << distributed.status();
    return distributed.ok() && distributed->Explain().find("ShardFiles") != std::string::npos;
  };
  EXPECT_TRUE(reads_files(files.Numbers().Batch(2).Repeat()));
  EXPECT_FALSE(reads_files(files.Numbers().Batch(2)));
  EXPECT_FALSE(reads_files(Dataset::Range(5).Batch(2).Repeat()));
}

TEST(AutoShard, HintIsWhereTheDatasetSays) {
  const Dataset hinted =
      Dataset::Range(12).Shard(kShardHint, 0).Map([](auto x) { return x * 10; }).Batch(2);
  EXPECT_EQ(
      ReadSteps(DistributeDataset(Process(1, {1, 1}), hinted, Sharded(AutoShardPolicy::kHint))),
      (Steps{{{10}}, {{30}}, {{50}}, {{70}}, {{90}}, {{110}}}));
  const absl::Status without = DistributeDataset(Process(1, {1, 1}), Dataset::Range(4).Batch(2),
                                                 Sharded(AutoShardPolicy::kHint))
                                   .status();
  EXPECT_EQ(without.code(), absl::StatusCode::kInvalidArgument);
}

TEST(ReplicationModes, PerReplicaHasAPipelineForEach) {
  InputOptions options;
  options.replication_mode = ReplicationMode::kPerReplica;
  EXPECT_EQ(ReadSteps(DistributeDataset(Mirrored(2), Dataset::Range(6).Batch(4), options)),
            (Steps{{{0, 1}, {2, 3}}, {{4}, {5}}}));
  // Under kOff each pipeline reads everything; one that ends first gives empty batches until all
  // have ended.
  options.auto_shard = AutoShardPolicy::kOff;
  EXPECT_EQ(ReadSteps(DistributeDataset(Mirrored(2), Dataset::Range(4).Batch(3), options)),
            (Steps{{{0, 1}, {0}}, {{2}, {1, 2}}, {{3}, {3}}}));
}

TEST(FromFunction, EachPipelineHasItsOwnDataset) {
  std::vector<std::string> contexts;
  InputOptions options;
  options.replication_mode = ReplicationMode::kPerReplica;
  absl::StatusOr<DistributedDataset> dataset = DistributeDatasetsFromFunction(
      Mirrored(2),
      [&](const InputContext& context) {
        contexts.push_back(context.ToString());
        const int64_t size = *context.GetPerReplicaBatchSize(4);
        return Dataset::Range(3 + context.input_pipeline_id).Batch(size);
      },
      options);
  EXPECT_EQ(ReadSteps(dataset), (Steps{{{0, 1}, {0, 1}}, {{2}, {2, 3}}}));
  EXPECT_THAT(contexts, ElementsAre("InputContext(input pipeline id 0, total: 2)",
                                    "InputContext(input pipeline id 1, total: 2)"));
}

TEST(FromFunction, OnePipelineDealsItsBatchesInTurn) {
  EXPECT_EQ(ReadSteps(DistributeDatasetsFromFunction(
                Mirrored(2), [](const InputContext&) { return Dataset::Range(5).Batch(2); })),
            (Steps{{{0, 1}, {2, 3}}, {{4}, {}}}));
}

TEST(FromFunction, OtherProcessesStepsAreNotKnown) {
  const auto finite = [](const InputContext&) { return Dataset::Range(5).Batch(2); };
  EXPECT_EQ(DistributeDatasetsFromFunction(Process(0, {1, 1}), finite).status().code(),
            absl::StatusCode::kFailedPrecondition);
  InputOptions options;
  options.steps = 4;
  EXPECT_EQ(ReadSteps(DistributeDatasetsFromFunction(Process(0, {1, 1}), finite, options)).size(),
            4u);
}

TEST(FromFunction, DatasetsThatDifferAreNamed) {
  InputOptions options;
  options.replication_mode = ReplicationMode::kPerReplica;
  const absl::Status status =
      DistributeDatasetsFromFunction(
          Mirrored(2),
          [](const InputContext& context) {
            const Dataset numbers = Dataset::Range(4).Batch(2);
            return context.input_pipeline_id == 0
                       ? numbers
                       : numbers.Map([](auto x) { return Cast(x, kFloat32); });
          },
          options)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pipelines 0 and 1"));
}

TEST(MapsBehindTheDistribution, SeeEachReplicasBatch) {
  absl::StatusOr<DistributedDataset> dataset =
      DistributeDataset(Mirrored(2), Dataset::Range(7).Batch(4));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  absl::StatusOr<DistributedDataset> mapped = dataset->Map([](auto x) { return x * x; });
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ(ReadSteps(mapped), (Steps{{{0, 1}, {4, 9}}, {{16, 25}, {36}}}));
  absl::StatusOr<DistributedDataset> sums = mapped->Map([](auto x) { return ReduceSum(x); });
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_EQ(sums->element_spec()[1], Spec(Scalar(kInt64)));
  EXPECT_EQ(ReadSteps(sums), (Steps{{{1}, {13}}, {{41}, {36}}}));
  const absl::Status wrong = dataset->Map([](auto x) { return x["a"]; }).status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
}

TEST(Iterating, StepsAreCountedAndTheEndIsOutOfRange) {
  absl::StatusOr<DistributedDataset> dataset =
      DistributeDataset(Mirrored(2), Dataset::Range(4).Batch(4));
  EXPECT_EQ(dataset->cardinality(), 1);
  EXPECT_EQ(dataset->steps(), 1);
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  EXPECT_EQ(it->CheckStep(1).code(), absl::StatusCode::kOutOfRange);
  ASSERT_TRUE(it->CheckStep(0).ok());
  ASSERT_TRUE(it->Next().ok());
  EXPECT_EQ(it->GetNext().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(it->Next()->has_value());
}

TEST(Iterating, AnErrorOfOneReplicaIsTheSteps) {
  const Dataset numbers = Dataset::FromTensorSlices<std::string>({"1", "2", "x", "4", "5", "6"})
                              .Map([](auto line) { return StringToNumber(line, kInt64); })
                              .Batch(1)
                              .Rebatch(2);
  absl::StatusOr<DistributedDataset> dataset = DistributeDataset(Mirrored(2), numbers);
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  ASSERT_TRUE(it->Next().ok());
  EXPECT_EQ(it->Next().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(it->Next().ok());
}

// Parts have 3, 3 and 2 rows. Those after an error are as large as its own would have been.
TEST(Iterating, AnErrorTakesItsPlaceAmongPartsOfUnevenSizes) {
  for (const PartialBatches policy :
       {PartialBatches::kEmpty, PartialBatches::kDrop, PartialBatches::kPad,
        PartialBatches::kRepeat, PartialBatches::kError}) {
    std::vector<std::string> lines;
    for (int i = 0; i < 32; ++i) lines.push_back(i == 9 ? "x" : absl::StrCat(i));
    const Dataset numbers = Dataset::FromTensorSlices<std::string>(lines)
                                .Map([](auto line) { return StringToNumber(line, kInt64); })
                                .Batch(8);
    InputOptions options;
    options.partial_batches = policy;
    absl::StatusOr<DistributedDataset> dataset = DistributeDataset(Mirrored(3), numbers, options);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
    EXPECT_EQ(ReadSteps(*it, 1), (Steps{{{0, 1, 2}, {3, 4, 5}, {6, 7}}}));
    EXPECT_EQ(it->Next().status().code(), absl::StatusCode::kInvalidArgument);
    // The other replicas' rows of the step with the error are used in this step.
    EXPECT_EQ(ReadSteps(*it, 1), (Steps{{{21, 22, 23}, {24, 25, 26}, {27, 28}}}))
        << static_cast<int>(policy);
  }
}

TEST(Iterating, InsideAReplicaFunctionIsRefused) {
  const ReplicaGroup group = Mirrored(2);
  absl::StatusOr<DistributedDataset> dataset = DistributeDataset(group, Dataset::Range(8).Batch(4));
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  absl::StatusOr<DistributedValues> values = it->GetNext();
  const absl::Status status =
      group.Run([&](const Element&) { return it->Next().status(); }, *values);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("outside"));
}

TEST(Iterating, AnElementsRangeAndAReduction) {
  absl::StatusOr<DistributedDataset> dataset =
      DistributeDataset(Mirrored(2), Dataset::Range(10).Batch(4));
  int64_t steps = 0;
  for (absl::StatusOr<DistributedValues>& values : dataset->Elements()) {
    ASSERT_TRUE(values.ok()) << values.status();
    ++steps;
  }
  EXPECT_EQ(steps, 3);
  absl::StatusOr<int64_t> sum =
      dataset->Reduce(int64_t{0}, [](int64_t state, const DistributedValues& values) {
        for (const Element& element : LocalResults(values))
          for (const int64_t value : element.tensor(0).data<int64_t>()) state += value;
        return state;
      });
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(*sum, 45);
}

TEST(Iterating, StopEndsIt) {
  absl::StatusOr<DistributedDataset> dataset =
      DistributeDataset(Mirrored(2), Dataset::Range(8).Batch(4).Repeat());
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  ASSERT_TRUE(it->Next().ok());
  EXPECT_TRUE(it->Stop().ok());
  EXPECT_EQ(it->Next().status().code(), absl::StatusCode::kCancelled);
}

// From every step of a pass, under every policy, on another iterator.
TEST(StateOfTheWhole, GoesOnAfterAnyStep) {
  for (const PartialBatches policy : {PartialBatches::kEmpty, PartialBatches::kDrop,
                                      PartialBatches::kPad, PartialBatches::kRepeat}) {
    for (const ReplicationMode mode : {ReplicationMode::kPerWorker, ReplicationMode::kPerReplica}) {
      InputOptions options;
      options.partial_batches = policy;
      options.replication_mode = mode;
      if (policy != PartialBatches::kDrop) options.steps = 9;
      absl::StatusOr<DistributedDataset> dataset = DistributeDataset(
          Mirrored(3), Dataset::Range(31).Shuffle(8).Batch(7).Prefetch(2), options);
      ASSERT_TRUE(dataset.ok()) << dataset.status();
      absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
      std::vector<State> states;
      std::vector<std::vector<Rows>> steps;
      while (true) {
        absl::StatusOr<State> state = it->Save();
        ASSERT_TRUE(state.ok()) << state.status();
        states.push_back(*std::move(state));
        std::vector<std::vector<Rows>> step = ReadSteps(*it, 1);
        if (step.empty()) break;
        steps.push_back(step[0]);
      }
      EXPECT_TRUE(it->Commit(states.back()).ok());
      EXPECT_GE(steps.size(), 4u);
      for (size_t from = 0; from < states.size(); ++from) {
        absl::StatusOr<DistributedIterator> other = dataset->MakeIterator();
        ASSERT_TRUE(other->Restore(states[from]).ok());
        EXPECT_EQ(ReadSteps(*other), Steps(steps.begin() + from, steps.end())) << "step " << from;
      }
    }
  }
}

TEST(StateOfTheWhole, OfAnotherGroupOrDatasetIsRefusedInWords) {
  const Dataset batches = Dataset::Range(12).Batch(6);
  const auto start = [](const ReplicaGroup& group, const Dataset& dataset) {
    return *DistributeDataset(group, dataset)->MakeIterator();
  };
  const State state = *start(Mirrored(2), batches).Save();
  const absl::Status group = start(Mirrored(3), batches).Restore(state);
  EXPECT_EQ(group.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(group.message()), HasSubstr("2 replica(s)"));
  const absl::Status dataset = start(Mirrored(2), Dataset::Range(13).Batch(6)).Restore(state);
  EXPECT_EQ(dataset.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(dataset.message()), HasSubstr("Range"));
  EXPECT_EQ(start(Mirrored(2), batches).Restore(State{"PSIT"}).code(),
            absl::StatusCode::kInvalidArgument);
  State damaged = state;
  damaged.bytes.resize(damaged.bytes.size() / 2);
  EXPECT_FALSE(start(Mirrored(2), batches).Restore(damaged).ok());
}

TEST(ReduceAndGather, PutReplicasTogether) {
  const ReplicaGroup group = Mirrored(2);
  absl::StatusOr<DistributedDataset> dataset =
      DistributeDataset(group, Dataset::FromTensorSlices<float>({1, 2, 3, 4, 5, 9}).Batch(3));
  absl::StatusOr<DistributedIterator> it = dataset->MakeIterator();
  absl::StatusOr<DistributedValues> values = it->GetNext();  // [1 2] and [3]
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(group.Gather(*values)->ToString(), "[1 2 3] float32 [3]");
  EXPECT_EQ(group.Reduce(ReduceOp::kSum, *values, 0)->ToString(), "6 float32");
  EXPECT_EQ(group.Reduce(ReduceOp::kMean, *values, 0)->ToString(), "2 float32");
  const absl::Status shapes = group.Reduce(ReduceOp::kSum, *values).status();
  EXPECT_EQ(shapes.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(shapes.message()), HasSubstr("different shapes"));
  EXPECT_EQ(group.Reduce(ReduceOp::kSum, *values, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  absl::StatusOr<DistributedValues> sums =
      group.RunTraced([](auto x) { return ReduceSum(x); }, *values);
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_EQ(group.Reduce(ReduceOp::kSum, *sums)->ToString(), "6 float32");
  EXPECT_EQ(group.Reduce(ReduceOp::kMean, *sums)->ToString(), "3 float32");
}

TEST(ReduceAndGather, IntegersAddAndHaveNoMean) {
  const ReplicaGroup group = Mirrored(2);
  absl::StatusOr<DistributedDataset> dataset = DistributeDataset(group, Dataset::Range(4).Batch(4));
  absl::StatusOr<DistributedValues> values = dataset->MakeIterator()->GetNext();
  EXPECT_EQ(group.Reduce(ReduceOp::kSum, *values)->ToString(), "[2 4] int64 [2]");
  const absl::Status mean = group.Reduce(ReduceOp::kMean, *values).status();
  EXPECT_EQ(mean.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(mean.message()), HasSubstr("Cast"));
}

TEST(PerReplicaSpecs, AdmitAndWidenByReplica) {
  absl::StatusOr<DistributedDataset> dataset =
      DistributeDataset(Mirrored(2), Dataset::Range(8).Batch(4, {.drop_remainder = true}));
  const PerReplicaSpec spec = dataset->element_spec();
  EXPECT_EQ(spec.ToString(), "PerReplicaSpec(TensorSpec([2], int64), TensorSpec([2], int64))");
  const PerReplicaSpec three({Dense(kInt64, {3}), Dense(kInt64, {2})});
  EXPECT_EQ(spec.MostGeneral(three)->ToString(),
            "PerReplicaSpec(TensorSpec([?], int64), TensorSpec([2], int64))");
  const absl::Status fits = spec.Admits(three);
  EXPECT_EQ(fits.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(fits.message()), HasSubstr("replica 0"));
  EXPECT_EQ(spec.Admits(PerReplicaSpec({Dense(kInt64, {2})})).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      spec.MostGeneral(PerReplicaSpec({Dense(kInt32, {2}), Dense(kInt32, {2})})).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(Devices, WithoutGpusValuesComeInHostMemoryOnlyIfAsked) {
  const ReplicaGroup group = *ReplicaGroup::Mirrored({"GPU:98", "GPU:99"});
  const Dataset batches = Dataset::Range(4).Batch(4);
  const absl::Status no_gpu = DistributeDataset(group, batches).status();
  EXPECT_EQ(no_gpu.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(no_gpu.message()), HasSubstr("GPU:98"));
  EXPECT_THAT(std::string(no_gpu.message()), HasSubstr("fetch_to_device"));
  InputOptions options;
  options.fetch_to_device = false;
  EXPECT_EQ(ReadSteps(DistributeDataset(group, batches, options)), (Steps{{{0, 1}, {2, 3}}}));
}

TEST(Devices, BuffersMayBeOfAnySize) {
  for (const int64_t size : {0, 1, 4}) {
    InputOptions options;
    options.per_replica_buffer_size = size;
    EXPECT_EQ(ReadSteps(DistributeDataset(Mirrored(2), Dataset::Range(9).Batch(4), options)),
              (Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {}}}));
  }
  InputOptions options;
  options.per_replica_buffer_size = -1;
  EXPECT_EQ(DistributeDataset(Mirrored(2), Dataset::Range(9).Batch(4), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
