// SPDX-License-Identifier: Apache-2.0
// L2: sequences of lognormal(5, 1) tokens, 16 to 1,024 each, in padded batches of 8 sequences of
// similar lengths, for k trainers that step together and compute longer on longer batches. Rounds
// of about equal cost are compared with a shared job of the same trainers without rounds.
#include "absl/strings/str_cat.h"
#include "bench/service.h"
#include "bench/workload.h"
#include "bench/workloads/lengths.h"
#include "include/status_macros.h"
#include "penstock/register.h"

namespace penstock::bench {
namespace {

constexpr int64_t kSequenceBatch = 8;
// A trainer computes kSecondsPerToken · L + kSecondsPerPair · L² on a batch with L tokens a row.
constexpr double kSecondsPerToken = 1e-5;
constexpr double kSecondsPerPair = 1e-8;

// Maps number ≥ 1 to a sequence of tokens that counts up from it. No token is 0, the padding.
absl::Status Sequence(CallContext& call) {
  const int64_t number = call.inputs()[0].scalar<int64_t>();
  const int64_t dims[] = {LengthOf(number)};
  ASSIGN_OR_RETURN(absl::Span<int32_t> out, call.OutputAs<int32_t>(0, dims));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int32_t>(number + i);
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("bench.sequence", 1, Dense(kInt32, {kUnknownDim}), Sequence);

class SequenceReader final : public Reader {
 public:
  absl::StatusOr<int64_t> Take(const Element& element) override {
    const Tensor batch = element.tensor(0);
    const absl::Span<const int32_t> tokens = batch.data<int32_t>();
    const int64_t longest = batch.dim(1);
    for (int64_t row = 0; row < batch.dim(0); ++row) {
      const absl::Span<const int32_t> sequence = tokens.subspan(row * longest, longest);
      const int64_t length = LengthOf(sequence[0]);
      for (int64_t i = 0; i < longest; ++i) {
        const int64_t due = i < length ? sequence[0] + i : 0;
        if (sequence[i] != due || length > longest) {
          return absl::DataLossError(absl::StrCat("token ", i, " of sequence ", sequence[0], " is ",
                                                  sequence[i], ", not ", due));
        }
      }
    }
    return static_cast<int64_t>(tokens.size() * sizeof(int32_t));
  }
};

Expr Length(const Expr& sequence) {
  return ShapeOf(sequence)[0];
}
// Returns the computing time of a batch with rows of this length.
template <typename Number>
Number SecondsOf(const Number& longest) {
  return longest * kSecondsPerToken + longest * longest * kSecondsPerPair;
}

class Sequences final : public Workload {
 public:
  std::string_view name() const override { return "L2"; }
  std::string_view question() const override {
    return "sequences of lognormal lengths in rounds of equal cost for k trainers in step";
  }
  std::vector<int64_t> sizes() const override {
    return {kSequenceBatch * 150 * 4};
  }  // a typical size
  bool sized() const override { return false; }
  std::vector<Shape> shapes() const override {
    return {{.consumers = 2, .coordinated = true}, {.consumers = 4, .coordinated = true}};
  }
  double StepOf(const Element& batch) const override {
    return SecondsOf(static_cast<double>(batch.tensor(0).dim(1)));
  }
  bool in_step() const override { return true; }

  Dataset MakeDataset(const Setup& setup) const override {
    const std::vector<int64_t> boundaries = {24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768};
    const Dataset batches =
        Dataset::Range(1, int64_t{1} << 30)
            .Map([](const Expr& number) { return Call("bench.sequence", number); })
            .BucketBySequenceLength(Length, boundaries,
                                    std::vector<int64_t>(boundaries.size() + 1, kSequenceBatch));
    if (!setup.coordinated) return batches;
    return batches.Rounds(setup.consumers, {.cost = [](const Expr& batch) {
                            return SecondsOf(Cast(ShapeOf(batch)[1], kFloat64));
                          }});
  }
  std::unique_ptr<Reader> MakeReader(const Setup& /*setup*/) const override {
    return std::make_unique<SequenceReader>();
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    Setup apart = setup;
    apart.coordinated = false;
    return StartService(apart, "uncoordinated");
  }
};

}  // namespace

const Workload& L2() {
  static const Sequences& l2 = *new Sequences;
  return l2;
}

}  // namespace penstock::bench
