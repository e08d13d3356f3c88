// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/codec.h"

#include <cstring>
#include <random>
#include <vector>

#include "dataplane/transfer/link_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::transfer {
namespace {

using std::chrono::milliseconds;

std::vector<std::byte> Compressible(size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i / 50 % 7);
  return made;
}

std::vector<std::byte> Random(size_t bytes) {
  std::vector<std::byte> made(bytes);
  std::minstd_rand random(1);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random() >> 8);
  return made;
}

class Codecs : public testing::TestWithParam<Codec> {
 protected:
  std::vector<std::byte> Compressed(const std::vector<std::byte>& from) {
    std::vector<std::byte> into(CompressedBound(GetParam(), from.size()));
    into.resize(Compress(GetParam(), MessageType::kFrame, from, absl::MakeSpan(into)));
    return into;
  }
  absl::StatusOr<std::vector<std::byte>> Whole(const std::vector<std::byte>& body) {
    absl::StatusOr<CompressedPrefix> prefix = ReadCompressedPrefix(body);
    if (!prefix.ok()) return prefix.status();
    std::vector<std::byte> whole(prefix->bytes);
    absl::Status status = Decompress(*prefix, body, absl::MakeSpan(whole));
    if (!status.ok()) return status;
    return whole;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Codecs, testing::Values(Codec::kSnappy, Codec::kLz4),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(Codecs, CompressedDataIsRestored) {
  for (size_t bytes : {100u, 4096u, 1'000'000u}) {
    const std::vector<std::byte> from = Compressible(bytes);
    const std::vector<std::byte> body = Compressed(from);
    EXPECT_LT(body.size(), from.size());
    EXPECT_EQ(ReadCompressedPrefix(body)->type, MessageType::kFrame);
    EXPECT_EQ(*Whole(body), from);
  }
}

TEST_P(Codecs, IncompressibleDataStaysAsItIs) {
  EXPECT_TRUE(Compressed(Random(100'000)).empty());
  EXPECT_TRUE(Compressed({}).empty());
}

TEST_P(Codecs, DamageIsDataLoss) {
  const std::vector<std::byte> good = Compressed(Compressible(100'000));
  const auto expect_loss = [&](std::vector<std::byte> bad, const char* why) {
    const absl::Status status = Whole(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << why;
  };
  std::vector<std::byte> bad = good;
  bad[0] = std::byte{9};
  expect_loss(bad, "codec");
  bad = good;
  bad[1] = std::byte{1};
  expect_loss(bad, "type");
  bad = good;
  bad[5] = std::byte{1};
  expect_loss(bad, "reserved");
  bad = good;
  bad.resize(kCompressedPrefixBytes);
  expect_loss(bad, "no body");
  bad = good;
  bad.resize(good.size() / 2);
  expect_loss(bad, "half of it");
  for (uint64_t bytes : {uint64_t{1}, uint64_t{99'999}, uint64_t{100'001}, ~uint64_t{0}}) {
    bad = good;
    std::memcpy(bad.data() + 8, &bytes, sizeof bytes);
    if (bytes == ~uint64_t{0} || bytes == 1) {
      EXPECT_FALSE(ReadCompressedPrefix(bad).ok()) << bytes;
    } else {
      expect_loss(bad, "another size");
    }
  }
}

// --- The choice ------------------------------------------------------------------

constexpr double kGigabit = 117e6;  // bytes per second

std::array<CodecSpeed, 3> Speeds(CodecSpeed snappy, CodecSpeed lz4) {
  return {CodecSpeed(), snappy, lz4};
}

TEST(ChooseCodec, TakesACodecWhereTheLinkIsSlowerThanIt) {
  const auto speeds = Speeds({600e6, 0.5}, {700e6, 0.4});
  EXPECT_EQ(ChooseCodec(Codec::kNone, kGigabit, speeds), Codec::kLz4);
  EXPECT_EQ(ChooseCodec(Codec::kNone, 25 * kGigabit, speeds), Codec::kNone);
  EXPECT_EQ(ChooseCodec(Codec::kLz4, 25 * kGigabit, speeds), Codec::kNone);
}

TEST(ChooseCodec, TakesNoneForIncompressibleData) {
  EXPECT_EQ(ChooseCodec(Codec::kNone, kGigabit, Speeds({2e9, 1}, {2e9, 0.98})), Codec::kNone);
  EXPECT_EQ(ChooseCodec(Codec::kLz4, kGigabit, Speeds({2e9, 1}, {2e9, 1})), Codec::kNone);
}

TEST(ChooseCodec, LeavesOneThatLosesAlsoWhereAnotherIsALittleBetterThanNone) {
  EXPECT_EQ(ChooseCodec(Codec::kSnappy, kGigabit, Speeds({20e9, 1}, {20e9, 0.95})), Codec::kNone);
}

TEST(ChooseCodec, StaysWithTheOneItHasUntilAnotherIsClearlyBetter) {
  const auto alike = Speeds({600e6, 0.5}, {650e6, 0.48});
  EXPECT_EQ(ChooseCodec(Codec::kSnappy, kGigabit, alike), Codec::kSnappy);
  EXPECT_EQ(ChooseCodec(Codec::kLz4, kGigabit, alike), Codec::kLz4);
  EXPECT_EQ(ChooseCodec(Codec::kSnappy, kGigabit, Speeds({600e6, 0.9}, {650e6, 0.3})), Codec::kLz4);
}

TEST(ChooseCodec, KnowsNothingOfACodecThatWasNotMeasured) {
  EXPECT_EQ(ChooseCodec(Codec::kNone, kGigabit, Speeds({}, {})), Codec::kNone);
}

// A link that transfers a given number of bytes per second, on a clock of its own.
class MeasuredLink : public testing::Test {
 protected:
  // Sends blocks one after the other, so that one is always under way, or with pauses.
  void Send(int blocks, double bytes_per_s, LinkCodec::Clock::duration pause = {}) {
    for (int i = 0; i < blocks; ++i) {
      absl::StatusOr<Loan> loan = pool_->Lend(block_.size());
      ASSERT_TRUE(loan.ok()) << loan.status();
      std::memcpy(loan->bytes().data(), block_.data(), block_.size());
      const absl::Span<const std::byte> bytes = loan->bytes().first(block_.size());
      const auto sent = codec_.Encode(MessageType::kElement, bytes, *std::move(loan), 1);
      last_ = sent.type;
      now_ += std::chrono::duration_cast<LinkCodec::Clock::duration>(
          std::chrono::duration<double>(static_cast<double>(sent.bytes.size()) / bytes_per_s));
      codec_.OnReceived(1);
      now_ += pause;
    }
  }

  std::vector<std::byte> block_ = Compressible(1 << 20);
  std::shared_ptr<Pool> pool_ = Pool::Create();
  LinkCodec::Clock::time_point now_;
  LinkCodec codec_{*pool_, [this] { return now_; }};
  MessageType last_ = MessageType::kElement;
};

TEST_F(MeasuredLink, ASlowOneGetsACodecUntilContentsDoNotCompress) {
  codec_.SetCompression(LinkCompression::kAuto);
  Send(100, kGigabit);
  EXPECT_NE(codec_.present(), Codec::kNone);
  EXPECT_EQ(last_, MessageType::kCompressed);
  block_ = Random(1 << 20);
  Send(400, kGigabit);
  EXPECT_EQ(codec_.present(), Codec::kNone);
  EXPECT_EQ(last_, MessageType::kElement);
}

TEST_F(MeasuredLink, AFastOneGetsNone) {
  codec_.SetCompression(LinkCompression::kAuto);
  Send(1000, 25 * kGigabit);
  EXPECT_EQ(codec_.present(), Codec::kNone);
}

TEST_F(MeasuredLink, ALinkThatIsNotTheBottleneckGetsNoCodec) {
  codec_.SetCompression(LinkCompression::kAuto);
  Send(100, kGigabit, milliseconds(50));
  EXPECT_EQ(codec_.present(), Codec::kNone);
}

TEST_F(MeasuredLink, IncompressibleDataGoesAsItIs) {
  block_ = Random(1 << 20);
  codec_.SetCompression(LinkCompression::kAuto);
  Send(100, kGigabit);
  EXPECT_EQ(codec_.present(), Codec::kNone);
  EXPECT_EQ(last_, MessageType::kElement);
}

TEST_F(MeasuredLink, ARequestedCodecIsUsed) {
  Send(2, kGigabit);
  EXPECT_EQ(last_, MessageType::kElement);
  codec_.SetCompression(LinkCompression::kSnappy);
  Send(2, 25 * kGigabit);
  EXPECT_EQ(last_, MessageType::kCompressed);
}

}  // namespace
}  // namespace penstock::transfer
