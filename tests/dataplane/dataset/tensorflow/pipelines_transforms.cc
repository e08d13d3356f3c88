// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/dataset/tensorflow/pipelines.h"

namespace penstock::tensorflow {
namespace {

Expr Ints(std::vector<int64_t> values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  return Expr::Constant(Tensor(kInt64, dims, values.data()));
}
Expr Zero() {
  return int64_t{0};
}
Expr Number(const Expr& text) {
  return StringToNumber(text, kInt64);
}
Expr RunningSum(const Expr& state, const Expr& x) {
  return Tuple({state + x, state + x});
}

std::vector<Pipeline> Maps() {
  return {
      {"map_add", [] { return Dataset::Range(1, 6).Map([](Expr x) { return x + 1; }); }},
      {"map_struct",
       [] {
         return Dataset::Range(3).Map([](Expr x) {
           return Struct({{"y", x * x}, {"x", Tuple({x, x > 1})}});
         });
       }},
      {"map_cast",
       [] { return Dataset::Range(-2, 3).Map([](Expr x) { return Cast(x, kFloat32) / 2.0f; }); }},
      {"map_floor_division",
       [] { return Dataset::Range(-5, 6).Map([](Expr x) {
              return Tuple({x / 3, x % 3});
            }); }},
      {"map_string_length",
       [] {
         return Strings({"", "a", "abc"}).Map([](Expr x) { return StringLength(x); });
       }},
      {"map_string_join",
       [] {
         return Strings({"a", "b"}).Map([](Expr s) { return StringConcat(s, "!"); });
       }},
      {"map_where",
       [] { return Dataset::Range(5).Map([](Expr x) { return Where(x > 2, x, -x); }); }},
      {"map_reshape",
       [] {
         return Dataset::Range(6).Batch(6, {.drop_remainder = true}).Map([](Expr x) {
           return Reshape(x, {2, 3});
         });
       }},
      {"map_reduce_sum",
       [] { return Dataset::Range(7).Batch(3).Map([](Expr x) { return ReduceSum(x); }); }},
      {"map_one_hot", [] { return Dataset::Range(4).Map([](Expr x) { return OneHot(x, 3); }); }},
      {"map_gather",
       [] {
         return Numbers({2, 0, 1}).Map([](Expr i) { return Gather(Ints({10, 20, 30}), i); });
       }},
      {"map_parallel",
       [] {
         return Dataset::Range(20).Map([](Expr x) { return x * x; }, {.num_parallel_calls = 4});
       }},
      {"map_to_shapes",
       [] {
         return Vectors({0, 2, 1, 3});
       }},
      {"filter_less",
       [] {
         return Numbers({1, 2, 3}).Filter([](Expr x) { return x < 3; });
       }},
      {"filter_all", [] { return Dataset::Range(5).Filter([](Expr x) { return x < 0; }); }},
      {"filter_strings",
       [] {
         return Strings({"a", "", "ccc"}).Filter([](Expr s) { return StringLength(s) > 0; });
       }},
      {"filter_of_tuples",
       [] {
         return Dataset::Zip({Dataset::Range(6), Dataset::Range(6, 0, -1)}).Filter([](Expr e) {
           return e[0] < e[1];
         });
       }},
      {"filter_then_batch",
       [] { return Dataset::Range(20).Filter([](Expr x) { return x % 3 == 1; }).Batch(3); }},
      {"enumerate",
       [] {
         return Numbers({1, 2, 3}).Enumerate(5);
       }},
      {"enumerate_of_tuples",
       [] {
         return Dataset::Zip({Dataset::Range(2), Dataset::Range(5, 7)}).Enumerate();
       }},
      {"enumerate_repeated", [] { return Dataset::Range(2).Enumerate().Repeat(2); }},
  };
}

std::vector<Pipeline> Folds() {
  return {
      {"scan_sum", [] { return Dataset::Range(1, 6).Scan(Zero(), RunningSum); }},
      {"scan_documented",
       [] {
         return Dataset::Range(10).Scan(Zero(), [](Expr s, Expr x) { return Tuple({s + x, s}); });
       }},
      {"scan_of_structures",
       [] {
         return Dataset::Range(4).Scan(Struct({{"n", Zero()}, {"t", ""}}), [](Expr s, Expr x) {
           return Tuple({Struct({{"n", s["n"] + x}, {"t", StringConcat(s["t"], ".")}}),
                         Tuple({s["n"], s["t"]})});
         });
       }},
      {"scan_of_a_vector",
       [] {
         return Dataset::Range(6)
             .Batch(2, {.drop_remainder = true})
             .Scan(Ints({0, 0}), [](Expr s, Expr x) {
               return Tuple({s + x, s * x});
             });
       }},
      {"scan_of_changing_shapes",
       [] {
         return Vectors({1, 3, 2}).Scan(Ints({}), [](Expr s, Expr x) { return Tuple({x, s}); });
       }},
      {"scan_of_nothing",
       [] {
         return Dataset::Range(0).Scan(Zero(), [](Expr s, Expr x) { return Tuple({s + x, s}); });
       }},
      {"take_while",
       [] {
         return Numbers({1, 2, 9, 3}).TakeWhile([](Expr x) { return x < 5; });
       }},
      {"take_while_all", [] { return Dataset::Range(3).TakeWhile([](Expr x) { return x < 5; }); }},
      {"take_while_none", [] { return Dataset::Range(3).TakeWhile([](Expr x) { return x < 0; }); }},
      {"take_while_of_what_has_no_end",
       [] {
         return Dataset::Range(3).Repeat().Enumerate().TakeWhile([](Expr e) { return e[0] < 7; });
       }},
      {"ignore_errors",
       [] {
         return Strings({"1", "x", "3", ""}).Map(Number).IgnoreErrors();
       }},
      {"ignore_errors_of_none", [] { return Dataset::Range(3).IgnoreErrors(); }},
      {"ignore_errors_of_all",
       [] {
         return Strings({"x", "y"}).Map(Number).IgnoreErrors();
       }},
      {"ignore_errors_then_batch",
       [] {
         return Strings({"1", "x", "3", "4"}).Map(Number).IgnoreErrors().Batch(2);
       }},
  };
}

std::vector<Pipeline> Nested() {
  return {
      {"flat_map_rows",
       [] {
         return Dataset::Range(9).Batch(3).FlatMap(
             [](Expr x) { return Dataset::FromTensorSlices(x); });
       }},
      {"flat_map_ranges",
       [] {
         return Numbers({0, 2, 0, 0, 1}).FlatMap([](Expr x) { return Dataset::Range(x); });
       }},
      {"flat_map_of_repeats",
       [] {
         return Numbers({3, 1}).FlatMap([](Expr x) { return Dataset::FromTensors(x).Repeat(2); });
       }},
      {"flat_map_in_flat_map",
       [] {
         return Dataset::Range(4).FlatMap([](Expr x) {
           return Dataset::Range(x).FlatMap([](Expr y) { return Dataset::Range(y + 1); });
         });
       }},
      {"flat_map_of_tuples",
       [] {
         return Dataset::Zip({Dataset::Range(3), Dataset::Range(2, 5)}).FlatMap([](Expr e) {
           return Dataset::Range(e[1]).Map([](Expr y) { return y + 10; });
         });
       }},
      {"interleave_documented",
       [] {
         return Dataset::Range(1, 6).Interleave(
             [](Expr x) { return Dataset::FromTensors(x).Repeat(6); },
             {.cycle_length = 2, .block_length = 4});
       }},
      {"interleave_cycle_1",
       [] {
         return Dataset::Range(5).Interleave([](Expr x) { return Dataset::Range(x); },
                                             {.cycle_length = 1});
       }},
      {"interleave_cycle_2",
       [] {
         return Numbers({2, 3, 2}).Interleave([](Expr x) { return Dataset::Range(x); },
                                              {.cycle_length = 2});
       }},
      {"interleave_cycle_3_block_2",
       [] {
         return Numbers({5, 1, 4, 0, 3, 2})
             .Interleave([](Expr x) { return Dataset::Range(x); },
                         {.cycle_length = 3, .block_length = 2});
       }},
      {"interleave_block_3",
       [] {
         return Numbers({10, 20, 30})
             .Interleave([](Expr x) { return Dataset::FromTensors(x).Repeat(4); },
                         {.cycle_length = 3, .block_length = 3});
       }},
      {"interleave_more_places_than_elements",
       [] {
         return Numbers({2, 3}).Interleave([](Expr x) { return Dataset::Range(x); },
                                           {.cycle_length = 9});
       }},
      {"interleave_of_empty",
       [] {
         return Numbers({0, 0, 2, 0})
             .Interleave([](Expr x) { return Dataset::Range(x); }, {.cycle_length = 2});
       }},
      {"interleave_many",
       [] {
         return Dataset::Range(11).Interleave([](Expr x) { return Dataset::Range(x * x % 7); },
                                              {.cycle_length = 4, .block_length = 3});
       }},
  };
}

std::vector<Pipeline> Cuts() {
  return {
      {"take", [] { return Dataset::Range(10).Take(3); }},
      {"take_more", [] { return Dataset::Range(2).Take(3); }},
      {"take_all", [] { return Dataset::Range(4).Take(-1); }},
      {"take_none", [] { return Dataset::Range(4).Take(0); }},
      {"skip", [] { return Dataset::Range(10).Skip(7); }},
      {"skip_more", [] { return Dataset::Range(3).Skip(7); }},
      {"skip_all", [] { return Dataset::Range(3).Skip(-1); }},
      {"skip_then_take", [] { return Dataset::Range(10).Skip(3).Take(4); }},
      {"repeat",
       [] {
         return Numbers({1, 2, 3}).Repeat(3);
       }},
      {"repeat_never", [] { return Dataset::Range(3).Repeat(0); }},
      {"repeat_without_end",
       [] {
         return Numbers({1, 2}).Repeat().Take(5);
       }},
      {"repeat_of_nothing", [] { return Dataset::Range(0).Repeat(3); }},
      {"repeat_then_batch", [] { return Dataset::Range(3).Repeat(2).Batch(4); }},
      {"batch_then_repeat", [] { return Dataset::Range(3).Batch(4).Repeat(2); }},
      {"shard_first", [] { return Dataset::Range(10).Shard(3, 0); }},
      {"shard_last", [] { return Dataset::Range(10).Shard(3, 2); }},
      {"shard_of_few", [] { return Dataset::Range(2).Shard(3, 2); }},
      {"shard_then_batch", [] { return Dataset::Range(10).Shard(2, 1).Batch(2); }},
      {"shuffle_of_one", [] { return Dataset::Range(6).Shuffle(1); }},
      {"shuffle", [] { return Dataset::Range(20).Shuffle(5, {.seed = 1}); }},
      {"shuffle_of_more_than_there_are",
       [] { return Dataset::Range(20).Shuffle(100, {.seed = 1}); }},
      {"shuffle_then_repeat", [] { return Dataset::Range(5).Shuffle(5, {.seed = 1}).Repeat(2); }},
      {"prefetch", [] { return Dataset::Range(5).Prefetch(2); }},
      {"prefetch_autotuned", [] { return Dataset::Range(5).Prefetch(kAutotune); }},
      {"cache", [] { return Dataset::Range(3).Cache().Repeat(2); }},
      {"cache_behind_what_counts",
       [] { return Dataset::Range(5).Scan(Zero(), RunningSum).Cache().Repeat(2); }},
      {"cache_then_map",
       [] { return Dataset::Range(3).Cache().Map([](Expr x) { return x * 2; }).Repeat(2); }},
      {"apply",
       [] {
         return Dataset::Range(5).Apply(
             [](const Dataset& d) { return d.Filter([](Expr x) { return x % 2 == 0; }); });
       }},
      {"options", [] { return Dataset::Range(3).WithOptions({}); }},
  };
}

// Returns the pipeline of that name, whose dataset is reduced.
Pipeline Reduced(std::string name, std::function<Dataset()> make, Expr initial, StateFunction fn) {
  return {std::move(name), make, [make, initial, fn] { return make().Reduce(initial, fn); }};
}

std::vector<Pipeline> Reductions() {
  const auto add = [](Expr s, Expr x) { return s + x; };
  return {
      Reduced(
          "reduce_sum", [] { return Dataset::Range(5); }, Zero(), add),
      Reduced(
          "reduce_of_nothing", [] { return Dataset::Range(0); }, int64_t{7}, add),
      Reduced(
          "reduce_of_structures", [] { return Dataset::Range(1, 5); },
          Struct({{"count", Zero()}, {"sum", 0.0f}}),
          [](Expr s, Expr x) {
            return Struct({{"count", s["count"] + 1}, {"sum", s["sum"] + Cast(x, kFloat32)}});
          }),
      Reduced(
          "reduce_of_batches", [] { return Dataset::Range(7).Batch(3); }, Zero(),
          [](Expr s, Expr x) { return s + ReduceSum(x); }),
      Reduced(
          "reduce_strings",
          [] {
            return Strings({"a", "b", "c"});
          },
          "", [](Expr s, Expr x) { return StringConcat(s, x); }),
  };
}

}  // namespace

std::vector<Pipeline> TransformPipelines() {
  std::vector<Pipeline> all;
  for (auto* part : {Maps, Folds, Nested, Cuts, Reductions})
    for (Pipeline& pipeline : part()) all.push_back(std::move(pipeline));
  return all;
}

}  // namespace penstock::tensorflow
