// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "penstock/map.h"

namespace penstock {

MapChain::MapChain(std::string key, Step first) : key_(std::move(key)), steps_{std::move(first)} {}

MapChain MapChain::Then(Step step) const {
  MapChain longer = *this;
  longer.steps_.push_back(std::move(step));
  return longer;
}
MapChain MapChain::Resize(int64_t height, int64_t width, ResizeOptions options) const {
  return Then([=](const Expr& x) { return penstock::Resize(x, height, width, options); });
}
MapChain MapChain::Crop(int64_t top, int64_t left, int64_t height, int64_t width) const {
  return Then([=](const Expr& x) { return penstock::Crop(x, top, left, height, width); });
}
MapChain MapChain::CenterCrop(int64_t height, int64_t width) const {
  return Then([=](const Expr& x) { return penstock::CenterCrop(x, height, width); });
}
MapChain MapChain::RandomCrop(int64_t height, int64_t width) const {
  return Then([=](const Expr& x) { return penstock::RandomCrop(x, height, width); });
}
MapChain MapChain::RandomResizedCrop(int64_t height, int64_t width, double min_area,
                                     double max_area, ResizeOptions options) const {
  return Then([=](const Expr& x) {
    return penstock::RandomResizedCrop(x, height, width, min_area, max_area, options);
  });
}
MapChain MapChain::PadTo(int64_t height, int64_t width, PadOptions options) const {
  return Then([=](const Expr& x) { return penstock::PadTo(x, height, width, options); });
}
MapChain MapChain::FlipLeftRight() const {
  return Then([](const Expr& x) { return penstock::FlipLeftRight(x); });
}
MapChain MapChain::FlipUpDown() const {
  return Then([](const Expr& x) { return penstock::FlipUpDown(x); });
}
MapChain MapChain::RandomFlip(double probability) const {
  return Then([=](const Expr& x) { return penstock::RandomFlip(x, probability); });
}
MapChain MapChain::RandomFlipUpDown(double probability) const {
  return Then([=](const Expr& x) { return penstock::RandomFlipUpDown(x, probability); });
}
MapChain MapChain::ColorJitter(ColorJitterOptions options) const {
  return Then([=](const Expr& x) { return penstock::ColorJitter(x, options); });
}
MapChain MapChain::RandomGrayscale(double probability) const {
  return Then([=](const Expr& x) { return penstock::RandomGrayscale(x, probability); });
}
MapChain MapChain::Normalize(std::vector<float> mean, std::vector<float> std) const {
  return Then([mean = std::move(mean), std = std::move(std)](const Expr& x) {
    return penstock::Normalize(x, mean, std);
  });
}
MapChain MapChain::Cast(DType dtype) const {
  return Then([=](const Expr& x) { return penstock::Cast(x, dtype); });
}
MapChain MapChain::Reshape(std::vector<int64_t> dims) const {
  return Then([dims = std::move(dims)](const Expr& x) { return penstock::Reshape(x, dims); });
}

Expr MapChain::operator()(const Expr& element) const {
  Expr x = key_.empty() ? element : element[key_];
  for (const Step& step : steps_) {
    if (!x.status().ok()) return x;
    x = step(x);
  }
  if (key_.empty() || !x.status().ok()) return x;
  std::vector<std::pair<std::string, Expr>> members;
  for (size_t i = 0; i < element.spec().size(); ++i) {
    std::string key(element.spec().key(i));
    Expr member = key == key_ ? x : element[key];
    members.emplace_back(std::move(key), std::move(member));
  }
  return Struct(std::move(members));
}

MapChain DecodeJpeg(std::string key, DecodeOptions options) {
  return MapChain(std::move(key), [=](const Expr& x) { return DecodeJpegImage(x, options); });
}
MapChain DecodePng(std::string key, DecodeOptions options) {
  return MapChain(std::move(key), [=](const Expr& x) { return DecodePngImage(x, options); });
}
MapChain DecodeImage(std::string key, DecodeOptions options) {
  return MapChain(std::move(key), [=](const Expr& x) { return DecodeImage(x, options); });
}
MapChain DecodeRaw(std::string key, DType dtype, std::vector<int64_t> dims) {
  return MapChain(std::move(key), [dtype, dims = std::move(dims)](const Expr& x) {
    return DecodeRaw(x, dtype, dims);
  });
}
MapChain Cast(std::string key, DType dtype) {
  return MapChain(std::move(key), [=](const Expr& x) { return Cast(x, dtype); });
}
MapChain Normalize(std::string key, std::vector<float> mean, std::vector<float> std) {
  return MapChain(std::move(key), [mean = std::move(mean), std = std::move(std)](const Expr& x) {
    return Normalize(x, mean, std);
  });
}
MapChain Reshape(std::string key, std::vector<int64_t> dims) {
  return MapChain(std::move(key),
                  [dims = std::move(dims)](const Expr& x) { return Reshape(x, dims); });
}

}  // namespace penstock
