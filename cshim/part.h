// Basic indices of an array, resolved against a region: what a restore of a part of it takes.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "layout.h"
#include "velocpy_abi.h"
#include "view.h"

namespace velocpy {

// The elements of a region that one slice or integer per axis selects, as NumPy's basic indexing does.
class Part {
 public:
  // indices: a tuple of ints, slices and at most one ellipsis; axes that it does not reach are taken whole. Raises InvalidArgument,
  // InvalidType.
  Part(py::tuple indices, const RegionLayout& region, const Label& label);

  // Shape of an array of these elements: an axis with an integer is gone.
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t nbytes() const { return nbytes_; }

  // Gives a destination of that shape the axes of the region, in the direction in which the region has them. shape and strides keep
  // them.
  void align(View* view, std::vector<int64_t>* shape, std::vector<int64_t>* strides) const;

  // The part as the contract says it. The numbers of its axes, shape first, are appended to numbers; seal() sets the pointers to them.
  veloc_part raw(std::vector<int64_t>* numbers) const;

 private:
  struct Axis {
    int64_t start = 0;
    int64_t step = 1;
    int64_t count = 1;
    bool kept = false;
  };

  const RegionLayout& region_;
  std::vector<Axis> axes_;  // of the region
  std::vector<int64_t> shape_;
  int64_t nbytes_ = 0;
};

}  // namespace velocpy
