"""Arrays come back from their bytes to the bit, in their layout."""

import json

import numpy as np
import pytest

from dpbench.grid.arrays import SMALL, packed, unpacked

ARRAYS = {
    "empty": np.empty((0, 3)),
    "number": np.array(-0.0),
    "codes": np.array([[1, 200], [3, 4]], dtype=np.uint8),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3) / 7),
    "every other": np.arange(10, dtype=np.int64)[::2],
    "not finite": np.array([np.nan, np.inf]),
}


@pytest.mark.parametrize("more", [{}, {"large": np.zeros(SMALL)}])
def test_arrays_come_back_to_the_bit_and_cannot_be_written_to(more):
    arrays = ARRAYS | more
    about, body = packed(arrays)
    found = unpacked(json.loads(json.dumps(about)), body)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
        assert found[name].flags.f_contiguous == array.flags.f_contiguous or name == "every other"
        assert not found[name].flags.writeable
    assert not more or len(body) < SMALL, "many bytes are compressed"
