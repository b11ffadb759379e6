"""The generator network of GEM, by PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np
import torch
from torch import nn

from dpbench.errors import UserError
from dpbench.inference.mixture import DECAY1, DECAY2, OFFSET
from dpbench.inference.products import Distributions

LARGEST_SEED = 2**63
SEEDED = Lock()  # all threads share the random numbers of PyTorch, of which first weights are made
Weights = Mapping[str, torch.Tensor]


class Block(nn.Module):
    """A hidden layer, normalised over the batch and rectified, concatenated with its input."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(width, size), nn.BatchNorm1d(size, track_running_stats=False), nn.ReLU())

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """(B, width) -> (B, size + width)."""
        return torch.cat([self.layer(h), h], dim=1)


class Generator:
    """G_theta and its batch z: logits of B product distributions over attributes of W levels in all.

    `products`: the type of the factors in products of matrices, float32, or bfloat16, which has three digits and takes
    half the time where the processor has it.

    **Shapes**: z (B, `latent`), hidden layers of the sizes `hidden`, logits (W, B) float32.

    Raises `UserError` for a device that is not there.
    """

    def __init__(
        self,
        levels: int,
        batch: int,
        latent: int,
        hidden: Sequence[int],
        device: str,
        rng: np.random.Generator,
        products: str = "float32",
    ) -> None:
        if device == "cuda" and not torch.cuda.is_available():
            raise UserError("device=cuda: PyTorch finds no such device here; set device=cpu")
        self.rng, self.device, self.shape, self.products = rng, device, (batch, latent), products
        with SEEDED, torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(LARGEST_SEED)))
            widths = np.cumsum([latent, *hidden]).tolist()
            blocks = [Block(width, size) for width, size in zip(widths, hidden, strict=False)]
            self.network = nn.Sequential(*blocks, nn.Linear(widths[-1], levels)).to(device)
        self.draw()

    def draw(self) -> None:
        """Another z, from the standard normal distribution."""
        self.feed(self.rng.standard_normal(self.shape, dtype=np.float32))

    def feed(self, z: Distributions) -> None:
        """This z (B, latent)."""
        self.z = torch.from_numpy(z).to(self.device)

    def forward(self) -> torch.Tensor:
        """G_theta(z) on the device, (B, W)."""
        with torch.autocast(self.device, torch.bfloat16, enabled=self.products == "bfloat16"):
            output: torch.Tensor = self.network(self.z).float()
        self.output = output
        return output

    def logits(self) -> Distributions:
        """G_theta(z)."""
        return np.ascontiguousarray(self.forward().detach().cpu().numpy().T)

    def restart(self) -> None:
        """Adam anew."""
        self.steps = 0
        self.m, self.v = ([torch.zeros_like(weight) for weight in self.network.parameters()] for _ in range(2))

    def step(self, slope: Distributions, rate: float) -> None:
        """A step by the derivative (W, B) of the loss by the newest logits."""
        self.step_by(self.output, torch.from_numpy(np.ascontiguousarray(slope.T)).to(self.device), rate)

    def step_by(self, output: torch.Tensor, slope: torch.Tensor, rate: float) -> None:
        """A step of Adam (Kingma and Ba 2015, Algorithm 1), by the derivative of the loss by what theta gives.

        PyTorch's own Adam loads its compiler, which takes seconds.
        """
        self.steps += 1
        theta = list(self.network.parameters())
        slopes = torch.autograd.grad(output, theta, slope)
        with torch.no_grad():
            for weight, g, m, v in zip(theta, slopes, self.m, self.v, strict=True):
                m.mul_(DECAY1).add_(g, alpha=1 - DECAY1)
                v.mul_(DECAY2).addcmul_(g, g, value=1 - DECAY2)
                scale = v.div(1 - DECAY2**self.steps).sqrt_().add_(OFFSET)
                weight.addcdiv_(m, scale, value=-rate / (1 - DECAY1**self.steps))

    def averaged(self, average: Weights | None, beta: float) -> Weights:
        """beta times the average and 1 - beta times theta; theta if there is no average yet."""
        theta = self.network.state_dict()
        if average is None:
            return {name: weight.clone() for name, weight in theta.items()}
        return {name: beta * average[name] + (1 - beta) * weight for name, weight in theta.items()}

    def load(self, weights: Weights) -> None:
        """Put these in place of theta."""
        self.network.load_state_dict(weights)
