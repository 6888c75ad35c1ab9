// Destinations that share bytes: whatever is written last would win, so they are refused.
#pragma once

#include <string>
#include <vector>

#include "view.h"

namespace velocpy {

// Whether two elements of one array certainly share bytes. Costs the square of its axes; a cunning set of strides may be missed.
bool repeats_elements(const View& view);

// Where the bytes of several arrays lie. Holds no reference to them.
class Spans {
 public:
  // number is what the caller calls the array.
  void add(const View& view, size_t number);
  // Whether two arrays certainly share bytes, and which. Costs a sort; only strided arrays whose ranges cross are compared closely, by
  // NumPy and with a bound on the work.
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
