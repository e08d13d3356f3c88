// SPDX-License-Identifier: Apache-2.0
// TokenShards and NpyDataset, on files that NumPy wrote and on damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/env/fake_files.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/graph/split.h"
#include "penstock/sources.h"
#include "tests/dataplane/dataset/sources/read_files.h"
#include "tests/dataplane/dataset/transforms/text_of.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

std::string Data(const char* name) {
  return std::string(TEST_DATA "/") + name;
}

// Returns tokens 0 … count - 1.
std::string Tokens(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.append({static_cast<char>(i), '\0'});
  return bytes;
}

// Returns an array file of version 1 with that header.
std::string Npy(std::string header, const std::string& values) {
  header.push_back('\n');
  return std::string("\x93NUMPY\x01\x00", 8) +
         std::string(
             {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)}) +
         header + values;
}

const Spec& Pair() {
  static const Spec* const pair =
      new Spec(Spec::Dict({{"image", Dense(kUInt8, {4})}, {"label", Scalar(kInt64)}}));
  return *pair;
}

// --- Tokens --------------------------------------------------------------------

TEST(TokenShards, WindowsLieInOneFile) {
  FakeFiles files;
  files.Put("a", Tokens(7));
  files.Put("b", Tokens(2));
  files.Put("c", Tokens(3));
  EXPECT_THAT(Read(Dataset::TokenShards({"a", "b", "c"}, 3), files),
              ElementsAre("[0, 1, 2]", "[3, 4, 5]", "[0, 1, 2]"));
}

TEST(TokenShards, NeighbouringWindowsShareTheNextToken) {
  FakeFiles files;
  files.Put("a", Tokens(7));
  EXPECT_THAT(Read(Dataset::TokenShards("a", 3, {.with_next_token = true}), files),
              ElementsAre("[0, 1, 2, 3]", "[3, 4, 5, 6]"));
}

TEST(TokenShards, StridesOverlapOrLeaveOut) {
  FakeFiles files;
  files.Put("a", Tokens(7));
  EXPECT_THAT(Read(Dataset::TokenShards("a", 3, {.stride = 2}), files),
              ElementsAre("[0, 1, 2]", "[2, 3, 4]", "[4, 5, 6]"));
  EXPECT_THAT(Read(Dataset::TokenShards("a", 2, {.stride = 5}), files),
              ElementsAre("[0, 1]", "[5, 6]"));
}

TEST(TokenShards, TheRemainderIsAShorterWindow) {
  FakeFiles files;
  files.Put("a", Tokens(7));
  const auto kept = [&](int64_t length, int64_t stride) {
    return Read(Dataset::TokenShards("a", length, {.stride = stride, .drop_remainder = false}),
                files);
  };
  EXPECT_THAT(kept(3, 3), ElementsAre("[0, 1, 2]", "[3, 4, 5]", "[6]"));
  EXPECT_THAT(kept(3, 2), ElementsAre("[0, 1, 2]", "[2, 3, 4]", "[4, 5, 6]"));  // all are used
  EXPECT_THAT(kept(2, 4), ElementsAre("[0, 1]", "[4, 5]"));  // tokens between strides stay left out
  EXPECT_THAT(kept(9, 9), ElementsAre("[0, 1, 2, 3, 4, 5, 6]"));
  files.Put("a", "");
  EXPECT_THAT(kept(3, 3), IsEmpty());
}

TEST(TokenShards, ReadsNumPysFiles) {
  EXPECT_THAT(ReadAll(Dataset::TokenShards(Data("tokens.npy"), 11)),
              ElementsAre("[100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110]",
                          "[111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121]"));
  EXPECT_THAT(ReadAll(Dataset::TokenShards(Data("headed_tokens.bin"), 6,
                                           {.dtype = kInt32, .header_bytes = 16})),
              ElementsAre("[-6, -5, -4, -3, -2, -1]", "[0, 1, 2, 3, 4, 5]"));
}

TEST(TokenShards, AFileThatDoesNotFitIsNamed) {
  FakeFiles files;
  files.Put("odd", "abc");
  files.Put("short", "abc");
  files.Put("floats.npy", DataFile("rows.npy"));
  files.Put("cut.npy", DataFile("tokens.npy").substr(0, 150));
  const auto error = [&](const char* name, TokenShardsOptions options = {}) {
    const Strings all = Read(Dataset::TokenShards(name, 1, options), files);
    EXPECT_THAT(all, ElementsAre(StartsWith("error: TokenShards#0: ")));
    return all.at(0);
  };
  EXPECT_THAT(error("odd"), HasSubstr("odd has 3 bytes"));
  EXPECT_THAT(error("short", {.header_bytes = 4}), HasSubstr("short has 3 bytes"));
  EXPECT_THAT(error("floats.npy"), HasSubstr("floats.npy contains float32 [7,2,3], not"));
  EXPECT_THAT(error("cut.npy"), HasSubstr("cut.npy is cut off: it has 150 bytes"));
  EXPECT_THAT(error("missing"), HasSubstr("missing"));
  EXPECT_FALSE(PlanSplits(Dataset::TokenShards("missing", 1), files).ok());
}

TEST(TokenShards, AFaultOfTheDiskTakesTheWindowsPlace) {
  FakeFiles files;
  files.Put("a", Tokens(4));
  files.FailFrom("a", 4, absl::UnavailableError("the disk is gone"));
  EXPECT_THAT(Read(Dataset::TokenShards("a", 2), files),
              ElementsAre("[0, 1]", AllOf(HasSubstr("TokenShards#0"), HasSubstr("disk is gone"))));
}

TEST(TokenShards, AFileThatChangedIsFound) {
  FakeFiles files;
  files.Put("a", Tokens(4));
  RunContext context;
  context.files = &files;
  const Dataset dataset = Dataset::TokenShards({"a", "a"}, 2);
  auto iterator = BuildIterator(dataset, context);
  ASSERT_TRUE(iterator.ok()) << iterator.status();
  files.Put("a", Tokens(3));
  EXPECT_THAT((*iterator)->Next().status().ToString(),
              AllOf(HasSubstr("TokenShards#0"), HasSubstr("a changed while it was read")));
}

TEST(TokenShards, SplitsAreRangesOfWindows) {
  const auto plan = PlanSplits(Dataset::TokenShards({Data("tokens.bin"), Data("tokens.npy")}, 10));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->providers.at(0).count, 7);
}

TEST(TokenShards, ImpossibleOptionsAreMistakesInTheDataset) {
  EXPECT_THAT(Dataset::TokenShards("a", 0).status().ToString(),
              AllOf(HasSubstr("TokenShards#0"), HasSubstr("length is 0")));
  EXPECT_THAT(Dataset::TokenShards("a", 1, {.stride = 0}).status().ToString(),
              HasSubstr("stride is 0"));
  EXPECT_THAT(Dataset::TokenShards("a", 1, {.dtype = kFloat32}).status().ToString(),
              HasSubstr("float32"));
}

// --- Arrays --------------------------------------------------------------------

TEST(NpyDataset, RowsOfSeveralFiles) {
  EXPECT_THAT(
      ReadAll(
          Dataset::Npy({Data("more_rows.npy"), Data("rows.npy")}, Dense(kFloat32, {2, 3})).Take(4)),
      ElementsAre("[[-0, -1, -2], [-3, -4, -5]]", "[[-6, -7, -8], [-9, -10, -11]]",
                  "[[0, 0.25, 0.5], [0.75, 1, 1.25]]", "[[1.5, 1.75, 2], [2.25, 2.5, 2.75]]"));
}

TEST(NpyDataset, AWholeArrayIsOneElement) {
  EXPECT_THAT(ReadAll(Dataset::Npy(Data("tokens.npy"), Dense(kUInt16, Shape({kUnknownDim})),
                                   {.rows = false})),
              ElementsAre(StartsWith("[100, 101, 102")));
}

TEST(NpyDataset, MembersOfNpzByName) {
  EXPECT_THAT(
      ReadAll(Dataset::Npy({Data("pair.npz"), Data("packed_pair.npz")}, Pair())),
      ElementsAre("{image: [0, 1, 2, 3], label: 0}", "{image: [4, 5, 6, 7], label: 10}",
                  "{image: [8, 9, 10, 11], label: 20}", "{image: [12, 13, 14, 15], label: 30}",
                  "{image: [16, 17, 18, 19], label: 40}", "{image: [100, 101, 102, 103], label: 1}",
                  "{image: [104, 105, 106, 107], label: 11}",
                  "{image: [108, 109, 110, 111], label: 21}"));
}

TEST(NpyDataset, WholeNpzFilesOfAnyShape) {
  const Spec spec =
      Spec::Dict({{"x", Dense(kInt16, Shape({kUnknownDim, kUnknownDim, kUnknownDim}))},
                  {"y", Dense(kUInt8, Shape({kUnknownDim}))}});
  EXPECT_THAT(ReadAll(Dataset::Npy(Data("volume.npz"), spec, {.rows = false})),
              ElementsAre("{x: [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], "
                          "[16, 17, 18, 19], [20, 21, 22, 23]]], y: [1, 2]}"));
}

// Sums of two arrays, one offset by a row, over two passes.
Dataset Sums(const std::string& rows, int64_t calls) {
  const Dataset one = Dataset::Npy(rows, Dense(kFloat32, {2, 3}));
  return Dataset::Zip({one, one.Skip(1)})
      .Repeat(2)
      .Map([](const Expr& x) { return x[0] + x[1]; }, {.num_parallel_calls = calls});
}

TEST(NpyDataset, FunctionsLookAtAMappedFileWhereItLies) {
  FakeFiles copied;  // these files cannot be mapped
  copied.Put(Data("rows.npy"), DataFile("rows.npy"));
  for (const int64_t calls : {1, 3}) {
    const Dataset sums = Sums(Data("rows.npy"), calls);
    const Strings all = ReadAll(sums);
    EXPECT_THAT(all, SizeIs(12));
    EXPECT_EQ(all, Read(sums, copied));

    const std::shared_ptr<Pool> pool = Pool::Create();
    RunContext context;
    context.pool = pool.get();
    const Dataset whole =
        Dataset::Npy(Data("rows.npy"), Dense(kFloat32, {2, 3}))
            .Repeat(2)
            .Map([](const Expr& x) { return x + x; }, {.num_parallel_calls = calls});
    auto iterator = BuildIterator(whole, context);
    ASSERT_TRUE(iterator.ok()) << iterator.status();
    while (true) {
      auto next = (*iterator)->Next();
      ASSERT_TRUE(next.ok()) << next.status();
      if (!next->has_value()) break;
    }
    EXPECT_EQ(pool->counters().slots_lent, 14);  // for the results only
  }
}

TEST(NpyDataset, AnElementOfAMappedFileOutlivesItsPlaceInTheReading) {
  const std::vector<std::string> names = {Data("rows.npy"), Data("more_rows.npy")};
  const auto rows = [&](int64_t calls) {
    return Dataset::Npy(names, Dense(kFloat32, {2, 3}))
        .Repeat(3)
        .Map([](const Expr& x) { return Reshape(x, {6}); }, {.num_parallel_calls = calls});
  };
  EXPECT_EQ(ReadAll(rows(1)), ReadAll(rows(8)));  // read ahead over files and passes
}

TEST(NpyDataset, ASplitOfNpyIsARangeOfRowsAndOfNpzAFile) {
  const auto rows = PlanSplits(Dataset::Npy({Data("rows.npy")}, Dense(kFloat32, {2, 3})));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->providers.at(0).count, 7);
  const auto files = PlanSplits(Dataset::Npy({Data("pair.npz"), Data("packed_pair.npz")}, Pair()));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->providers.at(0).count, 2);
}

TEST(NpyDataset, MismatchesWithTheSpecAreNamed) {
  const auto error = [](const char* name, const Spec& spec) {
    const Strings all = ReadAll(Dataset::Npy(Data(name), spec));
    EXPECT_THAT(all, ElementsAre(StartsWith("error: NpyDataset#0: ")));
    return all.at(0);
  };
  EXPECT_THAT(
      error("rows.npy", Dense(kFloat64, {2, 3})),
      AllOf(HasSubstr("rows.npy contains float32 [7,2,3], not rows of"), HasSubstr("float64")));
  EXPECT_THAT(error("rows.npy", Dense(kFloat32, {3, 2})), HasSubstr("[3,2]"));
  EXPECT_THAT(error("fortran.npy", Dense(kFloat32, {2})), HasSubstr("Fortran"));
  EXPECT_THAT(error("big_endian.npy", Dense(kFloat32, {2})), HasSubstr("big-endian"));
  EXPECT_THAT(error("pair.npz", Dense(kFloat32, {2})), HasSubstr("its first bytes do not match"));
  EXPECT_THAT(error("rows.npy", Pair()), HasSubstr("not an .npz file"));
  EXPECT_THAT(error("pair.npz", Spec::Dict({{"mask", Scalar(kInt64)}})),
              AllOf(HasSubstr("no array 'mask'"), HasSubstr("image.npy label.npy other.npy")));
  EXPECT_THAT(
      error("pair.npz", Spec::Dict({{"label", Scalar(kInt64)}, {"other", Scalar(kFloat64)}})),
      AllOf(HasSubstr("'other' has 3 rows"), HasSubstr("'label' has 5")));
}

TEST(NpyDataset, HeadersThatLieAreFound) {
  FakeFiles files;
  const auto error = [&](const std::string& header, const std::string& values = "") {
    files.Put("a.npy", Npy(header, values));
    const Strings all = Read(Dataset::Npy("a.npy", Scalar(kUInt8)), files);
    EXPECT_THAT(all, ElementsAre(StartsWith("error: NpyDataset#0: a.npy"))) << header;
    return all.at(0);
  };
  EXPECT_THAT(error("{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }", "four"),
              HasSubstr("cut off"));
  EXPECT_THAT(error("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999, "
                    "99999999999, 99999999999), }"),
              HasSubstr("more values than an array can have"));
  EXPECT_THAT(error("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,), }"),
              HasSubstr("cannot be read"));
  EXPECT_THAT(error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("one dtype"));
  EXPECT_THAT(error("{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("'<U3', which tensors do not support"));
  EXPECT_THAT(error("{'descr': '|u1', 'fortran_order': False}"), HasSubstr("cannot be read"));
  EXPECT_THAT(error("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "1"),
              HasSubstr("not rows of"));
  EXPECT_THAT(error("not a dict"), HasSubstr("cannot be read"));
}

TEST(NpyDataset, ABoolThatIsNeitherIsFound) {
  FakeFiles files;
  files.Put("a.npy", Npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }",
                         std::string("\1\2\0", 3)));
  EXPECT_THAT(Read(Dataset::Npy("a.npy", Scalar(kBool)), files),
              ElementsAre("true", HasSubstr("neither true nor false"), "false"));
}

TEST(NpyDataset, ADamagedMemberTakesThePlaceOfItsRows) {
  FakeFiles files;
  std::string damaged = DataFile("pair.npz");
  const size_t values = damaged.find("NUMPY") - 1 + 128;  // after the first member's header
  damaged[values + 3] ^= 1;
  files.Put("bad", damaged);
  files.Put("good", DataFile("packed_pair.npz"));
  const Strings all = Read(Dataset::Npy({"bad", "good"}, Pair()), files);
  ASSERT_THAT(all, SizeIs(8));
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(all[i], AllOf(HasSubstr("NpyDataset#0: bad: array 'image'"), HasSubstr("CRC")));
  EXPECT_EQ(all[5], "{image: [100, 101, 102, 103], label: 1}");
}

TEST(NpyDataset, AnArchiveThatIsCutOffIsNamedAtEveryByte) {
  FakeFiles files;
  const std::string whole = DataFile("packed_pair.npz");
  for (size_t size = 0; size < whole.size(); ++size) {
    files.Put("cut", whole.substr(0, size));
    ASSERT_THAT(Read(Dataset::Npy("cut", Pair()), files),
                ElementsAre(StartsWith("error: NpyDataset#0: cut")))
        << size;
  }
}

TEST(NpyDataset, AFlippedBitIsFoundOrChangesNothing) {
  FakeFiles files;
  for (const char* name : {"pair.npz", "packed_pair.npz"}) {
    const std::string whole = DataFile(name);
    const Strings expected = ReadAll(Dataset::Npy(Data(name), Pair()));
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string flipped = whole;
      flipped[bit / 8] ^= static_cast<char>(1 << bit % 8);
      files.Put("flipped", flipped);
      const Strings rows = Read(Dataset::Npy("flipped", Pair()), files);
      ASSERT_TRUE(rows == expected || rows.at(0).starts_with("error: ")) << name << " bit " << bit;
    }
  }
}

TEST(NpyDataset, AFaultOfTheDiskIsPassedOn) {
  FakeFiles files;
  files.Put("a", DataFile("pair.npz"));
  files.FailFrom("a", 100, absl::UnavailableError("the disk is gone"));
  EXPECT_THAT(Read(Dataset::Npy("a", Pair()), files), ElementsAre(HasSubstr("the disk is gone")));
}

TEST(NpyDataset, SpecsThatNoFileHoldsAreMistakesInTheDataset) {
  EXPECT_THAT(Dataset::Npy("a", Bytes()).status().ToString(),
              AllOf(HasSubstr("NpyDataset#0"), HasSubstr("numbers or bools")));
  EXPECT_THAT(Dataset::Npy("a", Spec::Tuple({Scalar(kInt32)})).status().ToString(),
              HasSubstr("a tensor or a dict"));
  EXPECT_THAT(Dataset::Npy("a", Spec::Dict({})).status().ToString(),
              HasSubstr("a tensor or a dict"));
  EXPECT_THAT(Dataset::Npy("a", Spec::Dict({{"a", Spec::Dict({{"b", Scalar(kInt32)}})}}))
                  .status()
                  .ToString(),
              HasSubstr("a tensor or a dict"));
}

}  // namespace
}  // namespace penstock
