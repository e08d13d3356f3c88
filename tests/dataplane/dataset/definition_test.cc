// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/base/config.h"
#include "control/proto/dataset.pb.h"
#include "dataplane/dataset/graph/definition_size.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/memory/pool.h"
#include "penstock/plugin.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

dataset::wire::Dataset Message(const Dataset& dataset) {
  dataset::wire::Dataset message;
  EXPECT_TRUE(message.ParseFromString(Serialize(dataset).value()));
  return message;
}

std::string Refusal(const dataset::wire::Dataset& message) {
  return ParseDataset(message.SerializeAsString()).status().ToString();
}

TEST(Definition, FingerprintsFollowTheContents) {
  EXPECT_EQ(Dataset::Range(5).Take(2).fingerprint(), Dataset::Range(5).Take(2).fingerprint());
  EXPECT_NE(Dataset::Range(5).Take(2).fingerprint(), Dataset::Range(5).Take(3).fingerprint());
  EXPECT_NE(Dataset::Range(5).Take(2).fingerprint(), Dataset::Range(6).Take(2).fingerprint());
  EXPECT_NE(Dataset::Range(5).Take(2).fingerprint(), Dataset::Range(5).Skip(2).fingerprint());
  EXPECT_NE(Dataset::FromTensors(1).fingerprint(), Dataset::FromTensors(2).fingerprint());
  EXPECT_NE(Dataset::FromTensors(1).fingerprint(), Dataset::FromTensors(1.0f).fingerprint());
}

TEST(Definition, ParallelismDoesNotChangeTheFingerprint) {
  auto mapped = [](int64_t calls) {
    return Dataset::Range(5).Map([](auto x) { return x + 1; }, {.num_parallel_calls = calls});
  };
  EXPECT_EQ(mapped(1).fingerprint(), mapped(4).fingerprint());
}

TEST(Definition, FingerprintsStayAsTheyAre) {
  // Journals and states contain these fingerprints: after a change they would name another dataset.
  EXPECT_EQ(Dataset::Range(1, 7, 2).fingerprint(), 12917521636745452728u);
  EXPECT_EQ(Dataset::FromTensorSlices<std::string>({"a", "bc"}).fingerprint(),
            5821767781044259604u);
}

TEST(Definition, EndsSurelyUnlessSomethingInItMayGoOnForEver) {
  const auto odd = [](auto x) { return x % 2 == 1; };
  EXPECT_TRUE(SurelyEnds(Dataset::Range(5)));
  EXPECT_TRUE(SurelyEnds(Dataset::Range(5).Repeat(3).Filter(odd).Batch(2)));
  EXPECT_TRUE(SurelyEnds(Dataset::Range(5).Repeat().Take(7)));
  EXPECT_FALSE(SurelyEnds(Dataset::Range(5).Repeat()));
  EXPECT_FALSE(SurelyEnds(Dataset::Range(5).Repeat().Filter(odd)));
  const auto rows = [](auto x) { return Dataset::Range(x); };
  EXPECT_TRUE(SurelyEnds(Dataset::Range(5).FlatMap(rows)));
  EXPECT_FALSE(SurelyEnds(Dataset::Range(5).Repeat().FlatMap(rows)));
  EXPECT_FALSE(
      SurelyEnds(Dataset::Range(5).FlatMap([](auto x) { return Dataset::Range(x).Repeat(); })));
  ASSERT_TRUE(
      RegisterSource("definition.may_go_on",
                     {.describe = [](const Params&) { return SourceInfo{.spec = Scalar(kInt64)}; },
                      .open = [](const Params&) -> absl::StatusOr<std::unique_ptr<SourceReader>> {
                        return absl::UnimplementedError("it is not read");
                      }})
          .ok());
  EXPECT_FALSE(SurelyEnds(FromSource("definition.may_go_on")));
}

TEST(Definition, FirstDifferenceIsTheLowestNodeThatDiffers) {
  const auto summary = Summarize(Dataset::Range(5).Take(4).Batch(2));
  ASSERT_EQ(summary.size(), 3u);
  EXPECT_EQ(summary[2].name, "Batch#2");
  EXPECT_EQ(FirstDifference(summary, Summarize(Dataset::Range(5).Take(4).Batch(2))), "");
  EXPECT_EQ(FirstDifference(summary, Summarize(Dataset::Range(5).Take(4).Batch(3))), "Batch#2");
  EXPECT_EQ(FirstDifference(summary, Summarize(Dataset::Range(5).Take(3).Batch(2))), "Take#1");
  EXPECT_EQ(FirstDifference(summary, Summarize(Dataset::Range(5).Take(4))), "Batch#2");
}

TEST(Definition, ConstantsOfEveryKindComeBack) {
  const std::vector<int64_t> flat = {5}, splits_outer = {0, 2, 3}, splits = {0, 2, 2, 5};
  const std::vector<float> values = {1, 2, 3, 4, 5};
  Tensor ragged(kFloat32, flat, values.data());
  const absl::Span<const int64_t> levels[] = {splits_outer, splits};
  ragged.SetRagged(levels);
  const std::vector<int64_t> two = {2}, indices = {0, 1, 3, 2}, dense_shape = {4, 3};
  Tensor sparse(kFloat32, two, values.data());
  sparse.SetSparse(indices, dense_shape);
  TensorSpec optional = Scalar(kInt64);
  optional.optional = true;
  const Dataset dataset = Dataset::FromTensors(
      {Tensor(), ragged, sparse},
      Spec::Tuple({Spec(optional), Spec(Ragged(kFloat32, Shape({2, kUnknownDim, kUnknownDim}), 2)),
                   Spec(Sparse(kFloat32, Shape({4, 3})))}));
  ASSERT_TRUE(dataset.status().ok()) << dataset.status();
  const absl::StatusOr<Dataset> parsed = ParseDataset(Serialize(dataset).value());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->fingerprint(), dataset.fingerprint());
  for (absl::StatusOr<Element>& element : parsed->Elements()) {
    ASSERT_TRUE(element.ok()) << element.status();
    EXPECT_FALSE(element->tensor(0).present());
    EXPECT_THAT(element->tensor(1).row_splits(1), ElementsAre(0, 2, 2, 5));
    EXPECT_THAT(element->tensor(2).indices(), ElementsAre(0, 1, 3, 2));
  }
}

TEST(Definition, InvalidOnesAreRefused) {
  EXPECT_EQ(ParseDataset("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseDataset("\xff\xff").status().code(), absl::StatusCode::kInvalidArgument);
  dataset::wire::Dataset message = Message(Dataset::Range(5));
  message.set_version(99);
  EXPECT_THAT(Refusal(message), HasSubstr("version 99"));
}

TEST(Definition, AnUnknownOperationIsNamed) {
  dataset::wire::Dataset message = Message(Dataset::Range(5).Take(2));
  message.mutable_nodes(1)->set_op("Nonesuch");
  EXPECT_THAT(Refusal(message), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("Nonesuch#1")));
}

TEST(Definition, AnotherVersionOfAnOperationIsRefusedByNumber) {
  dataset::wire::Dataset message = Message(Dataset::Range(5).Take(2));
  message.mutable_nodes(1)->set_version(7);
  EXPECT_THAT(Refusal(message),
              AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("Take#1"), HasSubstr("version 7")));
}

TEST(Definition, WrongAttributesAreNamed) {
  const dataset::wire::Dataset good = Message(Dataset::Range(5).Take(2));
  dataset::wire::Dataset missing = good;
  missing.mutable_nodes(0)->mutable_attrs()->RemoveLast();
  EXPECT_THAT(Refusal(missing), AllOf(HasSubstr("Range#0"), HasSubstr("stop is missing")));
  dataset::wire::Dataset other_type = good;
  other_type.mutable_nodes(1)->mutable_attrs(0)->set_truth(true);
  EXPECT_THAT(Refusal(other_type),
              AllOf(HasSubstr("Take#1"), HasSubstr("count"), HasSubstr("int")));
  dataset::wire::Dataset surplus = good;
  *surplus.mutable_nodes(1)->add_attrs() = good.nodes(0).attrs(0);
  EXPECT_THAT(Refusal(surplus), AllOf(HasSubstr("Take#1"), HasSubstr("no attribute start")));
  dataset::wire::Dataset twice = good;
  *twice.mutable_nodes(1)->add_attrs() = good.nodes(1).attrs(0);
  EXPECT_THAT(Refusal(twice), AllOf(HasSubstr("Take#1"), HasSubstr("twice")));
  dataset::wire::Dataset no_value = good;
  no_value.mutable_nodes(1)->mutable_attrs(0)->clear_value();
  EXPECT_THAT(Refusal(no_value), AllOf(HasSubstr("Take#1"), HasSubstr("count")));
}

TEST(Definition, AttributesAreCheckedAsInBuilding) {
  dataset::wire::Dataset message = Message(Dataset::Range(5));
  for (dataset::wire::Attr& attr : *message.mutable_nodes(0)->mutable_attrs())
    if (attr.name() == "step") attr.set_int_(0);
  EXPECT_THAT(Refusal(message), AllOf(HasSubstr("Range#0"), HasSubstr("step")));
}

TEST(Definition, ANodeThatGivesOtherElementsThanItWasDefinedWithIsRefused) {
  dataset::wire::Dataset message = Message(Dataset::Range(5).Take(2));
  message.mutable_nodes(1)->set_spec_fingerprint(1);
  EXPECT_THAT(Refusal(message),
              AllOf(HasSubstr("Take#1"), HasSubstr("defined with different ones")));
}

TEST(Definition, NodesMustBeOneTree) {
  dataset::wire::Dataset message = Message(Dataset::Range(5).Take(2));
  message.mutable_nodes(1)->set_inputs(2);
  EXPECT_THAT(Refusal(message), HasSubstr("inputs that do not exist"));
  message = Message(Dataset::Range(5));
  *message.add_nodes() = message.nodes(0);
  EXPECT_THAT(Refusal(message), HasSubstr("2 datasets"));
  message.clear_nodes();
  EXPECT_THAT(Refusal(message), HasSubstr("0 datasets"));
}

TEST(Definition, TooManyNodesAreAMistakeNotAnOverflow) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  GTEST_SKIP() << "the sanitizer keeps stacks this deep for all that happens in them: 20 GiB";
#endif
  Dataset dataset = Dataset::Range(5);
  for (int i = 1; i < kMaxNodes; ++i) dataset = dataset.Skip(0);
  EXPECT_TRUE(dataset.status().ok()) << dataset.status();
  EXPECT_TRUE(ParseDataset(Serialize(dataset).value()).ok());
  int64_t elements = 0;
  for (absl::StatusOr<Element>& element : dataset.Elements()) elements += element.ok();
  EXPECT_EQ(elements, 5);
  EXPECT_THAT(dataset.Skip(0).status().ToString(), HasSubstr("more than 1024 nodes"));
  Dataset doubled = Dataset::Range(5);
  for (int i = 0; i < 80; ++i) doubled = doubled.Concatenate(doubled);
  EXPECT_FALSE(doubled.status().ok());
}

TEST(Definition, TooManyPartsAreCountedBeforeAnythingIsBuilt) {
  dataset::wire::Dataset message = Message(Dataset::Range(5).Map([](Expr x) { return x + 1; }));
  dataset::wire::Attr* function = nullptr;
  for (dataset::wire::Attr& attr : *message.mutable_nodes(1)->mutable_attrs())
    if (attr.has_function()) function = &attr;
  ASSERT_NE(function, nullptr);
  // An unknown operation, so a definition that is not refused for its size has another error.
  dataset::wire::Dataset many = message;
  for (int64_t n = 0; n <= kMostOperations; ++n) function->mutable_function()->add_operations();
  EXPECT_THAT(Refusal(message), HasSubstr("more than 65536 operations"));

  for (int64_t n = 0; n <= kMostDefinitionParts; ++n) many.mutable_nodes(0)->add_attrs();
  EXPECT_THAT(Refusal(many), HasSubstr("more than 524288 parts"));

  dataset::wire::Dataset names = Message(Dataset::Range(5));
  dataset::wire::Strings* strings = names.mutable_nodes(0)->add_attrs()->mutable_strings();
  for (int64_t n = 0; n <= kMostStrings; ++n) strings->add_values("");
  EXPECT_THAT(Refusal(names), HasSubstr("more than 4194304 strings"));

  dataset::wire::Dataset numbers = Message(Dataset::Range(5));
  numbers.mutable_nodes(0)->add_attrs()->mutable_ints()->mutable_values()->Resize(
      static_cast<int>(kMostNumbers) + 1, 0);
  EXPECT_THAT(Refusal(numbers), HasSubstr("more than 16777216 numbers"));
}

std::string RefusalOf(std::string_view piece, int64_t times) {
  std::string bytes = Serialize(Dataset::Range(5)).value();
  for (int64_t n = 0; n < times; ++n) bytes += piece;
  return ParseDataset(bytes).status().ToString();
}

TEST(Definition, UnknownAndMistypedFieldsCountBecauseProtobufKeepsThem) {
  constexpr int64_t kEightMillion = 8'000'000;
  const std::string single = "more than 4194304 numbers outside lists";
  EXPECT_THAT(RefusalOf("\x78\1", kEightMillion), HasSubstr(single)) << "field 15, a number";
  EXPECT_THAT(RefusalOf("\x08\1", kEightMillion), HasSubstr(single)) << "the version, again";
  EXPECT_THAT(RefusalOf("\x10\1", kEightMillion), HasSubstr(single)) << "a node as a number";
  const std::string parts = "more than 524288 parts";
  EXPECT_THAT(RefusalOf(std::string_view("\x7A\0", 2), kEightMillion), HasSubstr(parts));
  EXPECT_THAT(RefusalOf(std::string_view("\x0A\0", 2), kEightMillion), HasSubstr(parts))
      << "the version as a string";
  EXPECT_EQ(RefusalOf("\x78\1", 5), "OK") << "a later release may add fields";
}

TEST(Definition, GroupsAreRefused) {
  EXPECT_THAT(RefusalOf("\x7B\x7C", 1), HasSubstr("a group of Protobuf")) << "field 15";
  EXPECT_THAT(RefusalOf("\x7B", 8'000'000), HasSubstr("a group of Protobuf"));
  EXPECT_THAT(RefusalOf("\x12\2\x7B\x7C", 1), HasSubstr("a group of Protobuf")) << "in a node";
}

TEST(Definition, NumbersOfManyBytesCountOnce) {
  dataset::wire::Dataset message = Message(Dataset::Range(5));
  auto& values = *message.mutable_nodes(0)->add_attrs()->mutable_ints()->mutable_values();
  values.Resize(static_cast<int>(kMostNumbers / 2), int64_t{1} << 20);  // 4 bytes each
  EXPECT_THAT(Refusal(message), Not(HasSubstr("numbers in lists")));
}

TEST(Definition, ADatasetOfAnElementStandsOnlyInsideAFunction) {
  const Dataset inside = Dataset::Range(Expr(int64_t{3}));
  EXPECT_EQ(Serialize(inside).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(inside.MakeIterator().status().ToString(), HasSubstr("FlatMap"));
}

TEST(Definition, SpecsComeBack) {
  const Spec spec =
      Spec::Dict({{"a", Dense(kFloat32, Shape::UnknownRank())},
                  {"b", Spec::Tuple({Spec(Ragged(kString, Shape({kUnknownDim, kUnknownDim}), 1)),
                                     Spec(Sparse(kInt8, Shape({2, 3})))})}});
  EXPECT_EQ(ParseSpec(SerializeSpec(spec)).value(), spec);
  EXPECT_FALSE(ParseSpec("\xff").ok());
}

}  // namespace
}  // namespace penstock
