"""How a kind of arrays and plain values alone is stored."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.data.encode import Design
from dpbench.grid.tiny_tables import tiny_table
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Part, Release, check_release
from dpbench.releases.release_type import KINDS


@dataclass(frozen=True)
class Votes(Part):
    """A kind that another paper needs: noisy counts of votes, and the noise that they have."""

    kind: ClassVar[str] = "votes"
    counts: np.ndarray
    sd: float

    def check(self, domain):
        assert self.counts.ndim == 2


def test_a_new_kind_is_one_class_and_one_entry_of_the_list(monkeypatch):
    """It is stored, read back, checked and asked for by what `Part` gives it."""
    monkeypatch.setitem(KINDS, "votes", Votes)
    table = tiny_table()
    made = Release(table.domain, Budget(1.0), Ledger(), (Votes(np.ones((3, 2)), 2.5),))
    back = check_release(Release.from_parts(*made.to_parts()), ("votes",))
    assert np.array_equal(back[Votes].counts, np.ones((3, 2)))
    assert back[Votes].sd == 2.5
    assert back.offers == ("votes",)
    assert back.exact(table, Design(table.domain, "y")).parts == ()
