// SPDX-License-Identifier: Apache-2.0
// Cases of nodes that combine datasets, cut them short, cache or reduce them.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/dataplane/dataset/suite.h"
#include "tests/dataplane/dataset/transforms/calls_of_cases.h"

namespace penstock::suite {
namespace {

Expr Sum(const Expr& state, const Expr& x) {
  return Tuple({state + x, state * 2 + x});
}
Dataset StringRecords() {
  return Dataset::ListFiles("/data/*.tfrecord").Interleave(Dataset::TFRecord, {.cycle_length = 2});
}

// A folder of this process, removed at its end.
class Folder {
 public:
  Folder() : path_(absl::StrCat(testing::TempDir(), "/suite-", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Returns the same file each time the case is made.
std::string FileOf(const std::string& name) {
  static const Folder folder;
  return absl::StrCat(folder.path(), "/", name);
}

std::vector<Case> ChoiceCases() {
  return {
      Counting({.name = "ChooseFromDatasets",
                .kinds = {"ChooseFromDatasets"},
                .make =
                    [] {
                      return Dataset::ChooseFromDatasets(
                          {Dataset::Range(20), Dataset::Range(100, 130), Dataset::Range(200, 210)},
                          Dataset::Range(3).Repeat(5).Shuffle(4));
                    }}),
      Counting({.name = "ChooseUntilOneEnds",
                .kinds = {"ChooseFromDatasets"},
                .make =
                    [] {
                      return Dataset::ChooseFromDatasets(
                          {Dataset::Range(20), Dataset::Range(100, 104)},
                          Dataset::Range(2).Repeat());
                    }}),
      {.name = "ChoosePassesOverTheEmpty",
       .kinds = {"ChooseFromDatasets"},
       .make =
           [] {
             return Dataset::ChooseFromDatasets(
                 {Dataset::Range(9), Dataset::Range(0), Dataset::Range(100, 114)},
                 Dataset::Range(3).Repeat(), {.stop_on_empty_dataset = false});
           }},
      Counting({.name = "ChooseOfErrors",
                .kinds = {"ChooseFromDatasets"},
                .make =
                    [] {
                      return Dataset::ChooseFromDatasets(
                          {Dataset::Range(20).Map(Failing), Dataset::Range(100, 130)},
                          Dataset::Range(60).Map([](Expr x) { return Failing(x) % 3; }),
                          {.stop_on_empty_dataset = false});
                    }}),
      {.name = "ChooseOfDifferentShapes",
       .kinds = {"ChooseFromDatasets"},
       .make =
           [] {
             return Dataset::ChooseFromDatasets(
                 {Dataset::Range(9).Batch(3), Dataset::Range(100, 108).Batch(2)},
                 Dataset::Range(2).Repeat(), {.stop_on_empty_dataset = false});
           },
       .parts = Rows},
      {.name = "SampleFromDatasets",
       .kinds = {"SampleFromDatasets"},
       .make =
           [] {
             return Dataset::SampleFromDatasets(
                 {Dataset::Range(20), Dataset::Range(100, 105), Dataset::Range(200, 230)},
                 {.weights = {0.5, 0.1, 2}});
           }},
      {.name = "SampleOfNothingAndStrings",
       .kinds = {"SampleFromDatasets"},
       .make =
           [] {
             return Dataset::SampleFromDatasets({StringRecords().Take(0), StringRecords()});
           }},
      {.name = "SampleRepeated",
       .kinds = {"SampleFromDatasets"},
       .make =
           [] {
             return Dataset::SampleFromDatasets(
                        {Dataset::Range(7), Dataset::Range(100, 105).Shuffle(5)},
                        {.rerandomize_each_iteration = true})
                 .Repeat(3);
           }},
      Counting({.name = "SampleUntilOneEnds",
                .kinds = {"SampleFromDatasets"},
                .make =
                    [] {
                      return Dataset::SampleFromDatasets(
                          {Dataset::Range(20).Map(Failing), Dataset::Range(100, 110).Repeat()},
                          {.seed = 3, .stop_on_empty_dataset = true});
                    }}),
  };
}

std::vector<Case> FoldCases() {
  return {
      Counting({.name = "Scan",
                .kinds = {"Scan"},
                .make = [] { return Dataset::Range(30).Scan(int64_t{7}, Sum); }}),
      Counting({.name = "ScanOfNothing",
                .kinds = {"Scan"},
                .make = [] { return Dataset::Range(0).Scan(int64_t{7}, Sum); }}),
      Counting({.name = "ScanOfErrors",
                .kinds = {"Scan"},
                .make =
                    [] {
                      return Dataset::Range(30).Map(Failing).Scan(
                          int64_t{0}, [](Expr state, Expr x) {
                            return Tuple({state + Failing(x + 1) - 1, state});
                          });
                    }}),
      Counting({.name = "ScanOfStrings",
                .kinds = {"Scan"},
                .make =
                    [] {
                      return StringRecords().Scan(
                          Struct({{"all", ""}, {"count", int64_t{0}}}), [](Expr state, Expr x) {
                            const Expr all = StringConcat(state["all"], x);
                            return Tuple({Struct({{"all", all}, {"count", state["count"] + 1}}),
                                          Struct({{"all", all}, {"last", x}})});
                          });
                    }}),
      Counting({.name = "ScanOfAStateThatGrows",
                .kinds = {"Scan"},
                .make =
                    [] {
                      const int64_t dims[] = {0};
                      return Dataset::Range(12)
                          .Map(CountingUp)
                          .Scan(Expr::Constant(Tensor(kInt64, dims, nullptr)),
                                [](Expr state, Expr x) {
                                  return Tuple({x, state});
                                });
                    }}),
      Counting({.name = "ScanDraws",
                .kinds = {"Scan"},
                .make =
                    [] {
                      return Dataset::Range(20).Scan(uint64_t{1}, [](Expr state, Expr x) {
                        return Tuple({state + Drawing(x)[0], state});
                      });
                    }}),
      Counting(
          {.name = "TakeWhile",
           .kinds = {"TakeWhile"},
           .make = [] { return Dataset::Range(30).TakeWhile([](Expr x) { return x != 17; }); }}),
      {.name = "TakeWhileOfAll",
       .kinds = {"TakeWhile"},
       .make = [] { return Dataset::Range(30).TakeWhile([](Expr x) { return x >= 0; }); }},
      Counting(
          {.name = "TakeWhileOfNone",
           .kinds = {"TakeWhile"},
           .make = [] { return Dataset::Range(30).TakeWhile([](Expr x) { return x > 100; }); }}),
      Counting({.name = "TakeWhileOfErrors",
                .kinds = {"TakeWhile"},
                .make =
                    [] {
                      return Dataset::Range(30).Map(Failing).TakeWhile(
                          [](Expr x) { return Failing(x + 1) < 25; });
                    }}),
      {.name = "IgnoreErrors",
       .kinds = {"IgnoreErrors"},
       .make = [] { return Dataset::Range(30).Map(Failing).IgnoreErrors(); }},
      {.name = "IgnoreErrorsOfNone",
       .kinds = {"IgnoreErrors"},
       .make = [] { return StringRecords().IgnoreErrors({.log_warning = true}); }},
      Counting(
          {.name = "IgnoreAFewErrors",
           .kinds = {"IgnoreErrors"},
           .make =
               [] { return Dataset::Range(30).Map(Failing).IgnoreErrors({.max = 2}).Batch(4); }}),
  };
}

std::vector<Case> CacheCases() {
  return {
      {.name = "Cache", .kinds = {"Cache"}, .make = [] { return Dataset::Range(20).Cache(); }},
      {.name = "CacheOfNothing",
       .kinds = {"Cache"},
       .make = [] { return StringRecords().Take(0).Cache().Repeat(2); }},
      {.name = "CacheRepeated",
       .kinds = {"Cache"},
       .make = [] { return Dataset::Range(11).Shuffle(11).Cache().Repeat(3); }},
      {.name = "CacheShuffledInEachPass",
       .kinds = {"Cache"},
       .make = [] { return StringRecords().Cache().Shuffle(4).Repeat(2).Repeat(2); }},
      Counting({.name = "CacheReadInPart",
                .kinds = {"Cache"},
                .make = [] { return Dataset::Range(11).Shuffle(11).Cache().Take(5).Repeat(3); }}),
      Counting({.name = "CacheOfErrors",
                .kinds = {"Cache"},
                .make = [] { return Dataset::Range(15).Map(Failing).Cache().Repeat(3); }}),
      {.name = "CacheOfCache",
       .kinds = {"Cache"},
       .make = [] { return Dataset::Range(9).Cache().Prefetch(2).Cache().Repeat(2); }},
      Counting({.name = "CacheInAFunction",
                .kinds = {"Cache"},
                .make =
                    [] {
                      return Dataset::Range(5).FlatMap(
                          [](Expr x) { return Dataset::Range(x).Map(Drawing).Cache().Repeat(2); });
                    }}),
      {.name = "CacheOnDisk",
       .kinds = {"Cache"},
       .make = [] { return Dataset::Range(20).Cache(FileOf("numbers")); }},
      {.name = "CacheOnDiskRepeated",
       .kinds = {"Cache"},
       .make =
           [] { return StringRecords().Shuffle(5).Cache(FileOf("strings")).Repeat(2).Batch(3); },
       .parts = Rows},
      Counting(
          {.name = "CacheOnDiskReadInPart",
           .kinds = {"Cache"},
           .make =
               [] {
                 return Dataset::Range(11).Map(Drawing).Cache(FileOf("part")).Take(5).Repeat(3);
               }}),
      Counting(
          {.name = "CacheOnDiskOfErrors",
           .kinds = {"Cache"},
           .make =
               [] { return Dataset::Range(15).Map(Failing).Cache(FileOf("errors")).Repeat(2); }}),
      Counting({.name = "CacheOnDiskOfRagged",
                .kinds = {"Cache"},
                .make =
                    [] {
                      return Dataset::Range(22)
                          .Map(CountingUp)
                          .RaggedBatch(4)
                          .Cache(FileOf("ragged"))
                          .Repeat(2);
                    }}),
  };
}

}  // namespace

std::vector<Case> CombiningCases() {
  std::vector<Case> all;
  for (auto* part : {ChoiceCases, FoldCases, CacheCases})
    for (Case& c : part()) all.push_back(std::move(c));
  return all;
}

}  // namespace penstock::suite
