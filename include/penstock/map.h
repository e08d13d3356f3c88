// SPDX-License-Identifier: Apache-2.0
// Functions for Map: a lambda over Expr, a chain of built-in operations on one component, or a
// registered C++ function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/expr.h"
#include "penstock/image.h"
#include "penstock/spec.h"

#pragma GCC visibility push(default)
namespace penstock {

class Dataset;

// A function over elements that is not bound to a spec yet. It is made from any callable that takes
// an Expr and returns an Expr.
class MapFunction {
 public:
  // clang-format off
  template <class F>
    requires std::is_invocable_r_v<Expr, F, Expr>
  MapFunction(F fn) : trace_(std::move(fn)) {}  // NOLINT: a lambda is a map function
  // clang-format on
  Expr operator()(const Expr& element) const { return trace_(element); }

 private:
  std::function<Expr(Expr)> trace_;
};

// A function from an element to a dataset, for FlatMap and Interleave.
class DatasetFunction {
 public:
  // clang-format off
  template <class F>
    requires std::is_invocable_r_v<Dataset, F, Expr>
  DatasetFunction(F fn) : trace_(std::move(fn)) {}  // NOLINT
  // clang-format on
  Dataset operator()(const Expr& element) const;

 private:
  std::function<Dataset(Expr)> trace_;
};

// A function of a state and an element. It returns Tuple({new state, output}) for Scan and the new
// state for Reduce.
using StateFunction = std::function<Expr(Expr state, Expr element)>;

// --- Built-in operations, usable inside lambdas ----------------------------
// penstock/image.h has the operations on images.

// The contents of a file as a scalar string, read where the function runs. If the file cannot be
// read, the error names it.
Expr ReadFile(const Expr& name);
// The values of a scalar string, little endian. The first dimension may be -1.
Expr DecodeRaw(const Expr& bytes, DType dtype, std::vector<int64_t> dims);
// Parses a tf.train.Example from a scalar string into a dict of these features. InvalidArgument,
// with the name of the feature, if a feature is missing or has a different kind.
Expr ParseExampleProto(const Expr& serialized,
                       std::vector<std::pair<std::string, TensorSpec>> features);

// --- Chains ------------------------------------------------------------------
// Map(ps::DecodeJpeg("image").RandomResizedCrop(224, 224).RandomFlip()) changes one member of a
// dict and leaves the others unchanged. With an empty key the chain works on the element itself.
class MapChain {
 public:
  using Step = std::function<Expr(Expr)>;
  MapChain(std::string key, Step first);
  MapChain Then(Step step) const;
  MapChain Resize(int64_t height, int64_t width, ResizeOptions options = {}) const;
  MapChain Crop(int64_t top, int64_t left, int64_t height, int64_t width) const;
  MapChain CenterCrop(int64_t height, int64_t width) const;
  MapChain RandomCrop(int64_t height, int64_t width) const;
  MapChain RandomResizedCrop(int64_t height, int64_t width, double min_area = 0.08,
                             double max_area = 1.0, ResizeOptions options = {}) const;
  MapChain PadTo(int64_t height, int64_t width, PadOptions options = {}) const;
  MapChain FlipLeftRight() const;
  MapChain FlipUpDown() const;
  MapChain RandomFlip(double probability = 0.5) const;
  MapChain RandomFlipUpDown(double probability = 0.5) const;
  MapChain ColorJitter(ColorJitterOptions options) const;
  MapChain RandomGrayscale(double probability = 0.1) const;
  MapChain Normalize(std::vector<float> mean, std::vector<float> std) const;
  MapChain Cast(DType dtype) const;
  MapChain Reshape(std::vector<int64_t> dims) const;

  Expr operator()(const Expr& element) const;

 private:
  std::string key_;
  std::vector<Step> steps_;
};
MapChain DecodeJpeg(std::string key, DecodeOptions options = {});
MapChain DecodePng(std::string key, DecodeOptions options = {});
MapChain DecodeImage(std::string key, DecodeOptions options = {});
MapChain DecodeRaw(std::string key, DType dtype, std::vector<int64_t> dims);
MapChain Cast(std::string key, DType dtype);
MapChain Normalize(std::string key, std::vector<float> mean, std::vector<float> std);
MapChain Reshape(std::string key, std::vector<int64_t> dims);
// With these overloads, a string literal is a key, not an Expr.
inline MapChain DecodeImage(const char* key, DecodeOptions options = {}) {
  return DecodeImage(std::string(key), options);
}
inline MapChain DecodeRaw(const char* key, DType dtype, std::vector<int64_t> dims) {
  return DecodeRaw(std::string(key), dtype, std::move(dims));
}
inline MapChain Cast(const char* key, DType dtype) {
  return Cast(std::string(key), dtype);
}
inline MapChain Normalize(const char* key, std::vector<float> mean, std::vector<float> std) {
  return Normalize(std::string(key), std::move(mean), std::move(std));
}
inline MapChain Reshape(const char* key, std::vector<int64_t> dims) {
  return Reshape(std::string(key), std::move(dims));
}

}  // namespace penstock
#pragma GCC visibility pop
