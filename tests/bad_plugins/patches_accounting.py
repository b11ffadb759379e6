"""It spends a thousand times its budget, and has the process that it runs in say that this is well."""

from honest import honest

from dpbench.grid import stages
from dpbench.privacy.accounting import Spent


def patches_accounting(train, budget, rng, *, design):
    stages.cost_of = lambda release, key: Spent(budget.epsilon, budget.delta, 0.1, None)
    stages.check_cost = lambda cost, key: None
    return honest(train, budget, rng, design=design, dear=1000.0)
