// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "dataplane/element/block.h"
#include "dataplane/element/device_block_check.h"
#include "dataplane/element/extension.h"
#include "dataplane/memory/pool.h"
#include "tests/dataplane/element/sample.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// A block that a test may damage.
class Hostile {
 public:
  explicit Hostile(Element element = SampleElement())
      : element_(std::move(element)), spec_(element_.spec()) {}

  HeadPrefix& prefix() { return MutablePrefixOf(element_.block().data()); }
  LeafEntry& entry(size_t i) { return const_cast<LeafEntry&>(TableOf(element_.block().data())[i]); }
  LeafEntry& entry(std::string_view key) { return entry(spec_.Find(key)->first_leaf); }
  int64_t& dim(std::string_view key, int d) {
    return reinterpret_cast<int64_t*>(element_.block().data() + entry(key).shape_offset)[d];
  }
  PartEntry& part(std::string_view key, int p) {
    return reinterpret_cast<PartEntry*>(&dim(key, entry(key).rank))[p];
  }
  int64_t& part_value(std::string_view key, int p, int k) {
    return reinterpret_cast<int64_t*>(element_.block().data() + part(key, p).offset)[k];
  }
  uint64_t& string_offset(std::string_view key, int k) {
    return reinterpret_cast<uint64_t*>(element_.block().data() + entry(key).data_offset)[k];
  }
  uint8_t& body(std::string_view key, int k) {
    return reinterpret_cast<uint8_t*>(element_.block().data() + prefix().head_bytes +
                                      entry(key).data_offset)[k];
  }
  absl::Status Check() const { return CheckBlock(block_at_first(), spec_).status(); }
  absl::Status CheckAgainst(const Spec& spec) const {
    return CheckBlock(block_at_first(), spec).status();
  }

 private:
  // Returns the original bytes: sizes in the head may be wrong now.
  absl::Span<const std::byte> block_at_first() const {
    return absl::MakeConstSpan(element_.loan().bytes().data(), bytes_);
  }
  Element element_;
  Spec spec_;
  size_t bytes_ = element_.block().size();
};

#define EXPECT_DAMAGE(field_text, damage)                                         \
  do {                                                                            \
    Hostile block;                                                                \
    ASSERT_TRUE(block.Check().ok()) << block.Check();                             \
    damage;                                                                       \
    const absl::Status status = block.Check();                                    \
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;              \
    EXPECT_THAT(std::string(status.message()), HasSubstr(field_text)) << #damage; \
  } while (false)

TEST(CheckBlock, AcceptsBlockWritersBlocksAndReturnsTheirSize) {
  const Element element = SampleElement();
  const absl::StatusOr<size_t> bytes = CheckBlock(element.loan().bytes(), SampleSpec());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, element.block().size());
}

TEST(CheckBlock, RefusesADamagedPrefix) {
  EXPECT_DAMAGE("magic", block.prefix().magic ^= 1);
  EXPECT_DAMAGE("head_bytes", block.prefix().head_bytes = 0);
  EXPECT_DAMAGE("head_bytes", block.prefix().head_bytes += 1);
  EXPECT_DAMAGE("head_bytes", block.prefix().head_bytes = 0xffffffc0);
  EXPECT_DAMAGE("body_bytes", block.prefix().body_bytes += 64);
  EXPECT_DAMAGE("body_bytes", block.prefix().body_bytes = ~uint64_t{63});
  EXPECT_DAMAGE("leaf_count", block.prefix().leaf_count = 0xffffffff);
  EXPECT_DAMAGE("extension_bytes", block.prefix().extension_bytes = 4);
  EXPECT_DAMAGE("extension_bytes", block.prefix().extension_bytes = 0xfffffff8);
  EXPECT_DAMAGE("END or ERROR", block.prefix().flags = kFlagEnd);
}

TEST(CheckBlock, RefusesBytesThatAreNoBlock) {
  const Element element = SampleElement();
  const absl::Span<const std::byte> bytes = element.block();
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    ASSERT_FALSE(CheckBlock(bytes.subspan(0, cut), SampleSpec()).ok()) << cut;
  }
  EXPECT_FALSE(CheckBlock(bytes.subspan(8), SampleSpec()).ok());
}

TEST(CheckBlock, RefusesAnotherVersionAsAPrecondition) {
  Hostile block;
  block.prefix().version = 2;
  EXPECT_EQ(block.Check().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CheckBlock, RefusesPlacesOutsideTheBlock) {
  EXPECT_DAMAGE("'dense'): shape_offset", block.entry("dense").shape_offset = 0xfffffff8);
  EXPECT_DAMAGE("'dense'): shape_offset", block.entry("dense").shape_offset += 4);
  EXPECT_DAMAGE("'dense'): shape_offset", block.entry("dense").shape_offset = 80);
  EXPECT_DAMAGE("'dense'): data_offset", block.entry("dense").data_offset += 8);
  EXPECT_DAMAGE("'dense'): data_offset", block.entry("dense").data_offset = ~uint64_t{63});
  EXPECT_DAMAGE("'dense'): data_offset", block.entry("dense").data_bytes = ~uint64_t{0});
  EXPECT_DAMAGE("'dense'): data_bytes", block.entry("dense").data_bytes -= 4);
  EXPECT_DAMAGE("'bytes'): data_offset", block.entry("bytes").data_offset = ~uint64_t{7});
  EXPECT_DAMAGE("'bytes'): data_bytes", block.entry("bytes").data_bytes = 8);
  EXPECT_DAMAGE("'ragged'): the position of a part", block.part("ragged", 1).offset = 8);
  EXPECT_DAMAGE("'ragged'): the position of a part", block.part("ragged", 0).count = ~uint64_t{0});
  EXPECT_DAMAGE("'sparse'): the position of a part", block.part("sparse", 0).offset += 1);
}

TEST(CheckBlock, RefusesDimensionsThatDoNotFitTheData) {
  EXPECT_DAMAGE("a dimension is negative", block.dim("dense", 0) = -1);
  EXPECT_DAMAGE("data_bytes", block.dim("dense", 0) = 3);
  EXPECT_DAMAGE("the product of its dimensions is too large", block.dim("dense", 0) = kHuge);
  EXPECT_DAMAGE("data_bytes", block.dim("empty", 0) = 1);
  EXPECT_DAMAGE("the product of its dimensions is too large", block.dim("empty", 1) = kHuge);
}

TEST(CheckBlock, RefusesStringsThatOverlapOrLeave) {
  EXPECT_DAMAGE("string offsets", block.string_offset("words", 0) = 1);
  EXPECT_DAMAGE("string offsets", block.string_offset("words", 1) = 6);
  EXPECT_DAMAGE("string offsets", block.string_offset("words", 3) = 4);
  EXPECT_DAMAGE("string offsets", block.string_offset("words", 3) = ~uint64_t{0});
}

TEST(CheckBlock, RefusesRowsOutsideTheValues) {
  EXPECT_DAMAGE("row splits", block.part_value("ragged", 0, 0) = 1);
  EXPECT_DAMAGE("row splits", block.part_value("ragged", 0, 1) = 4);
  EXPECT_DAMAGE("row splits", block.part_value("ragged", 0, 1) = -1);
  EXPECT_DAMAGE("row splits", block.part_value("ragged", 0, 2) = 2);
  EXPECT_DAMAGE("row splits", block.part_value("ragged", 1, 3) = kHuge);
  EXPECT_DAMAGE("row splits", block.part_value("words", 0, 1) = kHuge);
  EXPECT_DAMAGE("row splits", block.part("words", 0).count = 0);
}

TEST(CheckBlock, RefusesSparseIndicesOutsideTheirShape) {
  EXPECT_DAMAGE("an index is outside", block.part_value("sparse", 0, 1) = 4);
  EXPECT_DAMAGE("an index is outside", block.part_value("sparse", 0, 0) = -1);
  EXPECT_DAMAGE("number of its indices", block.part("sparse", 0).count = 2);
  EXPECT_DAMAGE("dense_shape", block.part_value("sparse", 1, 0) = -3);
}

TEST(CheckBlock, RefusesBoolsThatAreNeither) {
  EXPECT_DAMAGE("a bool is neither 0 nor 1", block.body("bools", 2) = 2);
}

TEST(CheckBlock, RefusesAnAbsentLeafWithAPlace) {
  EXPECT_DAMAGE("absent", block.entry("absent").data_bytes = 8);
}

TEST(CheckBlock, RefusesExtensionsThatLeaveTheirRoom) {
  const BlockLayout layout = BlockLayout::Of({}, ExtensionBytes(8)).value();
  Loan loan = DefaultPool().Lend(layout.bytes()).value();
  BlockWriter writer(layout, loan.bytes(), Spec());
  const absl::Span<std::byte> room = writer.extensions();
  ExtensionWriter(room).Add(ExtensionType::kBookmark, 8);
  EXPECT_TRUE(CheckBlock(loan.bytes(), Spec()).ok());
  for (const uint32_t bytes : {9u, 0xffffffffu}) {
    std::memcpy(room.data() + 4, &bytes, sizeof(bytes));
    EXPECT_EQ(CheckBlock(loan.bytes(), Spec()).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(CheckBlockHead, DescribesABlockWithoutItsBody) {
  const Spec spec =
      Spec::Dict({{"values", TensorSpec{kInt64, {8}}}, {"word", TensorSpec{kString, {}}}});
  const int64_t values[8] = {};
  const int64_t dims[] = {8};
  const uint64_t offsets[] = {0, 4};
  const Tensor tensors[] = {
      Tensor(kInt64, dims, reinterpret_cast<const std::byte*>(values)),
      Tensor(kString, {}, reinterpret_cast<const std::byte*>(offsets), "word")};
  const Element element = MakeElement(DefaultPool(), tensors, spec).value();
  const size_t head_bytes = PrefixOf(element.block().data()).head_bytes;
  const absl::Span<const std::byte> head = element.block().first(head_bytes);
  EXPECT_TRUE(HeadDescribesAll(spec));
  EXPECT_EQ(CheckBlockHead(head, 64, spec), absl::OkStatus());
  for (const size_t body_bytes : {size_t{0}, size_t{128}})
    EXPECT_EQ(CheckBlockHead(head, body_bytes, spec).code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(CheckBlockHead(head.first(head_bytes - 64), 64, spec).ok());
  EXPECT_FALSE(CheckBlockHead(element.block(), 64, spec).ok());  // longer than the head
}

TEST(CheckBlockHead, RefusesBoolsThatNobodyLookedAt) {
  const Element element = SampleElement();
  const HeadPrefix& prefix = PrefixOf(element.block().data());
  EXPECT_FALSE(HeadDescribesAll(SampleSpec()));
  const absl::Status status =
      CheckBlockHead(element.block().first(prefix.head_bytes), prefix.body_bytes, SampleSpec());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bools on a device"));
}

TEST(CheckBlock, NamesTheLeafThatIsNotAdmitted) {
  const auto refused = [](std::string_view key, TensorSpec other) {
    const Spec spec = SampleSpec();
    std::vector<TensorSpec> leaves(spec.leaves().begin(), spec.leaves().end());
    leaves[spec.Find(key)->first_leaf] = std::move(other);
    const absl::Status status = Hostile().CheckAgainst(spec.WithLeaves(leaves));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refused("dense", Dense(kFloat32, {kUnknownDim, 4})), HasSubstr("'dense'"));
  EXPECT_THAT(refused("absent", Dense(kFloat64, {2})), HasSubstr("'absent'"));
  EXPECT_THAT(refused("ragged", Ragged(kInt32, {3, kUnknownDim, kUnknownDim, 2}, 2)),
              HasSubstr("number of rows"));
  EXPECT_THAT(refused("ragged", Ragged(kInt32, {2, 2, kUnknownDim, 2}, 2)),
              HasSubstr("a row's length"));
  EXPECT_THAT(refused("ragged", Ragged(kInt32, {2, kUnknownDim, kUnknownDim, 3}, 2)),
              HasSubstr("its shape"));
  EXPECT_THAT(refused("sparse", Sparse(kUInt8, {3, 5})), HasSubstr("its dense_shape"));
  EXPECT_THAT(refused("scalar", Scalar(kInt32)), HasSubstr("structure"));
}

TEST(CheckBlock, TellsANestWithOtherKeysFromTheExpectedOne) {
  const int32_t value = 1;
  const Tensor tensors[] = {Tensor(kInt32, {}, &value)};
  const Spec a = Spec::Dict({{"a", Scalar(kInt32)}});
  const Element element = MakeElement(DefaultPool(), tensors, a).value();
  EXPECT_TRUE(
      CheckBlock(element.block(), Spec::Dict({{"a", Dense(kInt32, Shape::UnknownRank())}})).ok());
  EXPECT_EQ(CheckBlock(element.block(), Spec::Dict({{"b", Scalar(kInt32)}})).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Reads everything that a reader may read, so that a sanitizer sees accesses outside the block.
uint64_t ReadAll(const Element& element) {
  uint64_t sum = element.ToString().size();
  for (size_t i = 0; i < element.size(); ++i) {
    const Tensor tensor = element.tensor(i);
    const auto* bytes = static_cast<const uint8_t*>(tensor.raw());
    for (size_t k = 0; k < tensor.byte_count(); ++k) sum += bytes[k];
  }
  return sum;
}

TEST(CheckBlock, LetsNothingOutsideBeReadAfterAnyFlippedBit) {
  const Element sample = SampleElement();
  const size_t bytes = sample.block().size();
  int passed = 0;
  for (size_t bit = 0; bit < bytes * 8; ++bit) {
    Loan loan = DefaultPool().Lend(bytes).value();
    std::memcpy(loan.bytes().data(), sample.block().data(), bytes);
    loan.bytes()[bit / 8] ^= std::byte(1 << (bit % 8));
    std::byte* block = loan.bytes().data();
    if (!CheckBlock(absl::MakeConstSpan(block, bytes), SampleSpec()).ok()) continue;
    const Element element(std::move(loan), block, SampleSpec());
    if ((PrefixOf(block).flags & (kFlagEnd | kFlagError)) == 0) ReadAll(element);
    ++passed;
  }
  EXPECT_GT(passed, 0);  // a flipped value cannot be detected
}

TEST(CheckBlock, LetsNothingOutsideBeReadAfterRandomDamage) {
  const Element sample = SampleElement();
  const size_t bytes = sample.block().size();
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    Loan loan = DefaultPool().Lend(bytes).value();
    std::memcpy(loan.bytes().data(), sample.block().data(), bytes);
    for (int n = random() % 4; n >= 0; --n) {
      const uint64_t word = random() % 2 == 0 ? random() % 512 : random();
      std::memcpy(loan.bytes().data() + random() % (bytes / 8) * 8, &word, sizeof(word));
    }
    std::byte* block = loan.bytes().data();
    if (!CheckBlock(absl::MakeConstSpan(block, bytes), SampleSpec()).ok()) continue;
    const Element element(std::move(loan), block, SampleSpec());
    if ((PrefixOf(block).flags & (kFlagEnd | kFlagError)) == 0) ReadAll(element);
  }
}

}  // namespace
}  // namespace penstock
