// SPDX-License-Identifier: Apache-2.0
// The examples of tf.distribute's own documentation as test cases: X10 to X16 of our list (X1 to
// X9: tests/cluster).
#include "tests/dataplane/replica/replicas.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

// Two replicas on GPUs. Their values stay in host memory.
DistributedDataset Distributed(const ReplicaGroup& group, const Dataset& dataset) {
  InputOptions options;
  options.fetch_to_device = false;
  absl::StatusOr<DistributedDataset> distributed = DistributeDataset(group, dataset, options);
  EXPECT_TRUE(distributed.ok()) << distributed.status();
  return *distributed;
}

// Returns a tuple of tensors of one value each.
template <class A, class B>
Dataset Pair(A a, B b) {
  const int64_t dims[] = {1};
  return Dataset::FromTensors({Tensor(DTypeOf<A>, dims, &a), Tensor(DTypeOf<B>, dims, &b)},
                              Spec::Tuple({Dense(DTypeOf<A>, {1}), Dense(DTypeOf<B>, {1})}));
}

// Returns the result of X10's only step: labels - 0.3 * features.
DistributedValues X10Result(int64_t& steps) {
  const ReplicaGroup group = TwoGpus();
  const DistributedDataset dataset = Distributed(group, Pair(1.0f, 1.0f).Repeat(4).Batch(4));
  DistributedValues result;
  for (absl::StatusOr<DistributedValues>& values : dataset.Elements()) {
    EXPECT_TRUE(values.ok()) << values.status();
    absl::StatusOr<DistributedValues> stepped =
        group.RunTraced([](Expr inputs) { return inputs[1] - inputs[0] * 0.3f; }, *values);
    EXPECT_TRUE(stepped.ok()) << stepped.status();
    result = *std::move(stepped);
    ++steps;
  }
  return result;
}

TEST(DocExamples, X10TwoReplicasLoop) {
  int64_t steps = 0;
  const DistributedValues result = X10Result(steps);
  EXPECT_EQ(steps, 1);
  ASSERT_EQ(result.size(), 2u);
  for (const Element& replica : LocalResults(result)) {
    EXPECT_THAT(replica.tensor(0).dims(), ElementsAre(2, 1));
    EXPECT_THAT(replica.tensor(0).data<float>(), ElementsAre(0.7f, 0.7f));
  }
}

TEST(DocExamples, X11EpochsAndSteps) {
  for (const bool two : {true, false}) {
    const ReplicaGroup group = two ? TwoGpus() : Mirrored(1);
    const DistributedDataset dataset = Distributed(group, Pair(1.0f, 1.0f).Repeat(50).Batch(4));
    for (int epoch = 0; epoch < 2; ++epoch) {
      absl::StatusOr<DistributedIterator> it = dataset.MakeIterator();
      float total = 0;
      for (int step = 0; step < 3; ++step) {
        absl::StatusOr<DistributedValues> values = it->GetNext();
        ASSERT_TRUE(values.ok()) << values.status();
        absl::StatusOr<PerReplica<float>> losses =
            group.Run([](const Element&) { return 0.1f; }, *values);
        ASSERT_TRUE(losses.ok()) << losses.status();
        total += *group.Reduce(ReduceOp::kSum, *losses);
      }
      char line[64];
      std::snprintf(line, sizeof line, "Epoch %d, Loss: %.4f", epoch + 1, total / 3);
      EXPECT_EQ(std::string(line),
                absl::StrCat("Epoch ", epoch + 1, two ? ", Loss: 0.2000" : ", Loss: 0.1000"));
    }
  }
}

TEST(DocExamples, X12ElementSpecAsACheck) {
  const ReplicaGroup group = TwoGpus();
  const int64_t dims[] = {1};
  const float two = 2;
  const DistributedDataset dataset =
      Distributed(group, Dataset::FromTensors({Tensor(kFloat32, dims, &two)}, Dense(kFloat32, {1}))
                             .Repeat(100)
                             .Batch(4));
  absl::StatusOr<DistributedIterator> it = dataset.MakeIterator();
  absl::StatusOr<DistributedValues> values = it->GetNext();
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE(dataset.element_spec().Admits(*values).ok());
  absl::StatusOr<DistributedValues> squares =
      group.RunTraced([](Expr x) { return x * x; }, *values);
  ASSERT_TRUE(squares.ok()) << squares.status();
  EXPECT_EQ(squares->ToString(),
            "PerReplica:{\n  0: [4 4] float32 [2,1],\n  1: [4 4] float32 [2,1]\n}");
}

TEST(DocExamples, X13Next) {
  const Dataset numbers = Dataset::FromTensorSlices<int32_t>({1, 2, 3, 4}).Repeat().Batch(4);
  const auto first = [&](const ReplicaGroup& group) {
    absl::StatusOr<DistributedIterator> it = Distributed(group, numbers).MakeIterator();
    return it->GetNext()->ToString();
  };
  EXPECT_EQ(first(TwoGpus()), "PerReplica:{\n  0: [1 2] int32 [2],\n  1: [3 4] int32 [2]\n}");
  EXPECT_EQ(first(Mirrored(1)), "[1 2 3 4] int32 [4]");
}

TEST(DocExamples, X14ElementSpecOfOneReplica) {
  EXPECT_EQ(Distributed(Mirrored(1), Pair(1.0f, int32_t{2}).Repeat(100).Batch(16))
                .element_spec()
                .ToString(),
            "(TensorSpec([?,1], float32), TensorSpec([?,1], int32))");
}

TEST(DocExamples, X15ElementSpecOfTwoReplicas) {
  EXPECT_EQ(Distributed(TwoGpus(), Pair(1.0f, int32_t{2}).Repeat(100).Batch(16))
                .element_spec()
                .ToString(),
            "(PerReplicaSpec(TensorSpec([?,1], float32), TensorSpec([?,1], float32)), "
            "PerReplicaSpec(TensorSpec([?,1], int32), TensorSpec([?,1], int32)))");
}

TEST(DocExamples, X16PrintedForm) {
  int64_t steps = 0;
  EXPECT_EQ(X10Result(steps).ToString(),
            "PerReplica:{\n  0: [0.7 0.7] float32 [2,1],\n  1: [0.7 0.7] float32 [2,1]\n}");
}

}  // namespace
}  // namespace penstock
