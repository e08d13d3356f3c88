// SPDX-License-Identifier: Apache-2.0
// Functions registered by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "include/status_macros.h"
#include "penstock/register.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

absl::Status Halve(CallContext& call) {
  const Tensor& x = call.inputs()[0];
  ASSIGN_OR_RETURN(const absl::Span<int64_t> out, call.OutputAs<int64_t>(0, x.dims()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = x.data<int64_t>()[i] / 2;
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("halve", 3, Scalar(kInt64), Halve);

RegisteredMap Map(const Spec& output, std::function<absl::Status(CallContext&)> call) {
  return {
      .version = 1, .output_spec = [=](const Spec&) { return output; }, .call = std::move(call)};
}

TEST(Call, RunsARegisteredFunction) {
  EXPECT_THAT(RegisteredMaps(), Contains("halve"));
  const auto results = RunOn([](auto x) { return Call("halve", x) + 1; }, {Value<int64_t>(9)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<int64_t>(), ElementsAre(5));
}

TEST(Call, WritesResultsInPlaceAndGivesNests) {
  ASSERT_TRUE(
      RegisterMap(
          "words",
          Map(Spec::Dict({{"n", Scalar(kInt64)}, {"words", Dense(kString, {kUnknownDim})}}),
              [](CallContext& call) -> absl::Status {
                ASSIGN_OR_RETURN(auto n, call.OutputAs<int64_t>(0, {}));
                n[0] = 2;
                return call.OutputStrings(1, {2}, {"a", std::string(call.inputs()[0].string())});
              }))
          .ok());
  const auto results = RunOn([](auto x) { return Call("words", x); }, {String("b")});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE((*results)[0].placed);
  EXPECT_THAT((*results)[1].strings(), ElementsAre("a", "b"));
}

TEST(Call, SaysWhichFunctionAndVersionIsNotThere) {
  const auto unknown = Trace([](auto x) { return Call("nobody", x); }, Scalar(kInt64));
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(unknown.status().message(), HasSubstr("function 'nobody'"));

  FunctionDef newer = **Trace([](auto x) { return Call("halve", x); }, Scalar(kInt64));
  newer.ops[0].attrs["version"] = int64_t{4};
  EXPECT_TRUE(CheckFunction(newer).ok());  // a dispatcher may lack it
  const auto bound = BoundFunction::Bind(std::make_shared<const FunctionDef>(newer));
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      bound.status().message(),
      HasSubstr(
          "function 'halve' version 4 is not registered in this program, which has version 3"));
}

TEST(Call, AnotherVersionOfANameIsRefused) {
  EXPECT_EQ(RegisterMap("halve", {.version = 4, .output_spec = nullptr, .call = nullptr}).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(RegisterMap("halve", {.version = 3, .output_spec = nullptr, .call = nullptr}).ok());
}

TEST(Call, AFunctionThatBreaksItsWordIsAnError) {
  const auto status_of = [](const char* name, std::function<absl::Status(CallContext&)> call) {
    EXPECT_TRUE(RegisterMap(name, Map(Dense(kInt64, {2}), std::move(call))).ok());
    return RunOn([&](auto x) { return Call(name, x); }, {Value<int64_t>(1)}).status();
  };
  EXPECT_THAT(status_of("nothing", [](CallContext&) { return absl::OkStatus(); }).message(),
              HasSubstr("function 'nothing' did not write output 0"));
  EXPECT_THAT(
      status_of("shape", [](CallContext& call) { return call.Output(0, {3}).status(); }).message(),
      HasSubstr("output 0 has dims [3]; its spec is"));
  EXPECT_THAT(
      status_of("which", [](CallContext& call) { return call.Output(1, {2}).status(); }).message(),
      HasSubstr("output 1 does not exist; the number of outputs is 1; in function 'which'"));
  EXPECT_THAT(
      status_of("fails", [](CallContext&) { return absl::DataLossError("bad row"); }).message(),
      HasSubstr("Call: bad row; in function 'fails'"));
}

TEST(Call, MarksNondeterministicFunctions) {
  RegisteredMap map = Map(Scalar(kInt64), [](CallContext&) { return absl::OkStatus(); });
  map.deterministic = false;
  ASSERT_TRUE(RegisterMap("clock", map).ok());
  const auto def = Trace([](auto x) { return Call("clock", x); }, Scalar(kInt64));
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_FALSE((*def)->deterministic);
  EXPECT_TRUE((*Trace([](auto x) { return Call("halve", x); }, Scalar(kInt64)))->deterministic);
  FunctionDef lie = **def;
  lie.deterministic = true;
  EXPECT_FALSE(CheckFunction(lie).ok());
}

TEST(Call, EachCallHasRandomBitsOfItsOwn) {
  ASSERT_TRUE(RegisterMap("draw", Map(Scalar(kUInt64),
                                      [](CallContext& call) -> absl::Status {
                                        ASSIGN_OR_RETURN(auto out, call.OutputAs<uint64_t>(0, {}));
                                        out[0] = call.Random(0);
                                        return absl::OkStatus();
                                      }))
                  .ok());
  const MapFunction twice = [](auto x) { return Tuple({Call("draw", x), Call("draw", x)}); };
  const auto draws = [&](uint64_t element) {
    const auto results = RunOn(twice, {Value<int64_t>(1)}, {.seed = 5, .element = element});
    return std::pair((*results)[0].values<uint64_t>()[0], (*results)[1].values<uint64_t>()[0]);
  };
  EXPECT_EQ(draws(1), draws(1));
  EXPECT_NE(draws(1).first, draws(1).second);
  EXPECT_NE(draws(1).first, draws(2).first);
}

}  // namespace
}  // namespace penstock
