// SPDX-License-Identifier: Apache-2.0
// Cache, in memory and on disk: when it replaces its input, and when not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/env/fake_disk.h"
#include "control/env/fake_files.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/dataset/transforms/cache/cache_file.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"
#include "penstock/register.h"
#include "tests/dataplane/dataset/suite.h"
#include "tests/dataplane/dataset/transforms/text_of.h"

namespace penstock {
namespace {

using suite::Reading;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;
using Strings = std::vector<std::string>;

std::atomic<int> calls = 0;

// Returns x and counts calls; fails for 100 while fail_once is set, which it clears.
std::atomic<bool> fail_once = false;
absl::Status Count(CallContext& call) {
  const int64_t x = call.inputs()[0].scalar<int64_t>();
  ++calls;
  if (x == 100 && fail_once.exchange(false)) return absl::DataLossError("this time");
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = x;
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("cache.count", 1, Scalar(kInt64), Count);

Dataset Counted(const Dataset& dataset) {
  return dataset.Map([](Expr x) { return Call("cache.count", x); });
}

// Returns how many elements were read while `read` runs.
template <class F>
int CallsOf(F read) {
  const int before = calls;
  read();
  return calls - before;
}

class CacheOnDisk : public ::testing::Test {
 protected:
  CacheOnDisk()
      : folder_(absl::StrCat(testing::TempDir(), "/cache-", getpid(), "-",
                             testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_);
  }
  ~CacheOnDisk() override { std::filesystem::remove_all(folder_); }

  std::string Path() const { return folder_ + "/cached"; }
  Strings Files() const {
    Strings names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    return names;
  }
  Dataset Random() const { return Counted(Dataset::Range(40).Shuffle(40)).Cache(Path()); }

  const std::string folder_;
};

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
void Put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// --- In memory ----------------------------------------------------------------------

TEST(Cache, ReadsItsInputOnce) {
  Strings all;
  EXPECT_EQ(CallsOf([&] { all = ReadAll(Counted(Dataset::Range(10)).Cache().Repeat(3)); }), 10);
  EXPECT_THAT(all, SizeIs(30));
}

TEST(Cache, GivesEachPassTheElementsOfTheFirst) {
  const Strings all = ReadAll(Dataset::Range(30).Shuffle(30).Cache().Repeat(2));
  EXPECT_EQ(Strings(all.begin(), all.begin() + 30), Strings(all.begin() + 30, all.end()));
  const Strings shuffled = ReadAll(Dataset::Range(30).Cache().Shuffle(30).Repeat(2));
  EXPECT_NE(Strings(shuffled.begin(), shuffled.begin() + 30),
            Strings(shuffled.begin() + 30, shuffled.end()));
}

// Reads with an iterator of this process, as a trainer does.
Strings ReadHere(const Dataset& dataset, IteratorOptions options = {}) {
  Strings all;
  for (const absl::StatusOr<Element>& element : dataset.Elements(options))
    all.push_back(element.ok() ? TextOf(*element) : std::string(element.status().message()));
  return all;
}

Iterator IteratorOf(const Dataset& dataset, IteratorOptions options = {}) {
  return *dataset.MakeIterator(options);
}
Strings RestOf(Iterator& iterator, int64_t limit = 1000) {
  Strings all;
  while (static_cast<int64_t>(all.size()) < limit) {
    absl::StatusOr<std::optional<Element>> next = iterator.Next();
    if (next.ok() && !next->has_value()) break;
    all.push_back(next.ok() ? TextOf(**next) : std::string(next.status().message()));
  }
  return all;
}

TEST(Cache, IsThatOfAllIteratorsOverItsDataset) {
  const Dataset cached = Counted(Dataset::Range(30).Shuffle(30)).Cache();
  Strings first, second;
  EXPECT_EQ(CallsOf([&] { first = ReadHere(cached); }), 30);
  EXPECT_EQ(CallsOf([&] { second = ReadHere(cached); }), 0);
  EXPECT_EQ(second, first);
  EXPECT_EQ(CallsOf([&] { ReadHere(cached.Take(5)); }), 0) << "also with more behind it";
  EXPECT_EQ(CallsOf([&] { ReadHere(cached.Repeat(3)); }), 0);
  EXPECT_EQ(CallsOf([&] { ReadHere(Counted(Dataset::Range(30).Shuffle(30)).Cache()); }), 30)
      << "another dataset, if an equal one";
}

TEST(Cache, IsGoneWithItsDataset) {
  constexpr int64_t kBytes = 1 << 20;
  const auto held = [] { return DefaultPool().counters().bytes_lent; };
  const int64_t before = held();
  {
    const Dataset dataset =
        Dataset::Range(4).Map([](Expr x) { return BroadcastTo(x, {kBytes / 8}); }).Cache();
    ReadHere(dataset);
    EXPECT_GE(held() - before, 4 * kBytes);
  }
  EXPECT_LT(held() - before, kBytes);
}

TEST(Cache, IsNotThatOfAnIteratorThatHasNotReadAll) {
  const Dataset dataset = Counted(Dataset::Range(10)).Cache();
  Iterator slow = IteratorOf(dataset);
  RestOf(slow, 9);
  // `slow` may read its last one ahead meanwhile.
  EXPECT_THAT(CallsOf([&] { ReadHere(dataset); }), AllOf(Ge(10), Le(11)));
  EXPECT_EQ(CallsOf([&] { ReadHere(dataset); }), 0);
  EXPECT_THAT(RestOf(slow), ElementsAre("9"));
}

TEST(Cache, IsFilledByAsManyAtOnceAsThereAre) {
  const Dataset dataset = Counted(Dataset::Range(50).Shuffle(50)).Cache().Repeat(2);
  Strings read[4];
  std::vector<std::thread> threads;
  for (Strings& one : read) threads.emplace_back([&] { one = ReadHere(dataset); });
  for (std::thread& thread : threads) thread.join();
  for (const Strings& one : read)
    EXPECT_EQ(Strings(one.begin(), one.begin() + 50), Strings(one.begin() + 50, one.end()));
}

TEST(Cache, StateOfContentsOfAnotherSeedIsRestoredExactly) {
  const auto make = [] { return Counted(Dataset::Range(40).Shuffle(40)).Cache(); };
  const Dataset dataset = make();
  const Strings first = ReadHere(dataset, {.seed = 1});
  Iterator second = IteratorOf(dataset, {.seed = 2});
  RestOf(second, 10);
  const State state = *second.Save();
  for (const Dataset& where : {dataset, make()}) {  // here, and in a process without contents
    Iterator restored = IteratorOf(where, {.seed = 3});
    ASSERT_TRUE(restored.Restore(state).ok());
    RestOf(restored, 5);
    const State again = *restored.Save();
    Iterator once_more = IteratorOf(make());
    ASSERT_TRUE(once_more.Restore(again).ok());
    EXPECT_EQ(RestOf(restored), Strings(first.begin() + 15, first.end()));
    EXPECT_EQ(RestOf(once_more), Strings(first.begin() + 15, first.end()));
  }
}

TEST(Cache, StateAfterAnotherCacheIsRestoredExactly) {
  const auto inner = [] { return Counted(Dataset::Range(40).Shuffle(40)).Cache(); };
  const auto outer = [](const Dataset& of) { return of.Map([](Expr x) { return x * 2; }).Cache(); };
  const Dataset dataset = inner();
  ReadHere(dataset, {.seed = 1});
  Iterator read = IteratorOf(outer(dataset), {.seed = 2});
  RestOf(read, 10);
  const State state = *read.Save();
  Iterator restored = IteratorOf(outer(inner()));
  ASSERT_TRUE(restored.Restore(state).ok());
  EXPECT_EQ(RestOf(restored), RestOf(read));
}

TEST(Cache, KeepsNothingThatWasReadInPart) {
  const Dataset dataset = Counted(Dataset::Range(30).Shuffle(30)).Cache().Take(10).Repeat(2);
  Strings all;
  EXPECT_EQ(CallsOf([&] { all = ReadAll(dataset, {.threads = 1}); }), 20);
  EXPECT_EQ(Strings(all.begin(), all.begin() + 10), Strings(all.begin() + 10, all.end()));
}

TEST(Cache, KeepsNoErrors) {
  fail_once = true;
  const Strings all = ReadAll(Counted(Dataset::Range(99, 102)).Cache().Repeat(2));
  ASSERT_THAT(all, SizeIs(6));
  EXPECT_THAT(all[1], HasSubstr("this time"));
  EXPECT_EQ(all[4], "100");
}

TEST(Cache, HasItsOwnForEachOpeningOfAFunction) {
  const Dataset dataset =
      Dataset::Range(1, 4).FlatMap([](Expr x) { return Dataset::Range(x).Cache().Repeat(2); });
  EXPECT_THAT(ReadAll(dataset),
              ElementsAre("0", "0", "0", "1", "0", "1", "0", "1", "2", "0", "1", "2"));
}

TEST(Cache, RefusesInputsAndPathsThatCannotBeCached) {
  const auto mistake = [](const Dataset& dataset) {
    return std::string(dataset.status().message());
  };
  EXPECT_THAT(mistake(Dataset::Range(3).Repeat().Cache()),
              HasSubstr("Cache#2: the input is infinite"));
  EXPECT_THAT(mistake(Dataset::Range(3).Cache("")), HasSubstr("path must name a file"));
  EXPECT_THAT(mistake(Dataset::Range(3).Cache("s3://bucket/x")),
              HasSubstr("path must name a file"));
}

// --- On disk ------------------------------------------------------------------------

TEST_F(CacheOnDisk, ServesTheNextIteratorWithAnySeed) {
  const Strings first = ReadAll(Random(), {.seed = 1});
  EXPECT_THAT(Files(), ElementsAre("cached"));
  Strings second;
  EXPECT_EQ(CallsOf([&] { second = ReadAll(Random(), {.seed = 2}); }), 0);
  EXPECT_EQ(second, first);
}

TEST_F(CacheOnDisk, AppearsOnlyWhenItIsWhole) {
  {
    Reading reading(Random(), {});
    reading.Rest(39);
    EXPECT_THAT(Files(), SizeIs(1));
    EXPECT_THAT(Files()[0], HasSubstr(".partial"));
    reading.Next();
    EXPECT_FALSE(std::filesystem::exists(Path())) << "the end was not met yet";
    EXPECT_EQ(reading.Next(), "end");
    EXPECT_THAT(Files(), ElementsAre("cached"));
  }
  std::filesystem::remove(Path());
  { Reading(Random(), {}).Rest(7); }
  EXPECT_THAT(Files(), SizeIs(0)) << "an interrupted fill leaves nothing";
}

TEST_F(CacheOnDisk, RemovesLeftoversOfAKilledProcess) {
  Put(Path() + ".0123456789abcdef.partial", "half a cache");
  const std::string at_work = Path() + ".fedcba9876543210.partial";
  Put(at_work, "another's");
  const int fd = open(at_work.c_str(), O_RDONLY);
  ASSERT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);  // as a living writer does
  ReadAll(Random());
  EXPECT_THAT(Files(), testing::UnorderedElementsAre("cached", "cached.fedcba9876543210.partial"));
  close(fd);
}

TEST_F(CacheOnDisk, HasRoomForTwoWriters) {
  Strings read[4];
  std::vector<std::thread> threads;
  for (Strings& one : read)
    threads.emplace_back([&] { one = ReadAll(Random().Repeat(3), {.seed = 1}); });
  for (std::thread& thread : threads) thread.join();
  for (const Strings& one : read) EXPECT_EQ(one, read[0]);
  EXPECT_THAT(Files(), ElementsAre("cached"));
  EXPECT_EQ(CallsOf([&] { ReadAll(Random()); }), 0);
}

TEST_F(CacheOnDisk, KeepsAnIterationOnItsOwnFileWhenAnotherTakesTheName) {
  Reading mine(Random().Repeat(3), {.seed = 1});
  const Strings first = mine.Rest(40);
  mine.Next();  // of the second pass, from the file
  std::filesystem::remove(Path());
  ReadAll(Random(), {.seed = 2});
  const Strings rest = mine.Rest(79);
  EXPECT_EQ(Strings(rest.begin() + 39, rest.end()), first);
}

TEST_F(CacheOnDisk, IsNotMadeOfErrors) {
  fail_once = true;
  const Dataset dataset = Counted(Dataset::Range(99, 102)).Cache(Path());
  EXPECT_THAT(ReadAll(dataset)[1], HasSubstr("this time"));
  EXPECT_THAT(Files(), SizeIs(0));
  EXPECT_THAT(ReadAll(dataset), ElementsAre("99", "100", "101"));
  EXPECT_THAT(Files(), ElementsAre("cached"));
}

TEST_F(CacheOnDisk, OfAnotherDatasetIsRefusedByName) {
  ReadAll(Dataset::Range(5).Cache(Path()));
  const Strings all = ReadAll(Dataset::Range(6).Cache(Path()));
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0],
              HasSubstr(absl::StrCat("the cache ", Path(), " belongs to a different dataset")));
  EXPECT_THAT(ReadAll(Dataset::Range(5).Cache(Path()).Map([](Expr x) { return x + 1; })), SizeIs(5))
      << "what stands behind it makes no difference";
}

TEST_F(CacheOnDisk, ThatIsDamagedAnywhereIsAnErrorAndNeverOtherElements) {
  const Dataset dataset = Dataset::Range(4).Enumerate().Cache(Path());
  const Strings whole = ReadAll(dataset);
  const std::string good = BytesOf(Path());
  ASSERT_GT(good.size(), 100);
  const auto expect_honest = [&](const std::string& bytes, const std::string& what) {
    Put(Path(), bytes);
    const Strings all = ReadAll(dataset);
    size_t same = 0;
    while (same < all.size() && same < whole.size() && all[same] == whole[same]) ++same;
    ASSERT_EQ(all.size(), same + 1) << what;
    EXPECT_THAT(all[same], HasSubstr(absl::StrCat("the cache ", Path(), " is damaged"))) << what;
    EXPECT_THAT(all[same], HasSubstr("remove the file to have it made again")) << what;
  };
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x20;
    expect_honest(bad, absl::StrCat("byte ", i));
  }
  for (size_t size = 0; size < good.size(); size += 7)
    expect_honest(good.substr(0, size), absl::StrCat("cut at ", size));
  expect_honest("no cache at all", "another file");
  Put(Path(), good);
  EXPECT_EQ(ReadAll(dataset), whole);
}

TEST_F(CacheOnDisk, IgnoreErrorsDoesNotHideDamage) {
  const Dataset dataset = Dataset::Range(4).Cache(Path());
  ReadAll(dataset);
  std::string bytes = BytesOf(Path());
  bytes[bytes.size() / 2] ^= 1;
  Put(Path(), bytes);
  EXPECT_THAT(ReadAll(dataset.IgnoreErrors()), testing::Contains(HasSubstr("is damaged")));
}

// Lets each operation fail in turn, then loses power.
TEST(CacheFileWriter, LeavesAWholeFileOrNoneOnADiskThatFails) {
  const std::string name = "/cache/cached";
  std::mt19937_64 random;
  bool failed = true;
  for (int64_t operation = 0; failed; ++operation) {
    SCOPED_TRACE(absl::StrCat("operation ", operation));
    FakeDisk disk;
    ASSERT_TRUE(disk.MakeFolders("/cache").ok());
    const int64_t fails_at = disk.operations() + operation;
    disk.FailAt(fails_at, absl::UnavailableError("cut"), /*for_good=*/true);
    const auto write = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const std::unique_ptr<CacheFileWriter> writer,
                       CacheFileWriter::Create(name, {.fingerprint = 7}, disk));
      for (const char* element : {"one", "two", "three"}) RETURN_IF_ERROR(writer->Append(element));
      return writer->Commit({});
    };
    const bool committed = write().ok();
    failed = disk.operations() > fails_at;
    EXPECT_EQ(committed, !failed);
    disk.LosePower(random);
    const absl::StatusOr<std::string> bytes = disk.Read(name);
    EXPECT_TRUE(bytes.ok() || !committed) << bytes.status();
    if (bytes.ok()) {
      FakeFiles files;
      files.Put(name, *bytes);
      const absl::StatusOr<CacheFile> cache = OpenCacheFile(name, files);
      ASSERT_TRUE(cache.ok()) << cache.status();
      EXPECT_EQ(cache->elements, 3);
    }
    EXPECT_TRUE(write().ok());
    EXPECT_THAT(*disk.List("/cache"), ElementsAre("cached"));
  }
}

TEST_F(CacheOnDisk, SaysWhereItCannotWrite) {
  const Strings all = ReadAll(Dataset::Range(5).Cache(folder_ + "/no/such/folder"));
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0], HasSubstr("cannot create " + folder_ + "/no/such/folder"));
}

// Iterators save states by themselves before they read.
TEST_F(CacheOnDisk, ThatIsUnusableIsAnErrorThroughEveryNode) {
  const Dataset bad = Dataset::Range(3).Cache(folder_ + "/no/such/folder");
  for (const Dataset& dataset :
       {bad, bad.Take(2), bad.Skip(1), bad.Map([](Expr x) { return x + 1; }), bad.Shuffle(3),
        bad.Batch(2), bad.Prefetch(1), Dataset::Zip({bad, bad}), bad.Repeat(2),
        bad.Filter([](Expr x) { return x > 0; }), bad.Concatenate(bad), bad.Enumerate()}) {
    Iterator iterator = IteratorOf(dataset);
    iterator.Save().status().IgnoreError();
    EXPECT_THAT(std::string(iterator.Next().status().message()), HasSubstr("cannot create"))
        << dataset.Explain();
    const auto timed = *MakeInterruptible(dataset, {});
    const auto next = timed->NextBy(absl::InfiniteFuture());
    EXPECT_THAT(std::string(next->status().message()), HasSubstr("cannot create"))
        << dataset.Explain();
  }
}

TEST_F(CacheOnDisk, RestoresInTheMidstOfAFill) {
  const Strings whole = Reading(Random().Repeat(2), {}).Rest(80);
  std::filesystem::remove(Path());
  for (int64_t at : {0, 1, 17, 40, 41, 79, 80}) {
    std::string state;
    {
      Reading reading(Random().Repeat(2), {});
      reading.Rest(at);
      state = reading.Save();
    }
    std::filesystem::remove(Path());  // a later run, on another machine
    Reading restored(Random().Repeat(2), {});
    ASSERT_TRUE(restored.Restore(state).ok()) << at;
    EXPECT_EQ(restored.Rest(80), Strings(whole.begin() + at, whole.end())) << at;
    std::filesystem::remove(Path());
  }
}

TEST_F(CacheOnDisk, RestoresOnlyWithTheFileThatWasRead) {
  ReadAll(Random(), {.seed = 1});
  const std::string file = BytesOf(Path());
  Reading reading(Random(), {.seed = 2});
  const Strings whole = reading.Rest(40);
  Reading again(Random(), {.seed = 2});
  again.Rest(10);
  const std::string state = again.Save();

  std::filesystem::remove(Path());
  Reading without(Random(), {.seed = 2});
  const absl::Status gone = without.Restore(state);
  EXPECT_EQ(gone.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(gone.message()), HasSubstr(Path()));

  ReadAll(Random(), {.seed = 2});
  Reading another(Random(), {.seed = 2});
  EXPECT_THAT(std::string(another.Restore(state).message()), HasSubstr("with a different seed"));

  Put(Path(), file);
  Reading same(Random(), {.seed = 2});
  ASSERT_TRUE(same.Restore(state).ok());
  EXPECT_EQ(same.Rest(40), Strings(whole.begin() + 10, whole.end()));
}

TEST_F(CacheOnDisk, OfAPartitionIsForTheSameSplitsAlone) {
  const Dataset dataset = Counted(Dataset::Range(60)).Cache(Path());
  const absl::StatusOr<SplitPlan> plan = PlanSplits(dataset);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto read = [&](uint64_t split_seed, uint64_t seed, Strings& all) {
    return CallsOf([&] {
      for (int partition = 1; partition <= 2; ++partition) {
        Reading reading(dataset, {.seed = seed,
                                  .threads = 1,
                                  .plan = &*plan,
                                  .partitions = 2,
                                  .partition = partition,
                                  .split_seed = split_seed});
        for (std::string& element : reading.Rest(100)) all.push_back(std::move(element));
      }
    });
  };
  Strings first, same, assigned_anew, other_seed;
  EXPECT_EQ(read(1, 7, first), 60);
  EXPECT_THAT(Files(), testing::UnorderedElementsAre("cached.partition-1", "cached.partition-2"));
  EXPECT_EQ(read(1, 7, same), 0);
  EXPECT_EQ(same, first);
  EXPECT_EQ(read(2, 7, assigned_anew), 60);
  EXPECT_THAT(assigned_anew, testing::UnorderedElementsAreArray(first));
  EXPECT_EQ(read(2, 8, other_seed), 60);
}

// Another shard may have no such file, and then draws the order by the seed.
TEST_F(CacheOnDisk, OfAnOrderThatShardsDivideIsForItsSeedAlone) {
  const auto read = [&](uint64_t seed, Strings& all) {
    return CallsOf([&] {
      all = Reading(Random(), {.seed = seed, .threads = 1, .same_elsewhere = true}).Rest(100);
    });
  };
  Strings first, same, other_seed;
  EXPECT_EQ(read(1, first), 40);
  EXPECT_EQ(read(1, same), 0);
  EXPECT_EQ(same, first);
  EXPECT_EQ(read(2, other_seed), 40);
  EXPECT_NE(other_seed, first);
  EXPECT_THAT(other_seed, testing::UnorderedElementsAreArray(first));
}

TEST_F(CacheOnDisk, InAFunctionIsRefused) {
  const std::string path = Path();
  const Strings all = ReadAll(
      Dataset::Range(1, 2).FlatMap([path](Expr x) { return Dataset::Range(x).Cache(path); }));
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0], HasSubstr("is inside a function"));
}

}  // namespace
}  // namespace penstock
