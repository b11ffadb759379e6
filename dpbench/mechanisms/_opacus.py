"""DP-SGD by Opacus: its per-sample gradients, its optimizer with its noise, its Poisson sampler."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpbench.data.domain import Floats
from dpbench.mechanisms.dpsgd import Setting
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger

if TYPE_CHECKING:
    import torch

LARGEST_SEED = 2**63


def descend(
    rng: np.random.Generator,
    ledger: Ledger,
    X: Floats,
    y: Floats,
    *,
    loss: str,
    settings: Sequence[Setting],
    multiplier: float,
) -> Floats:
    """Theta (p, 1) of a run of the one setting: the distribution of `dpsgd.descend`, by Opacus.

    `PrivacyEngine` takes rate and expected size of a sample from the number of rows, which is private here; so the
    optimizer and the sampler that it would make are made directly, of the declared ones. Opacus draws its noise itself,
    from a generator that `rng` seeds: the ledger gets its event here, before the first draw. It refuses a table without
    rows, which tells that there are none.
    """
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    (setting,) = settings
    ledger.record(Gaussian("clipped gradients", 1.0, multiplier, setting.steps, setting.rate))
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(int(rng.integers(LARGEST_SEED)))
    rows, targets = torch.from_numpy(X), torch.from_numpy(y)
    linear = torch.nn.Linear(X.shape[1], 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(linear.weight)
    model = GradSampleModule(linear, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=setting.learning_rate / setting.batch),
        noise_multiplier=multiplier,
        max_grad_norm=setting.clip,
        expected_batch_size=None,
        loss_reduction="sum",
        generator=generator,
    )
    sampler = UniformWithReplacementSampler(
        num_samples=len(X), sample_rate=setting.rate, generator=generator, steps=setting.steps
    )
    with warnings.catch_warnings():  # the inputs of a linear model need no gradients
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        for sample in sampler:
            optimizer.zero_grad()
            _loss(loss, model(rows[sample])[:, 0], targets[sample]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    theta: Floats = linear.weight.detach().numpy().T.copy()
    return theta


def _loss(loss: str, scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The sum of the rows' losses."""
    import torch

    if loss == "logistic":
        return torch.nn.functional.softplus(-y * scores).sum()
    return ((scores - y) ** 2).sum()
