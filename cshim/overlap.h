// Detects destinations that share bytes. They are refused, as the last write would win.
#pragma once

#include <string>
#include <vector>

#include "view.h"

namespace velocpy {

// Whether two elements of one array certainly share bytes. Quadratic in its axes; it misses some unusual sets of strides.
bool repeats_elements(const View& view);

// The byte ranges of several arrays. Holds no reference to them.
class Spans {
 public:
  // number is the caller's name for the array.
  void add(const View& view, size_t number);
  // Whether two arrays certainly share bytes, and which. Costs a sort; only strided arrays whose ranges overlap are compared
  // element-wise, by NumPy with a bound on the work.
  bool shared(size_t* one, size_t* other);

 private:
  struct Span {
    int64_t low;
    int64_t high;
    bool dense;
    size_t number;
    int64_t data;
    int64_t itemsize;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
  };
  static bool meet(const Span& a, const Span& b);

  std::vector<Span> spans_;
};

}  // namespace velocpy
