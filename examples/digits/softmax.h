// SPDX-License-Identifier: Apache-2.0
// Multinomial logistic regression trained by plain stochastic gradient descent.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

namespace digits {

inline constexpr int kPixels = 64;
inline constexpr int kClasses = 10;

class Softmax {
 public:
  static constexpr int kWeights = kClasses * (kPixels + 1);  // one bias per class
  using Weights = std::array<float, kWeights>;

  // Makes one step on `labels.size()` images of kPixels floats each, row-major. Returns the mean
  // cross entropy before the step, in nats.
  float Step(std::span<const float> images, std::span<const int64_t> labels, float rate) {
    Weights gradient{};
    float loss = 0;
    for (size_t row = 0; row < labels.size(); ++row) {
      std::span<const float> image = images.subspan(row * kPixels, kPixels);
      std::array<float, kClasses> p = Probabilities(image);
      loss -= std::log(std::max(p[labels[row]], 1e-12f));
      p[labels[row]] -= 1;
      for (int c = 0; c < kClasses; ++c) {
        float* g = &gradient[c * (kPixels + 1)];
        for (int i = 0; i < kPixels; ++i) g[i] += p[c] * image[i];
        g[kPixels] += p[c];
      }
    }
    const float scale = rate / std::max<size_t>(labels.size(), 1);
    for (int i = 0; i < kWeights; ++i) weights[i] -= scale * gradient[i];
    return loss / std::max<size_t>(labels.size(), 1);
  }

  int Predict(std::span<const float> image) const {
    std::array<float, kClasses> p = Probabilities(image);
    return static_cast<int>(std::max_element(p.begin(), p.end()) - p.begin());
  }

  Weights weights{};

 private:
  std::array<float, kClasses> Probabilities(std::span<const float> image) const {
    std::array<float, kClasses> p;
    for (int c = 0; c < kClasses; ++c) {
      const float* w = &weights[c * (kPixels + 1)];
      p[c] = w[kPixels];
      for (int i = 0; i < kPixels; ++i) p[c] += w[i] * image[i];
    }
    const float top = *std::max_element(p.begin(), p.end());
    float sum = 0;
    for (float& x : p) sum += x = std::exp(x - top);
    for (float& x : p) x /= sum;
    return p;
  }
};

}  // namespace digits
