"""A tape: what it holds of each function of privacy.noise, and what it answers."""

import numpy as np
import pytest

from dpbench.privacy import noise
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.recording import ReplayError, record, replay
from dpbench.privacy.renyi import RandomSearch

SCALE = {"sensitivity": 2.0, "multiplier": 3.0, "label": "x"}
PICK = {"sensitivity": 2.0, "epsilon": 1.0, "label": "x"}
STEPS = {**SCALE, "rate": 0.4, "count": 3}


def tree(rng, ledger, value):
    noisy = noise.tree_laplace(rng, ledger, scale=3.0, epsilon=1.0, label="x")
    return np.concatenate([noisy(value), noisy(value[:1])]).tolist()


def steps(rng, ledger, value):
    return [z.tolist() for z in noise.sampled_gaussian(rng, ledger, 6, lambda rows: value + len(rows), **STEPS)]


def minimum(rng, ledger, value):
    return noise.perturbed_minimiser(
        rng, ledger, lambda theta: theta - value, lambda b: value - b, size=2, offset=0.1, **SCALE
    ).tolist()


FUNCTIONS = {
    "gaussian": lambda *given: noise.gaussian(*given, **SCALE).tolist(),
    "laplace": lambda *given: noise.laplace(*given, **SCALE).tolist(),
    "tree": tree,
    "sampled": steps,
    "objective": minimum,
    "projection": lambda rng, ledger, value: noise.projection(
        rng, ledger, np.diag(value + 1), count=2, **SCALE
    ).tolist(),
    "exponential": lambda *given: [noise.exponential_mechanism(*given, **PICK) for _ in range(10)],
    "permute_and_flip": lambda *given: [noise.permute_and_flip(*given, **PICK) for _ in range(10)],
    "runs": lambda rng, ledger, _: noise.number_of_runs(rng, ledger, RandomSearch("s", 1.0, 0.1, ())),
    "unperturbed": lambda _, ledger, value: noise.unperturbed(ledger, value, label="x").tolist(),
}
DRAWN = {  # of the value (1, 2) by generator 7, and the next uniform number
    "gaussian": ([1.0073809201448956, 3.792473225050819], 0.7756856902451935),
    "laplace": ([2.727620094847643, 11.491742030542158], 0.7756856902451935),
    "tree": ([1.8638100474238215, 6.745871015271079, 3.40467958461992], 0.22520718999059186),
    "sampled": (
        [
            1.271975288969665,
            -0.949879329978774,
            9.0412914733272,
            -0.953239111307978,
            5.141322048960364,
            4.63248549398739,
        ],
        0.4450763058826466,
    ),
    "objective": ([0.9926190798551046, 0.2075267749491807], 0.7756856902451935),
    "projection": (
        [0.001739699561950655, 0.5174424494991435, -0.387689473013122, -1.5425503135337881],
        0.30016628491122543,
    ),
    "exponential": ([0, 1, 0, 0, 1, 1, 0, 1, 1, 0], 0.21530869823559895),
    "permute_and_flip": ([1, 1, 1, 1, 0, 1, 1, 0, 0, 1], 0.04394200796138337),
    "runs": ([10], 0.8972138009695755),
    "unperturbed": ([1.0, 2.0], 0.625095466604667),
}


def run(name, value, seed=7):
    """The answers, and the next number of the generator."""
    rng, ledger = np.random.default_rng(seed), Ledger()
    return FUNCTIONS[name](rng, ledger, np.asarray(value, dtype=float)), rng.random(), ledger


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_draws_are_those_of_the_stored_results(name):
    """Releases that are stored were drawn so: who changes this changes all of them."""
    answered, following, _ = run(name, [1.0, 2.0])
    assert np.ravel(answered) == pytest.approx(np.array(DRAWN[name][0]), rel=1e-12)
    assert following == DRAWN[name][1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_recording_changes_no_draw(name):
    plain = run(name, [1.0, 2.0])
    with record() as tape:
        recorded = run(name, [1.0, 2.0])
    assert recorded[:2] == plain[:2]
    assert recorded[2].events == plain[2].events
    assert tape


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_replay_gives_the_recorded_answers_whatever_is_asked_and_leaves_the_generator_where_it_was(name):
    with record() as tape:
        first = run(name, [1.0, 2.0])
    with replay(tape) as asked:
        again = run(name, [50.0, -3.0], seed=8)
    assert again[0] == first[0]
    assert again[2].events == first[2].events
    if name != "unperturbed":  # draws nothing
        assert again[1] == first[1]
    assert len(asked) == len(tape)
    for then, now in zip(tape, asked, strict=True):
        if name == "objective":
            assert (then.asked(np.zeros(2)) != now.asked(np.zeros(2))).all()
        elif name != "runs":
            assert (np.diag(then.asked) if np.ndim(then.asked) > 1 else then.asked)[0] in (1.0, 2.0, *range(3, 9))
            assert np.ravel(now.asked)[0] >= 50.0


def test_a_sample_is_replayed_less_the_rows_that_are_gone_and_with_those_that_were_added():
    def samples(n, seed):
        seen = []

        def query(rows):
            seen.append(sorted(rows.tolist()))
            return np.zeros(1)

        list(noise.sampled_gaussian(np.random.default_rng(seed), Ledger(), n, query, **STEPS))
        return seen

    with record() as tape:
        first = samples(8, 7)
    with replay(tape):
        assert samples(8, 1) == first
    with replay(tape):
        assert samples(5, 1) == [[row for row in rows if row < 5] for rows in first]
    with replay(tape):
        assert samples(10, 1) == [[*rows, 8, 9] for rows in first]
    assert any(row >= 5 for rows in first for row in rows)


def test_answers_and_queries_stay_when_the_mechanism_writes_over_it():
    value = np.array([1.0, 2.0])
    with record() as tape:
        answered = noise.gaussian(np.random.default_rng(0), Ledger(), value, **SCALE)
        kept = answered.copy()
        answered += 100
        value += 100
    assert tape[0].asked.tolist() == [1.0, 2.0]
    with replay(tape):
        again = noise.gaussian(np.random.default_rng(0), Ledger(), value, **SCALE)
        again += 100
    with replay(tape):
        assert np.array_equal(noise.gaussian(np.random.default_rng(0), Ledger(), value, **SCALE), kept)


@pytest.mark.parametrize(
    ("value", "change", "message"),
    [
        ([1.0, 2.0, 3.0], {}, r"'x' had the shape \(2,\), but now it has \(3,\)"),
        ([1.0, 2.0], {"sensitivity": 2.5}, "sensitivity=2.0, .* was recorded, but now it is .*sensitivity=2.5"),
        ([1.0, 2.0], {"label": "y"}, "was recorded, but now it is"),
    ],
)
def test_another_question_than_the_recorded_one_is_refused(value, change, message):
    with record() as tape:
        noise.gaussian(np.random.default_rng(0), Ledger(), [1.0, 2.0], **SCALE)
    with replay(tape), pytest.raises(ReplayError, match=message):
        noise.gaussian(np.random.default_rng(0), Ledger(), value, **{**SCALE, **change})


def test_more_questions_than_were_recorded_are_refused():
    with record() as tape:
        noise.gaussian(np.random.default_rng(0), Ledger(), [1.0, 2.0], **SCALE)
    with replay(tape):
        noise.gaussian(np.random.default_rng(0), Ledger(), [1.0, 2.0], **SCALE)
        with pytest.raises(ReplayError, match="more than the 1 recorded answers"):
            noise.gaussian(np.random.default_rng(0), Ledger(), [1.0, 2.0], **SCALE)
    noise.gaussian(np.random.default_rng(0), Ledger(), [1.0, 2.0], **SCALE)  # no tape runs any more


def test_an_unpaid_value_is_on_the_tape_and_in_no_ledger():
    with record() as tape:
        assert noise.unpaid([1.0, 2.0], label="scores").tolist() == [1.0, 2.0]
    with replay(tape):
        assert noise.unpaid([5.0, 6.0], label="scores").tolist() == [1.0, 2.0]
    assert (tape[0].event, tape[0].label) == (None, "scores")


def test_the_steps_of_one_event_are_entries_of_their_own():
    with record() as tape:
        run("sampled", [1.0, 2.0])
    assert len(tape) == 3
    assert all(entry.event is tape[0].event for entry in tape)
    assert tape[0].event == Gaussian("x", 2.0, 3.0, 3, 0.4)
