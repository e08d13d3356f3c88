// SPDX-License-Identifier: Apache-2.0
// Plug-ins as shared libraries, and the error messages of a program that lacks one.
#include "penstock/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/graph/definition.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> NumbersIn(const Dataset& dataset) {
  std::vector<int64_t> numbers;
  for (absl::StatusOr<Element>& element : dataset.Elements()) {
    EXPECT_TRUE(element.ok()) << element.status();
    if (!element.ok()) break;
    numbers.push_back(element->tensor(0).scalar<int64_t>());
  }
  return numbers;
}

// Returns the status of making an iterator from a definition made elsewhere.
absl::Status Built(const std::string& definition) {
  const auto dataset = ParseDataset(definition);
  if (!dataset.ok()) return dataset.status();
  RunContext context;
  return BuildIterator(*dataset, context).status();
}

// Renames a node, so that this program does not have it: the definition could come from a program
// that does.
std::string Renamed(std::string definition, std::string_view from, std::string_view to) {
  EXPECT_EQ(from.size(), to.size());
  const size_t at = definition.find(from);
  EXPECT_NE(at, std::string::npos);
  return definition.replace(at, from.size(), to);
}

class Plugin : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(LoadPlugin(NUMBERS).ok()) << LoadPlugin(NUMBERS); }
};

TEST_F(Plugin, BringsASourceATransformAndAMap) {
  EXPECT_THAT(RegisteredSources(), ElementsAre("numbers"));
  EXPECT_THAT(RegisteredTransforms(), ElementsAre("every"));
  EXPECT_THAT(RegisteredMaps(), testing::Contains("spread"));
  const Dataset odd =
      ApplyTransform(FromSource("numbers", {{"count", 8}}), "every", {{"step", 2}, {"first", 1}});
  EXPECT_EQ(odd.cardinality(), 4);
  EXPECT_THAT(NumbersIn(odd), ElementsAre(1, 3, 5, 7));
  const Dataset spread = odd.Map([](auto n) {
    return Call("spread", Tuple({n, Expr(int64_t{4})}));
  });
  ASSERT_TRUE(spread.status().ok()) << spread.status();
  EXPECT_THAT(NumbersIn(spread), ElementsAre(1, 3, 5, 7));
}

TEST_F(Plugin, ItsParametersAreChecked) {
  EXPECT_THAT(FromSource("numbers").status().ToString(),
              AllOf(HasSubstr("RegisteredSource#0: the parameter 'count' is missing"),
                    HasSubstr("in source 'numbers'")));
  EXPECT_THAT(FromSource("numbers", {{"count", "ten"}}).status().ToString(),
              HasSubstr("the parameter 'count' has a different type"));
  EXPECT_THAT(
      ApplyTransform(Dataset::Range(3), "every", {{"step", 0}, {"first", 0}}).status().ToString(),
      HasSubstr("RegisteredTransform#1: step must be at least 1"));
}

TEST_F(Plugin, ItsParametersIdentifyTheDataset) {
  EXPECT_EQ(FromSource("numbers", {{"count", 8}}).fingerprint(),
            FromSource("numbers", {{"count", 8}}).fingerprint());
  EXPECT_NE(FromSource("numbers", {{"count", 8}}).fingerprint(),
            FromSource("numbers", {{"count", 9}}).fingerprint());
}

TEST_F(Plugin, AProgramWithoutItNamesTheKindAndTheFlag) {
  const std::string source = *Serialize(FromSource("numbers", {{"count", 8}}));
  EXPECT_TRUE(Built(source).ok());
  const absl::Status missing = Built(Renamed(source, "numbers", "somnium"));
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.ToString(),
              AllOf(HasSubstr("source 'somnium' version 1"),
                    HasSubstr("penstock worker --plugins PATH"), HasSubstr("Registered: numbers")));
  const std::string transform =
      *Serialize(ApplyTransform(Dataset::Range(3), "every", {{"step", 1}, {"first", 0}}));
  EXPECT_THAT(Built(Renamed(transform, "every", "never")).ToString(),
              HasSubstr("transform 'never' version 1"));
  EXPECT_EQ(FromSource("somnium").status().code(), absl::StatusCode::kNotFound);
}

TEST(PluginLibrary, OneOfAnotherStampIsRefusedAndNamedBesideOurs) {
  const absl::Status refused = LoadPlugin(OF_OLD);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.ToString(),
              AllOf(HasSubstr(OF_OLD), HasSubstr("'penstock plugin interface 0'"),
                    HasSubstr(PluginStamp()), HasSubstr("build it again")));
}

TEST(PluginLibrary, InvalidOrMissingOnesAreRefused) {
  EXPECT_THAT(LoadPlugin(OF_NONE).ToString(), HasSubstr("is not a plug-in"));
  EXPECT_EQ(LoadPlugin("/no/such/plugin.so").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace penstock
