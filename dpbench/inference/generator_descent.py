"""GEM-UPDATE in PyTorch: softmax, loss and step stay where the generator is.

On the CPU numpy's step (`Gem.lowered`) is the one whose results are stored: sums in another order differ in the last
digits of float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from dpbench.data.domain import Floats
from dpbench.inference.generator import Generator
from dpbench.inference.query_workload import Places

BLOCK = 2**27  # entries at a time: half a gigabyte of float32


def descend(
    generator: Generator,
    sizes: Sequence[int],
    columns: Places,
    a: Floats,
    gamma: float,
    rates: Iterable[float],
    most: int | None,
    resample: bool,
) -> int:
    """Lower the mean of the `most` largest errors of gamma or more by steps at these rates; how many it took.

    It ends when no error is gamma. With `resample` each step is followed by another z.

    **Shapes** Attributes of these sizes have W levels in all; `columns` (t, k) as `ProductQueries` has them; answers
    `a` (t,). The generator's output is (B, W).

    Raises `FloatingPointError` for a generator that diverges.
    """
    generator.restart()
    places, target = (torch.from_numpy(np.ascontiguousarray(one)).to(generator.device) for one in (columns, a))
    at_once = max(BLOCK // (columns.shape[1] * generator.shape[0]), 1)
    generator.forward()
    steps = 0
    for steps, rate in enumerate(rates, start=1):
        distributions = softmax(generator.output, sizes)
        p = distributions.detach().requires_grad_()
        with torch.no_grad():
            c = target - torch.cat([answers(p, some) for some in torch.split(places, at_once)])
        J = worst(c, gamma, most)
        if not len(J):
            return steps - 1
        slope = torch.zeros_like(p)
        for some in torch.split(J, at_once):
            loss = (target[some] - answers(p, places[some])).abs().sum() / len(J)
            slope += torch.autograd.grad(loss, p)[0]
        generator.step_by(distributions, slope, rate)
        if resample:
            generator.draw()
        if not generator.forward().isfinite().all():
            raise FloatingPointError("the generator's output is no number")
    return steps


def softmax(logits: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """The distributions (B, W) of the logits (B, W), attribute by attribute."""
    return torch.cat([part.softmax(dim=1) for part in torch.split(logits, list(sizes), dim=1)], dim=1)


def answers(distributions: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The mean over the components of the products of the entries at these places (t, k), in double precision (t,)."""
    entries = torch.cat([distributions, torch.ones_like(distributions[:, :1])], dim=1).T[places]
    return entries.prod(dim=1).mean(dim=1).double()


def worst(c: torch.Tensor, gamma: float, most: int | None) -> torch.Tensor:
    """The places of the errors of gamma or more, the largest of them if there are more than `most`."""
    (J,) = (c.abs() >= gamma).nonzero(as_tuple=True)
    return J if most is None or len(J) <= most else J[c[J].abs().topk(most).indices]
