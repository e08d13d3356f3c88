// SPDX-License-Identifier: Apache-2.0
#include "penstock/iterator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/engine/state_head.h"
#include "dataplane/dataset/engine/state_sections.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"
#include "penstock/sources.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<int64_t> Rest(Iterator& iterator) {
  std::vector<int64_t> values;
  for (;;) {
    absl::StatusOr<std::optional<Element>> next = iterator.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || !next->has_value()) return values;
    values.push_back((**next).tensor(0).scalar<int64_t>());
  }
}

std::string Text(const absl::Status& status) {
  return status.ToString();
}

TEST(Iterator, GivesElementsThenTheEnd) {
  Iterator iterator = Dataset::Range(3).MakeIterator().value();
  EXPECT_THAT(Rest(iterator), ElementsAre(0, 1, 2));
  EXPECT_FALSE(iterator.Next()->has_value());
}

TEST(Iterator, AMistakeInTheDatasetIsReportedWhenItIsMade) {
  const Dataset dataset = Dataset::Range(0, 3, 0).Take(1);
  EXPECT_EQ(dataset.MakeIterator().status(), dataset.status());
  std::vector<std::string> seen;
  for (absl::StatusOr<Element>& element : dataset.Elements())
    seen.push_back(Text(element.status()));
  EXPECT_THAT(seen, ElementsAre(HasSubstr("Range#0")));
}

TEST(Iterator, ChecksTheTrainersStep) {
  Iterator iterator = Dataset::Range(5).MakeIterator().value();
  EXPECT_TRUE(iterator.CheckStep(0).ok());
  EXPECT_TRUE(iterator.Next().ok());
  EXPECT_TRUE(iterator.CheckStep(1).ok());
  EXPECT_TRUE(iterator.Next().ok());
  const absl::Status late = iterator.CheckStep(1);
  EXPECT_EQ(late.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Text(late), AllOf(HasSubstr("step 1"), HasSubstr("step 2")));
  EXPECT_TRUE(iterator.CheckStep(2).ok());
  EXPECT_EQ((**iterator.Next()).tensor(0).scalar<int64_t>(), 2);
}

TEST(Iterator, AStateHoldsStepAndSeed) {
  const Dataset dataset = Dataset::Range(50).Shuffle(50);
  Iterator first = dataset.MakeIterator({.seed = 4}).value();
  for (int step = 0; step < 20; ++step) ASSERT_TRUE(first.Next().ok());
  const State state = first.Save().value();
  Iterator second = dataset.MakeIterator({.seed = 5}).value();
  ASSERT_TRUE(second.Restore(state).ok());
  EXPECT_FALSE(second.CheckStep(0).ok());
  EXPECT_TRUE(second.CheckStep(20).ok());
  EXPECT_EQ(Rest(second), Rest(first));
}

// --- Epochs -------------------------------------------------------------------------

std::vector<int64_t> Epoch(const Dataset& dataset, IteratorOptions options = {}) {
  Iterator iterator = dataset.MakeIterator(options).value();
  return Rest(iterator);
}

TEST(Epochs, EachIteratorShufflesDifferently) {
  const Dataset dataset = Dataset::Range(20).Shuffle(20, {.seed = 3});
  const std::vector<int64_t> first = Epoch(dataset), second = Epoch(dataset);
  EXPECT_NE(first, second);
  const Dataset again = Dataset::Range(20).Shuffle(20, {.seed = 3});
  EXPECT_EQ(Epoch(again), first) << "an equal dataset, as another run has it";
  EXPECT_EQ(Epoch(again), second);
  const Dataset fixed =
      Dataset::Range(20).Shuffle(20, {.seed = 3, .reshuffle_each_iteration = false});
  EXPECT_EQ(Epoch(fixed), Epoch(fixed));
}

TEST(Epochs, AreOfTheShuffleWhateverNodesFollow) {
  const Dataset shuffled = Dataset::Range(20).Shuffle(20, {.seed = 3});
  EXPECT_NE(Epoch(shuffled.Take(10)), Epoch(shuffled.Take(10)));
  const Dataset other = Dataset::Range(20).Shuffle(20, {.seed = 3});
  const std::vector<int64_t> all = Epoch(other), next = Epoch(other.Repeat(2));
  EXPECT_NE(all, std::vector<int64_t>(next.begin(), next.begin() + 20));
  EXPECT_NE(std::vector<int64_t>(next.begin(), next.begin() + 20),
            std::vector<int64_t>(next.begin() + 20, next.end()));
}

TEST(Epochs, ASeedIsOneOrder) {
  const Dataset dataset = Dataset::Range(20).Shuffle(20);
  EXPECT_EQ(Epoch(dataset, {.seed = 5}), Epoch(dataset, {.seed = 5}));
  Epoch(dataset);
  EXPECT_EQ(Epoch(dataset, {.seed = 5}), Epoch(dataset, {.seed = 5}));
}

TEST(Epochs, AStateContinuesItsEpochAndThenTheNext) {
  const auto make = [] { return Dataset::Range(20).Shuffle(7, {.seed = 3}).Prefetch(2); };
  const Dataset dataset = make();
  std::vector<std::vector<int64_t>> epochs;
  for (int epoch = 0; epoch < 4; ++epoch) epochs.push_back(Epoch(dataset));

  const Dataset here = make();
  Epoch(here), Epoch(here);
  Iterator iterator = here.MakeIterator().value();
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(iterator.Next().ok());
  const State state = iterator.Save().value();

  const Dataset later = make();  // in another run
  Iterator restored = later.MakeIterator().value();
  ASSERT_TRUE(restored.Restore(state).ok());
  EXPECT_EQ(Rest(restored), std::vector<int64_t>(epochs[2].begin() + 9, epochs[2].end()));
  EXPECT_EQ(Epoch(later), epochs[3]);
}

TEST(Epochs, AnUnreadOneIsNotCounted) {
  const Dataset dataset = Dataset::Range(20).Shuffle(20, {.seed = 3});
  const Dataset plain = Dataset::Range(20).Shuffle(20, {.seed = 3});
  const std::vector<int64_t> first = Epoch(plain), second = Epoch(plain);
  const State beginning = dataset.MakeIterator()->Save().value();
  Iterator restored = dataset.MakeIterator().value();
  ASSERT_TRUE(restored.Restore(beginning).ok());
  EXPECT_EQ(Rest(restored), first);
  EXPECT_EQ(Epoch(dataset), second);
}

TEST(Epochs, AreCountedByReduceToo) {
  const Dataset dataset = Dataset::Range(20).Shuffle(20, {.seed = 3});
  const auto last = [](Expr, Expr x) { return x; };
  std::set<int64_t> seen;
  for (int i = 0; i < 5; ++i)
    seen.insert(dataset.Reduce(int64_t{0}, last)->tensor(0).scalar<int64_t>());
  EXPECT_GT(seen.size(), 1);
}

TEST(Iterator, RestoresInTheMiddleOfReading) {
  Iterator iterator = Dataset::Range(5).MakeIterator().value();
  const State start = iterator.Save().value();
  Rest(iterator);
  ASSERT_TRUE(iterator.Restore(start).ok());
  EXPECT_THAT(Rest(iterator), SizeIs(5));
}

TEST(Iterator, AStateOfAnotherDatasetIsRefusedByTheNodeThatDiffers) {
  const State state = Dataset::Range(9).Take(5).Skip(1).MakeIterator()->Save().value();
  Iterator other = Dataset::Range(9).Take(6).Skip(1).MakeIterator().value();
  const absl::Status status = other.Restore(state);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(status), HasSubstr("Take#1"));
  Iterator longer = Dataset::Range(9).Take(5).Skip(1).Take(3).MakeIterator().value();
  EXPECT_THAT(Text(longer.Restore(state)), HasSubstr("Take#3"));
}

TEST(Iterator, InvalidStatesAreRefused) {
  Iterator iterator = Dataset::Range(9).MakeIterator().value();
  EXPECT_EQ(iterator.Restore({""}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(iterator.Restore({"something else"}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(iterator.Commit({"something else"}).code(), absl::StatusCode::kInvalidArgument);
  State state = iterator.Save().value();
  state.bytes += "more";
  EXPECT_EQ(iterator.Restore(state).code(), absl::StatusCode::kDataLoss);
}

// Expects that reading fails until a Restore() succeeds: nothing is read from where the failed one
// left it.
void ExpectNeedsRestore(Iterator& iterator, std::string_view why) {
  for (int i = 0; i < 2; ++i) {
    const absl::Status next = iterator.Next().status();
    EXPECT_EQ(next.code(), absl::StatusCode::kFailedPrecondition) << next;
    EXPECT_THAT(Text(next), AllOf(HasSubstr("the last Restore() failed"), HasSubstr(why)));
    EXPECT_EQ(iterator.Save().status(), next);
    EXPECT_EQ(iterator.Next(absl::Now() + absl::Hours(1)).status(), next);
  }
}

// Returns the number of the Save() that made `state`. Commit() tells states apart by it.
uint64_t SaveNumber(const State& state) {
  StateReader reader(AfterMagic(state));
  return ReadStateHead(reader, state).value().save;
}

TEST(Iterator, AStateThatIsRefusedLeavesNoPlaceToReadFrom) {
  const Dataset dataset = Dataset::Zip({Dataset::Range(9), Dataset::Range(9).Skip(1)});
  Iterator iterator = dataset.MakeIterator().value();
  const State start = iterator.Save().value();
  ASSERT_TRUE(iterator.Next().ok());
  const State another =
      Dataset::Zip({Dataset::Range(9), Dataset::Range(9).Skip(2)}).MakeIterator()->Save().value();
  EXPECT_EQ(iterator.Restore(another).code(), absl::StatusCode::kInvalidArgument);
  ExpectNeedsRestore(iterator, "Skip#");
  EXPECT_EQ(iterator.Commit(start).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(iterator.Restore(start).ok());
  EXPECT_EQ(SaveNumber(iterator.Save().value()), SaveNumber(start) + 1);
  EXPECT_THAT(Rest(iterator), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Iterator, ARestoreWithoutItsFilesFailsUntilTheyAreBack) {
  std::string pattern = ::testing::TempDir() + "penstock_restored_XXXXXX";
  const std::filesystem::path folder = mkdtemp(pattern.data());
  const std::filesystem::path away = folder.string() + "-away";
  std::ofstream(folder / "a.txt") << "1\n2\n3\n";
  Iterator iterator = Dataset::ListFiles((folder / "*.txt").string())
                          .Interleave([](auto name) { return Dataset::TextLine(name); })
                          .Map([](auto line) { return StringToNumber(line, kInt64); })
                          .MakeIterator()
                          .value();
  ASSERT_TRUE(iterator.Next().ok());
  const State state = iterator.Save().value();
  std::filesystem::rename(folder, away);
  EXPECT_EQ(iterator.Restore(state).code(), absl::StatusCode::kNotFound);
  ExpectNeedsRestore(iterator, "restored");
  std::filesystem::rename(away, folder);
  ASSERT_TRUE(iterator.Restore(state).ok());
  EXPECT_THAT(Rest(iterator), ElementsAre(2, 3));
  std::filesystem::remove_all(folder);
}

TEST(Iterator, StoppedItGivesCancelled) {
  Iterator iterator = Dataset::Range(9).MakeIterator().value();
  std::optional<Element> kept = *iterator.Next();
  EXPECT_TRUE(iterator.Stop().ok());
  EXPECT_TRUE(absl::IsCancelled(iterator.Next().status()));
  EXPECT_EQ(kept->tensor(0).scalar<int64_t>(), 0);
}

// Makes a source wait until the test lets it go on. Records saves and commits.
class Gate {
 public:
  void Open(int elements) {
    std::lock_guard lock(mu_);
    open_ += elements;
    changed_.notify_all();
  }
  // From now on, a requested stop does not end the source's wait.
  void IgnoreStops() { ignores_stops_ = true; }
  // Returns false once a stop is requested.
  bool Pass(std::stop_token stop) {
    std::unique_lock lock(mu_);
    waits_ = true;
    changed_.notify_all();
    if (ignores_stops_) stop = {};
    if (!changed_.wait(lock, std::move(stop), [this] { return open_ > 0; })) return false;
    --open_;
    return true;
  }
  void AwaitWait() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [this] { return waits_; });
  }
  void Saved(uint64_t save) {
    std::lock_guard lock(mu_);
    saved_ = save;
  }
  void Committed(uint64_t save) {
    std::lock_guard lock(mu_);
    committed_ = save;
  }
  // Sets the function that a saved state needs the answer of.
  void Asks(std::function<void()> others) { others_ = std::move(others); }
  const std::function<void()>& others() const { return others_; }
  uint64_t saved() {
    std::lock_guard lock(mu_);
    return saved_;
  }
  uint64_t committed() {
    std::lock_guard lock(mu_);
    return committed_;
  }

 private:
  std::mutex mu_;
  std::condition_variable_any changed_;
  int open_ = 0;
  bool waits_ = false;
  bool ignores_stops_ = false;
  uint64_t saved_ = 0;
  uint64_t committed_ = 0;
  std::function<void()> others_;
};
Gate* gate = nullptr;  // of the running test

class GatedIterator final : public NodeIterator {
 public:
  explicit GatedIterator(const BuildSite& site) : site_(site) {
    listener_ = site.run().commits->Add([](uint64_t save) {
      gate->Committed(save);
      return absl::OkStatus();
    });
  }
  ~GatedIterator() override { site_.run().commits->Remove(listener_); }

  absl::StatusOr<std::optional<Element>> Next() override {
    if (!gate->Pass(site_.run().stop)) return absl::CancelledError("stopped");
    const int64_t value = next_++;
    const Tensor tensor(kInt64, {}, &value);
    return MakeElement(site_.pool(), {&tensor, 1}, site_.spec());
  }
  absl::Status Save(StateWriter& writer) override {
    gate->Saved(writer.save_number());
    if (const std::function<void()> others = gate->others()) {
      site_.run().states->Put(0, next_, [others]() -> absl::StatusOr<std::string> {
        others();
        return "";
      });
    }
    writer.WriteInt(next_);
    return absl::OkStatus();
  }
  absl::Status Restore(StateReader& reader) override {
    absl::StatusOr<int64_t> next = reader.ReadInt();
    if (next.ok()) next_ = *next;
    return next.status();
  }

 private:
  BuildSite site_;
  uint64_t listener_;
  int64_t next_ = 0;
};

NodeKind GatedKind() {
  return {.op = "Gated",
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = [](const Attrs&, absl::Span<const NodePtr>) -> absl::StatusOr<Inferred> {
            return Inferred{Scalar(kInt64), kInfinite};
          },
          .build = [](const BuildSite& site) -> absl::StatusOr<std::unique_ptr<NodeIterator>> {
            return std::make_unique<GatedIterator>(site);
          }};
}

Dataset Gated() {
  RegisterNodeKind(GatedKind());
  return DatasetOf(MakeNode("Gated", {}, {}));
}

class GatedTest : public ::testing::Test {
 protected:
  GatedTest() { gate = &gate_; }

  Gate gate_;
  const Dataset dataset_ = Gated();
};

TEST_F(GatedTest, ADeadlineLosesNothing) {
  Iterator iterator = dataset_.MakeIterator().value();
  gate_.Open(1);
  ASSERT_TRUE(iterator.Next().ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(iterator.Next(absl::InfinitePast()).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(iterator.Next(absl::InfinitePast()).status()));
  gate_.Open(2);
  EXPECT_EQ((**iterator.Next()).tensor(0).scalar<int64_t>(), 1);
  EXPECT_EQ((**iterator.Next(absl::Now() + absl::Hours(1))).tensor(0).scalar<int64_t>(), 2);
}

TEST_F(GatedTest, AStateDoesNotHoldAnElementThatCameTooLate) {
  Iterator iterator = dataset_.MakeIterator().value();
  EXPECT_TRUE(absl::IsDeadlineExceeded(iterator.Next(absl::InfinitePast()).status()));
  const State state = iterator.Save().value();  // does not wait for the late element
  gate_.Open(3);
  EXPECT_EQ((**iterator.Next()).tensor(0).scalar<int64_t>(), 0);
  Iterator restored = dataset_.MakeIterator().value();
  ASSERT_TRUE(restored.Restore(state).ok());
  EXPECT_TRUE(restored.CheckStep(0).ok());
  EXPECT_EQ((**restored.Next()).tensor(0).scalar<int64_t>(), 0);
}

TEST_F(GatedTest, AnElementThatComesTooLateIsTheNextCalls) {
  std::unique_ptr<InterruptibleIterator> iterator = MakeInterruptible(dataset_, {}).value();
  EXPECT_FALSE(iterator->NextBy(absl::InfinitePast()).has_value());
  EXPECT_FALSE(iterator->NextBy(absl::InfinitePast()).has_value());
  EXPECT_TRUE(iterator->CheckStep(0).ok());  // it was not delivered
  gate_.Open(1);
  const auto next = *iterator->NextBy(absl::InfiniteFuture());
  EXPECT_EQ((*next)->tensor(0).scalar<int64_t>(), 0);
}

TEST(Interruptible, QuickElementsAreGivenInOrder) {
  std::unique_ptr<InterruptibleIterator> iterator =
      MakeInterruptible(Dataset::Range(1000), {}).value();
  int64_t expected = 0;
  while (true) {
    const auto next = *iterator->NextBy(absl::InfiniteFuture());
    ASSERT_TRUE(next.ok());
    if (!next->has_value()) break;
    EXPECT_EQ((*next)->tensor(0).scalar<int64_t>(), expected++);
    const State state = iterator->Save().value();
    if (expected % 300 != 0) continue;
    ASSERT_TRUE(iterator->Restore(state).ok());
  }
  EXPECT_EQ(expected, 1000);
}

TEST_F(GatedTest, AStateThatAsksOthersHoldsUpNoElement) {
  std::promise<void> asked;
  std::promise<void> answer;
  gate_.Asks([&] {
    asked.set_value();
    answer.get_future().wait();
  });
  Iterator iterator = dataset_.MakeIterator().value();
  absl::Status saved;
  std::thread saves([&] { saved = iterator.Save().status(); });
  asked.get_future().wait();
  gate_.Open(1);
  EXPECT_TRUE(iterator.Next(absl::Now() + absl::Hours(1)).ok());
  answer.set_value();
  saves.join();
  EXPECT_TRUE(saved.ok()) << saved;
}

TEST_F(GatedTest, StopEndsAWait) {
  Iterator iterator = dataset_.MakeIterator().value();
  std::thread reader([&] { EXPECT_TRUE(absl::IsCancelled(iterator.Next().status())); });
  EXPECT_TRUE(iterator.Stop().ok());
  reader.join();
}

TEST_F(GatedTest, StopEndsAWaitForAnElementThatIsReadAhead) {
  gate_.IgnoreStops();
  Iterator iterator = dataset_.Prefetch(1).MakeIterator().value();
  std::thread reader([&] { EXPECT_TRUE(absl::IsCancelled(iterator.Next().status())); });
  gate_.AwaitWait();
  EXPECT_TRUE(iterator.Stop().ok());
  reader.join();
  gate_.Open(1);  // ends the thread that reads ahead
}

TEST_F(GatedTest, StopEndsARestoreThatWaitsForALateElement) {
  Iterator iterator = dataset_.MakeIterator().value();
  const State start = iterator.Save().value();
  EXPECT_TRUE(absl::IsDeadlineExceeded(iterator.Next(absl::InfinitePast()).status()));
  std::thread trainer([&] { EXPECT_TRUE(absl::IsCancelled(iterator.Restore(start))); });
  EXPECT_TRUE(iterator.Stop().ok());
  trainer.join();
  EXPECT_TRUE(absl::IsCancelled(iterator.Save().status()));
}

TEST_F(GatedTest, AStateOfAnotherIteratorReachesNoNode) {
  const State foreign = dataset_.MakeIterator().value().Save().value();
  Iterator iterator = dataset_.MakeIterator().value();
  ASSERT_TRUE(iterator.Save().ok());
  const uint64_t before = gate_.committed();
  EXPECT_EQ(iterator.Commit(foreign).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(gate_.committed(), before);
}

TEST_F(GatedTest, ACommitReachesTheNodesByTheNumberOfTheSave) {
  Iterator iterator = dataset_.MakeIterator().value();
  const State first = iterator.Save().value();
  const uint64_t number = gate_.saved();
  EXPECT_NE(number, 0u);
  ASSERT_TRUE(iterator.Save().ok());
  EXPECT_NE(gate_.saved(), number);
  ASSERT_TRUE(iterator.Commit(first).ok());
  EXPECT_EQ(gate_.committed(), number);
}

// Returns how many elements of `dataset` are in RunContext::output.
int64_t MadeInOutput(const Dataset& dataset, bool output_ahead, bool sent_ahead = false) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  const std::shared_ptr<Pool> output = Pool::Create();
  RunContext context;
  context.pool = pool.get();
  context.output = output.get();
  context.output_ahead = output_ahead;
  context.sent_ahead = sent_ahead;
  std::vector<Element> elements;
  {
    std::unique_ptr<NodeIterator> iterator = BuildIterator(dataset, context).value();
    while (std::optional<Element> element = iterator->Next().value())
      elements.push_back(*std::move(element));
  }
  return output->counters().slots_lent - output->counters().slots_returned;
}

TEST(Output, HoldsTheLastNodesElementsAndReadAheadOnRequest) {
  const Dataset batches = Dataset::Range(8).Batch(2);
  for (const bool output_ahead : {false, true}) {
    EXPECT_EQ(MadeInOutput(batches, output_ahead), 4);
    EXPECT_EQ(MadeInOutput(batches.Repeat(2), output_ahead), 8);
    EXPECT_EQ(MadeInOutput(batches.Repeat(2).Take(5).WithOptions({.threads = 1}), output_ahead), 5);
    EXPECT_EQ(MadeInOutput(batches.Prefetch(1).Repeat(2), output_ahead), output_ahead ? 8 : 0);
  }
}

TEST(Output, HoldsElementsOfNodesThatChoose) {
  const Dataset batches = Dataset::Range(8).Batch(2);
  const auto body = [](const Expr& x) { return Dataset::Range(x).Batch(2); };
  EXPECT_EQ(MadeInOutput(batches.Filter([](Expr x) { return x[0] != 2; }), false), 3);
  EXPECT_EQ(MadeInOutput(batches.TakeWhile([](Expr x) { return x[0] < 4; }), false), 2);
  EXPECT_EQ(MadeInOutput(batches.Shard(2, 1), false), 2);
  EXPECT_EQ(MadeInOutput(batches.IgnoreErrors(), false), 4);
  EXPECT_EQ(MadeInOutput(batches.Concatenate(batches.Take(1)), false), 5);
  EXPECT_EQ(MadeInOutput(Dataset::Range(2, 5).FlatMap(body), false), 1 + 2 + 2);
  EXPECT_EQ(MadeInOutput(Dataset::Range(2, 5).Interleave(body), false), 1 + 2 + 2);
  EXPECT_EQ(MadeInOutput(Dataset::SampleFromDatasets({batches, batches}), false), 8);
  EXPECT_EQ(MadeInOutput(Dataset::ChooseFromDatasets({batches, batches}, Dataset::Range(2)), false),
            2)
      << "and none that says which";
  EXPECT_EQ(MadeInOutput(batches.Shuffle(4).Filter([](Expr x) { return x[0] != 2; }), false), 0)
      << "what is held longer is not the last node's";
}

TEST(Output, HoldsAFinalPrefetchsElementsIfSentAhead) {
  const Dataset batches = Dataset::Range(8).Batch(2);
  EXPECT_EQ(MadeInOutput(batches.Prefetch(2), false, true), 4);
  EXPECT_EQ(MadeInOutput(batches.Prefetch(2).WithOptions({.threads = 1}).Prefetch(2), false, true),
            4);
  EXPECT_EQ(MadeInOutput(batches.Prefetch(2).Repeat(2), false, true), 0) << "another is last";
}

}  // namespace
}  // namespace penstock
