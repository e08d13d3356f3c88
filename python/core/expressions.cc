// SPDX-License-Identifier: Apache-2.0
#include "python/core/expressions.h"

#include <string>
#include <utility>
#include <vector>

#include "penstock/example.h"
#include "penstock/image.h"
#include "penstock/map.h"
#include "python/core/casters.h"
#include "python/core/errors.h"
#include "python/core/values.h"

namespace penstock::python {

namespace py = pybind11;
using py::arg;

namespace {

// Raises an error in the operation that causes it, not when the dataset is built.
Expr CheckedExpr(Expr expr) {
  RaiseIfError(expr.status());
  return expr;
}

// Returns a function that calls `function` and raises the error of its result.
template <class... Args>
auto Raising(Expr (*function)(Args...)) {
  return [function](Args... args) { return CheckedExpr(function(std::forward<Args>(args)...)); };
}

using Unary = Expr (*)(const Expr&);
using Binary = Expr (*)(const Expr&, const Expr&);

void BindArithmetic(py::module_& ops) {
  const std::pair<const char*, Binary> binary[] = {
      {"add", static_cast<Binary>(operator+)}, {"subtract", static_cast<Binary>(operator-)},
      {"multiply", operator* },
       {"divide", operator/ },  // integers: floor
        {"mod", operator% },
         {"equal", operator== },
          {"not_equal", operator!= },
           {"less", operator<},
            {"less_equal", operator<= },
             {"greater", operator> },
              {"greater_equal", operator>= },
               {"logical_and", operator&& },
                {"logical_or", operator|| },
                 {"bitwise_and", operator& },
                  {"bitwise_or", operator| },
                   {"bitwise_xor", operator^ },
                    {"left_shift", operator<< },
                     {
                         "right_shift",
                         operator>> },
                         {"minimum", Minimum},
                         {"maximum", Maximum},
                         {"power", Power},
                         {"atan2", Atan2},
                         {"matmul", MatMul},
                         {"string_concat", StringConcat},
                    };
  for (const auto& [name, function] : binary) ops.def(name, Raising(function), arg("a"), arg("b"));
  const std::pair<const char*, Unary> unary[] = {{"negative", static_cast<Unary>(operator-)},
                                                 {"logical_not", operator!},
                                                  {
                                                      "invert",
                                                      operator~},
                                                      {"abs", Abs},
                                                      {"sign", Sign},
                                                      {"floor", Floor},
                                                      {"ceil", Ceil},
                                                      {"round", Round},
                                                      {"sqrt", Sqrt},
                                                      {"exp", Exp},
                                                      {"expm1", Expm1},
                                                      {"log", Log},
                                                      {"log1p", Log1p},
                                                      {"sin", Sin},
                                                      {"cos", Cos},
                                                      {"tan", Tan},
                                                      {"asin", Asin},
                                                      {"acos", Acos},
                                                      {"atan", Atan},
                                                      {"sinh", Sinh},
                                                      {"cosh", Cosh},
                                                      {"tanh", Tanh},
                                                      {"sigmoid", Sigmoid},
                                                      {"is_nan", IsNan},
                                                      {"is_inf", IsInf},
                                                      {"is_finite", IsFinite},
                                                      {"shape_of", ShapeOf},
                                                      {"size", Size},
                                                      {"string_length", StringLength},
                                                      {"string_lower", StringLower},
                                                      {"string_upper", StringUpper},
                                                      {"string_strip", StringStrip},
                                                      {"row_lengths", RowLengths},
                                                      {"flat_values", FlatValues},
                                                      {"read_file", ReadFile},
                                                      {"flip_left_right", FlipLeftRight},
                                                      {"flip_up_down", FlipUpDown},
                                                 };
  for (const auto& [name, function] : unary) ops.def(name, Raising(function), arg("x"));
  ops.def("clip", Raising(Clip), arg("x"), arg("low"), arg("high"));
  ops.def("where", Raising(Where), arg("condition"), arg("a"), arg("b"));
  ops.def("cast", Raising(Cast), arg("x"), arg("dtype"));
}

void BindShapes(py::module_& ops) {
  ops.def("reshape", Raising(Reshape), arg("x"), arg("shape"));
  ops.def(
      "expand_dims", [](const Expr& x, int axis) { return CheckedExpr(ExpandDims(x, axis)); },
      arg("x"), arg("axis"));
  ops.def("squeeze", Raising(Squeeze), arg("x"), arg("axes") = std::vector<int>());
  ops.def("transpose", Raising(Transpose), arg("x"), arg("perm") = std::vector<int>());
  ops.def("broadcast_to", Raising(BroadcastTo), arg("x"), arg("shape"));
  ops.def("tile", Raising(Tile), arg("x"), arg("multiples"));
  ops.def("reverse", Raising(Reverse), arg("x"), arg("axes"));
  ops.def("slice", Raising(penstock::Slice), arg("x"), arg("begin"), arg("size"));
  using Range3 = std::tuple<std::optional<int64_t>, std::optional<int64_t>, int64_t>;
  ops.def(
      "strided_slice",
      [](const Expr& x, const std::vector<Range3>& ranges) {
        std::vector<SliceRange> slices;
        for (const auto& [begin, end, step] : ranges) {
          slices.push_back({.begin = begin, .end = end, .step = step});
        }
        return CheckedExpr(StridedSlice(x, std::move(slices)));
      },
      arg("x"), arg("ranges"));
  ops.def("gather", Raising(Gather), arg("x"), arg("indices"), arg("axis") = 0);
  ops.def("concat", Raising(Concat), arg("parts"), arg("axis") = 0);
  ops.def("stack", Raising(Stack), arg("parts"), arg("axis") = 0);
  ops.def(
      "unstack",
      [](const Expr& x, int axis) {
        std::vector<Expr> parts = Unstack(x, axis);
        for (const Expr& part : parts) RaiseIfError(part.status());
        return parts;
      },
      arg("x"), arg("axis") = 0);
  py::enum_<PadMode>(ops, "PadMode", "The values in the padding.")
      .value("CONSTANT", PadMode::kConstant)
      .value("REFLECT", PadMode::kReflect)
      .value("SYMMETRIC", PadMode::kSymmetric);
  ops.def("pad", Raising(Pad), arg("x"), arg("paddings"), arg("mode") = PadMode::kConstant,
          arg("value") = py::none());
  ops.def("range", Raising(penstock::Range), arg("start"), arg("limit"), arg("delta") = Expr(1));
  ops.def("one_hot", Raising(OneHot), arg("indices"), arg("depth"), arg("dtype") = kFloat32);
}

void BindReductions(py::module_& ops) {
  ops.def("sort", Raising(Sort), arg("x"), arg("axis") = -1, arg("descending") = false);
  ops.def("argsort", Raising(ArgSort), arg("x"), arg("axis") = -1, arg("descending") = false);
  ops.def("top_k", Raising(TopK), arg("x"), arg("k"));
  ops.def("cumsum", Raising(CumSum), arg("x"), arg("axis") = 0, arg("exclusive") = false,
          arg("reverse") = false);
  using Reduction = Expr (*)(const Expr&, std::vector<int>, bool);
  const std::pair<const char*, Reduction> reductions[] = {
      {"reduce_sum", ReduceSum}, {"reduce_mean", ReduceMean}, {"reduce_prod", ReduceProd},
      {"reduce_max", ReduceMax}, {"reduce_min", ReduceMin},   {"reduce_any", ReduceAny},
      {"reduce_all", ReduceAll},
  };
  for (const auto& [name, function] : reductions) {
    ops.def(name, Raising(function), arg("x"), arg("axes") = std::vector<int>(),
            arg("keepdims") = false);
  }
  ops.def("argmax", Raising(ArgMax), arg("x"), arg("axis") = 0);
  ops.def("argmin", Raising(ArgMin), arg("x"), arg("axis") = 0);
}

void BindStrings(py::module_& ops) {
  ops.def("substr", Raising(Substr), arg("x"), arg("begin"), arg("length"));
  ops.def("string_join", Raising(StringJoin), arg("parts"), arg("separator") = "");
  ops.def("reduce_join", Raising(ReduceJoin), arg("x"), arg("axis") = -1, arg("separator") = "");
  ops.def("string_split", Raising(StringSplit), arg("x"), arg("separator") = "");
  ops.def("string_to_number", Raising(StringToNumber), arg("x"), arg("dtype") = kFloat32);
  ops.def("as_string", Raising(AsString), arg("x"), arg("precision") = -1);
  ops.def("regex_full_match", Raising(RegexFullMatch), arg("x"), arg("pattern"));
  ops.def("regex_replace", Raising(RegexReplace), arg("x"), arg("pattern"), arg("rewrite"),
          arg("replace_global") = true);
  ops.def("string_to_hash_bucket", Raising(StringToHashBucket), arg("x"), arg("buckets"));
  ops.def(
      "decode_raw",
      [](const Expr& x, DType dtype, std::vector<int64_t> dims) {
        return CheckedExpr(penstock::DecodeRaw(x, dtype, std::move(dims)));
      },
      arg("x"), arg("dtype"), arg("shape") = std::vector<int64_t>{-1});
  ops.def("to_tensor", Raising(ToTensor), arg("x"), arg("value") = py::none());
  ops.def("from_row_lengths", Raising(FromRowLengths), arg("values"), arg("lengths"));
  ops.def(
      "parse_example",
      [](const Expr& serialized, const py::dict& features, const py::dict& defaults) {
        std::vector<ExampleFeature> wanted;
        for (const auto& [name, spec] : features) {
          ExampleFeature feature{.name = name.cast<std::string>(), .spec = spec.cast<TensorSpec>()};
          if (defaults.contains(name)) feature.otherwise = ExprFrom(defaults[name]);
          wanted.push_back(std::move(feature));
        }
        return CheckedExpr(ParseExampleOr(serialized, std::move(wanted)));
      },
      arg("serialized"), arg("features"), arg("defaults") = py::dict());
}

void BindDraws(py::module_& ops) {
  ops.def("random_uniform", Raising(RandomUniform), arg("shape"), arg("low") = Expr(0.0f),
          arg("high") = Expr(1.0f));
  ops.def("random_normal", Raising(RandomNormal), arg("shape"), arg("mean") = 0.0,
          arg("stddev") = 1.0, arg("dtype") = kFloat32);
  ops.def("call", Raising(Call), arg("function"), arg("x"));
}

void BindImages(py::module_& ops) {
  const auto decode = [&](const char* name, Expr (*function)(const Expr&, DecodeOptions)) {
    ops.def(
        name,
        [function](const Expr& contents, int channels, bool upright, bool fast, DType dtype) {
          return CheckedExpr(function(
              contents, {.channels = channels,
                         .orientation = upright ? Orientation::kUpright : Orientation::kAsStored,
                         .scaling = fast ? JpegScaling::kDct : JpegScaling::kExact,
                         .dtype = dtype}));
        },
        arg("contents"), arg("channels") = 3, arg("upright") = false, arg("dct_scaling") = false,
        arg("dtype") = kUInt8);
  };
  decode("decode_jpeg", DecodeJpegImage);
  decode("decode_png", DecodePngImage);
  decode("decode_image", penstock::DecodeImage);
  py::enum_<Interpolation>(ops, "Interpolation", "How pixels of another size are computed.")
      .value("NEAREST", Interpolation::kNearest)
      .value("BILINEAR", Interpolation::kBilinear)
      .value("BICUBIC", Interpolation::kBicubic)
      .value("AREA", Interpolation::kArea);
  ops.def(
      "resize",
      [](const Expr& image, int64_t height, int64_t width, Interpolation interpolation,
         bool antialias) {
        return CheckedExpr(
            Resize(image, height, width, {.interpolation = interpolation, .antialias = antialias}));
      },
      arg("image"), arg("height"), arg("width"), arg("interpolation") = Interpolation::kBilinear,
      arg("antialias") = false);
  ops.def("crop", Raising(Crop), arg("image"), arg("top"), arg("left"), arg("height"),
          arg("width"));
  ops.def("center_crop", Raising(CenterCrop), arg("image"), arg("height"), arg("width"));
  ops.def("random_crop", Raising(RandomCrop), arg("image"), arg("height"), arg("width"));
  ops.def(
      "random_resized_crop",
      [](const Expr& image, int64_t height, int64_t width, double min_area, double max_area) {
        return CheckedExpr(RandomResizedCrop(image, height, width, min_area, max_area));
      },
      arg("image"), arg("height"), arg("width"), arg("min_area") = 0.08, arg("max_area") = 1.0);
  ops.def("random_flip", Raising(RandomFlip), arg("image"), arg("probability") = 0.5);
  ops.def("random_flip_up_down", Raising(RandomFlipUpDown), arg("image"), arg("probability") = 0.5);
  py::enum_<PadSide>(ops, "PadSide", "The place of the image in its padding.")
      .value("AROUND", PadSide::kAround)
      .value("AFTER", PadSide::kAfter);
  ops.def(
      "pad_to",
      [](const Expr& image, int64_t height, int64_t width, double value, PadSide side) {
        return CheckedExpr(PadTo(image, height, width, {.value = value, .side = side}));
      },
      arg("image"), arg("height"), arg("width"), arg("value") = 0.0,
      arg("side") = PadSide::kAround);
}

void BindColours(py::module_& ops) {
  ops.def("adjust_brightness", Raising(AdjustBrightness), arg("image"), arg("factor"));
  ops.def("adjust_contrast", Raising(AdjustContrast), arg("image"), arg("factor"));
  ops.def("adjust_saturation", Raising(AdjustSaturation), arg("image"), arg("factor"));
  ops.def("adjust_hue", Raising(AdjustHue), arg("image"), arg("delta"));
  ops.def(
      "color_jitter",
      [](const Expr& image, double brightness, double contrast, double saturation, double hue) {
        return CheckedExpr(ColorJitter(image, {.brightness = brightness,
                                               .contrast = contrast,
                                               .saturation = saturation,
                                               .hue = hue}));
      },
      arg("image"), arg("brightness") = 0.0, arg("contrast") = 0.0, arg("saturation") = 0.0,
      arg("hue") = 0.0);
  ops.def("random_grayscale", Raising(RandomGrayscale), arg("image"), arg("probability") = 0.1);
  ops.def(
      "normalize",
      [](const Expr& image, std::vector<float> mean, std::vector<float> std) {
        return CheckedExpr(penstock::Normalize(image, std::move(mean), std::move(std)));
      },
      arg("image"), arg("mean"), arg("std"));
}

}  // namespace

Expr ExprFrom(const py::object& value) {
  return py::module_::import("penstock.expr").attr("as_expr")(value).cast<Expr>();
}

// Does the same as py::implicitly_convertible<py::object, Expr>(), but with one recursion flag per
// thread. pybind11 2.10 has one flag for all threads, so a thread that traces while another one
// converts would fail to convert.
void ConvertObjectsToExpr() {
  const auto convert = [](PyObject* object, PyTypeObject* expr) -> PyObject* {
    thread_local bool converting = false;
    if (converting) return nullptr;
    converting = true;
    PyObject* const converted = PyObject_CallOneArg(reinterpret_cast<PyObject*>(expr), object);
    converting = false;
    if (converted == nullptr) PyErr_Clear();
    return converted;
  };
  py::detail::get_type_info(typeid(Expr), true)->implicit_conversions.emplace_back(convert);
}

void BindExpressions(py::module_& module) {
  py::class_<Expr>(module, "Expr",
                   "A traced tensor, or nest of tensors: the argument of functions of a dataset. "
                   "Operations on it are recorded; it has no value.")
      .def(py::init([](const py::object& value) { return ExprFrom(value); }), arg("value"))
      .def_property_readonly(
          "spec", [](const Expr& x) { return x.spec(); }, "Its TensorSpec, or a nest of them.")
      .def("member", [](const Expr& x, const std::string& key) { return CheckedExpr(x[key]); })
      .def("member", [](const Expr& x, int64_t i) { return CheckedExpr(x[i]); })
      .def("at", [](const Expr& x, const Expr& i) { return CheckedExpr(x[i]); });
  ConvertObjectsToExpr();
  module.def("literal", [](bool value) { return Expr(value); });
  module.def("literal", [](int64_t value) { return Expr(value); });
  module.def("literal", [](double value) { return Expr(value); });
  module.def("constant", [](DType dtype, std::vector<int64_t> dims, py::object data) {
    return CheckedExpr(Expr::Constant(Values(dtype, std::move(dims), std::move(data)).tensor()));
  });
  module.def("struct", [](std::vector<std::pair<std::string, Expr>> members) {
    return CheckedExpr(Struct(std::move(members)));
  });
  module.def("tuple",
             [](std::vector<Expr> members) { return CheckedExpr(Tuple(std::move(members))); });

  py::module_ ops = module.def_submodule("ops");
  BindArithmetic(ops);
  BindShapes(ops);
  BindReductions(ops);
  BindStrings(ops);
  BindDraws(ops);
  BindImages(ops);
  BindColours(ops);
}

}  // namespace penstock::python
