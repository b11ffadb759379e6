"""The last bits of its noisy numbers hold a row."""

import numpy as np
from honest import honest, with_statistics


def in_low_bits(train, budget, rng, *, design):
    made = honest(train, budget, rng, design=design)
    bits = made.parts[0].xty.copy().view(np.int64)
    bits[0] = (bits[0] & ~np.int64(255)) | (int(train.codes[0].sum()) & 255 if len(train) else 0)
    return with_statistics(made, xty=bits.view(np.float64))
