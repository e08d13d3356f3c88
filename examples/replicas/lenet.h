// SPDX-License-Identifier: Apache-2.0
// A convolutional network of LeNet's shape (LeCun et al., "Gradient-based learning applied to
// document recognition", 1998) for images of 8 × 8: two convolutions of 3 × 3 with rectified linear
// units, each pooled by 2, and three full layers. Runs forward and backward, row by row. GPUs run
// the same code, compiled by nvcc.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#ifdef __CUDACC__
#define LENET_ANYWHERE __host__ __device__
#else
#define LENET_ANYWHERE
#endif

namespace lenet {

inline constexpr int kPixels = 64;
inline constexpr int kClasses = 10;

// A convolution from [channels][side][side] to [out][side][side]; values beyond the border are 0.
// Weights [out][channels][3][3], then a bias per output channel.
template <int kChannels, int kOut, int kSide>
struct Convolution {
  static constexpr int kIn = kChannels * kSide * kSide;
  static constexpr int kResults = kOut * kSide * kSide;
  static constexpr int kBias = kOut * kChannels * 9;
  static constexpr int kWeights = kBias + kOut;
  static constexpr int kFanIn = kChannels * 9;

  // Calls fn(weight, input, result) for each product.
  template <class F>
  LENET_ANYWHERE static void ForEach(F fn) {
    for (int o = 0; o < kOut; ++o)
      for (int c = 0; c < kChannels; ++c)
        for (int k = 0; k < 9; ++k)
          for (int y = std::max(0, 1 - k / 3); y < std::min(kSide, kSide + 1 - k / 3); ++y)
            for (int x = std::max(0, 1 - k % 3); x < std::min(kSide, kSide + 1 - k % 3); ++x)
              fn((o * kChannels + c) * 9 + k, (c * kSide + y + k / 3 - 1) * kSide + x + k % 3 - 1,
                 (o * kSide + y) * kSide + x);
  }
  LENET_ANYWHERE static int BiasOf(int result) { return kBias + result / (kSide * kSide); }
};

// A full layer. Weights [out][in], then a bias per output.
template <int kInputs, int kOut>
struct Full {
  static constexpr int kIn = kInputs;
  static constexpr int kResults = kOut;
  static constexpr int kBias = kOut * kInputs;
  static constexpr int kWeights = kBias + kOut;
  static constexpr int kFanIn = kInputs;

  template <class F>
  LENET_ANYWHERE static void ForEach(F fn) {
    for (int o = 0; o < kOut; ++o)
      for (int i = 0; i < kInputs; ++i) fn(o * kInputs + i, i, o);
  }
  LENET_ANYWHERE static int BiasOf(int result) { return kBias + result; }
};

// The maximum of each 2 × 2 of [channels][side][side]; `from` records its position.
template <int kChannels, int kSide>
LENET_ANYWHERE void Pool(const float* in, float* out, int* from) {
  for (int c = 0; c < kChannels; ++c)
    for (int y = 0; y < kSide / 2; ++y)
      for (int x = 0; x < kSide / 2; ++x) {
        const int first = (c * kSide + 2 * y) * kSide + 2 * x;
        int best = first;
        for (const int other : {first + 1, first + kSide, first + kSide + 1})
          if (in[other] > in[best]) best = other;
        *from++ = best;
        *out++ = in[best];
      }
}

// The network's computation, on weights that the caller owns.
class Network {
  using C1 = Convolution<1, 6, 8>;
  using C2 = Convolution<6, 16, 4>;
  using F1 = Full<64, 120>;
  using F2 = Full<120, 84>;
  using F3 = Full<84, kClasses>;
  static constexpr int kC1 = 0;
  static constexpr int kC2 = kC1 + C1::kWeights;
  static constexpr int kF1 = kC2 + C2::kWeights;
  static constexpr int kF2 = kF1 + F1::kWeights;
  static constexpr int kF3 = kF2 + F2::kWeights;

 public:
  static constexpr int kWeights = kF3 + F3::kWeights;

  // `weights` are kWeights values in the memory of the processor that computes.
  LENET_ANYWHERE explicit Network(const float* weights) : weights_(weights) {}

  // Calls fn(first weight, number of weights without biases, inputs to each result) for each layer.
  template <class F>
  static void ForEachLayer(F fn) {
    fn(kC1, C1::kBias, C1::kFanIn);
    fn(kC2, C2::kBias, C2::kFanIn);
    fn(kF1, F1::kBias, F1::kFanIn);
    fn(kF2, F2::kBias, F2::kFanIn);
    fn(kF3, F3::kBias, F3::kFanIn);
  }

  // Adds the gradient of one image of kPixels in 0…1, times `weight`, to `gradient`, of
  // kWeights. Returns its cross entropy in nats.
  LENET_ANYWHERE double Learn(const float* image, int64_t label, double weight,
                              double* gradient) const {
    Pass pass;
    Forward(image, pass);
    Pass back{};
    for (int c = 0; c < kClasses; ++c)
      back.f3[c] = static_cast<float>(weight) * (pass.f3[c] - (c == label ? 1.0f : 0.0f));
    Back<F3>(kF3, pass.f2, back.f3, back.f2, gradient);
    Rectified(pass.f2, back.f2);
    Back<F2>(kF2, pass.f1, back.f2, back.f1, gradient);
    Rectified(pass.f1, back.f1);
    Back<F1>(kF1, pass.p2, back.f1, back.p2, gradient);
    for (size_t i = 0; i < back.p2.size(); ++i) back.c2[pass.from2[i]] = back.p2[i];
    Rectified(pass.c2, back.c2);
    Back<C2>(kC2, pass.p1, back.c2, back.p1, gradient);
    for (size_t i = 0; i < back.p1.size(); ++i) back.c1[pass.from1[i]] = back.p1[i];
    Rectified(pass.c1, back.c1);
    std::array<float, kPixels> unused;
    Back<C1>(kC1, Normalized(image), back.c1, unused, gradient);
    return -std::log(std::max(pass.f3[static_cast<size_t>(label)], 1e-12f));
  }

  LENET_ANYWHERE int Predict(const float* image) const {
    Pass pass;
    Forward(image, pass);
    return static_cast<int>(std::max_element(pass.f3.begin(), pass.f3.end()) - pass.f3.begin());
  }

 private:
  // The outputs of each layer, after its rectified units and its pool if it has them.
  struct Pass {
    std::array<float, C1::kResults> c1;
    std::array<float, C2::kIn> p1;
    std::array<int, C2::kIn> from1;
    std::array<float, C2::kResults> c2;
    std::array<float, F1::kIn> p2;
    std::array<int, F1::kIn> from2;
    std::array<float, F1::kResults> f1;
    std::array<float, F2::kResults> f2;
    std::array<float, F3::kResults> f3;  // probabilities
  };

  // Normalized to mean 0 and deviation 1 over all digits.
  LENET_ANYWHERE static std::array<float, kPixels> Normalized(const float* image) {
    std::array<float, kPixels> in;
    for (int i = 0; i < kPixels; ++i) in[i] = (image[i] - 0.3f) / 0.37f;
    return in;
  }

  template <class Layer, size_t kIn, size_t kOut>
  LENET_ANYWHERE void Apply(int first, const std::array<float, kIn>& in,
                            std::array<float, kOut>& out, bool rectify) const {
    const float* const weights = weights_ + first;
    for (int o = 0; o < Layer::kResults; ++o) out[o] = weights[Layer::BiasOf(o)];
    Layer::ForEach([&](int w, int i, int o) { out[o] += weights[w] * in[i]; });
    for (float& value : out)
      if (rectify) value = std::max(value, 0.0f);
  }

  template <class Layer, size_t kIn, size_t kOut>
  LENET_ANYWHERE void Back(int first, const std::array<float, kIn>& in,
                           const std::array<float, kOut>& back_out, std::array<float, kIn>& back_in,
                           double* gradient) const {
    const float* const weights = weights_ + first;
    double* const own = gradient + first;
    back_in.fill(0);
    for (int o = 0; o < Layer::kResults; ++o) own[Layer::BiasOf(o)] += back_out[o];
    Layer::ForEach([&](int w, int i, int o) {
      own[w] += static_cast<double>(in[i]) * back_out[o];
      back_in[i] += weights[w] * back_out[o];
    });
  }

  template <size_t kCount>
  LENET_ANYWHERE static void Rectified(const std::array<float, kCount>& out,
                                       std::array<float, kCount>& back) {
    for (size_t i = 0; i < kCount; ++i)
      if (out[i] <= 0) back[i] = 0;
  }

  LENET_ANYWHERE void Forward(const float* image, Pass& pass) const {
    Apply<C1>(kC1, Normalized(image), pass.c1, true);
    Pool<6, 8>(pass.c1.data(), pass.p1.data(), pass.from1.data());
    Apply<C2>(kC2, pass.p1, pass.c2, true);
    Pool<16, 4>(pass.c2.data(), pass.p2.data(), pass.from2.data());
    Apply<F1>(kF1, pass.p2, pass.f1, true);
    Apply<F2>(kF2, pass.f1, pass.f2, true);
    Apply<F3>(kF3, pass.f2, pass.f3, false);
    const float top = *std::max_element(pass.f3.begin(), pass.f3.end());
    float sum = 0;
    for (float& value : pass.f3) sum += value = std::exp(value - top);
    for (float& value : pass.f3) value /= sum;
  }

  const float* weights_;
};

// A network in host memory that learns.
class LeNet {
 public:
  static constexpr int kWeights = Network::kWeights;

  explicit LeNet(uint64_t seed) : weights_(kWeights), mean_(kWeights), square_(kWeights) {
    std::mt19937_64 random(seed);
    Network::ForEachLayer([&](int first, int weights, int fan_in) {
      std::normal_distribution<float> normal(0, std::sqrt(2.0f / static_cast<float>(fan_in)));
      for (int i = 0; i < weights; ++i) weights_[first + i] = normal(random);
    });
  }

  const std::vector<float>& weights() const { return weights_; }
  Network network() const { return Network(weights_.data()); }

  // Makes a step of Adam (Kingma and Ba, 2015) with the gradient of the mean over the batch.
  void Step(const double* gradient, double rate) {
    constexpr double kFirst = 0.9, kSecond = 0.999, kLeast = 1e-8;
    ++steps_;
    const double scale =
        rate * std::sqrt(1 - std::pow(kSecond, steps_)) / (1 - std::pow(kFirst, steps_));
    for (size_t i = 0; i < weights_.size(); ++i) {
      mean_[i] += (1 - kFirst) * (gradient[i] - mean_[i]);
      square_[i] += (1 - kSecond) * (gradient[i] * gradient[i] - square_[i]);
      weights_[i] =
          static_cast<float>(weights_[i] - scale * mean_[i] / (std::sqrt(square_[i]) + kLeast));
    }
  }

 private:
  std::vector<float> weights_;
  std::vector<double> mean_;    // moving average of the gradients
  std::vector<double> square_;  // moving average of their squares
  int steps_ = 0;
};

}  // namespace lenet
