"""Transitions from logs: by the next row, or by columns of their own."""

import numpy as np
import pandas as pd
import pytest

from kernelstream.streams import LoggedTransitions, StreamError

LOG = pd.DataFrame(
    {
        "game": ["a", "a", "a", "b", "b", "c", "c"],
        "x": [0.0, 1.0, 2.0, 5.0, 6.0, 7.0, 8.0],
        "y": [0.5, 1.5, 2.5, 5.5, 6.5, 7.5, 8.5],
        "paid": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        "over": [False, False, True, False, False, True, False],
    }
)


def together(steps):
    return [np.concatenate(part) for part in zip(*steps, strict=True)]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
@pytest.mark.parametrize("form", ["frame", "csv"])
def test_the_next_row_of_the_episode_is_the_next_state(tmp_path, form, batch_rows):
    source = LOG
    if form == "csv":
        source = tmp_path / "log.csv"
        LOG.to_csv(source, index=False)
    steps = LoggedTransitions(source, "paid", "over", "game", batch_rows=batch_rows)
    assert steps.columns == ["x", "y"]
    for _ in range(2):  # it can be read again
        states, rewards, next_states, terminal, last = together(steps)
        # b was cut short after its second row, c has ended before its second one
        assert states.tolist() == LOG[["x", "y"]].to_numpy()[[0, 1, 2, 3, 5]].tolist()
        assert rewards.tolist() == [1.0, 2.0, 3.0, 4.0, 6.0]
        assert terminal.tolist() == last.tolist() == [False, False, True, False, True]
        assert next_states[~terminal].tolist() == [[1.0, 1.5], [2.0, 2.5], [6.0, 6.5]]
    assert np.concatenate([x for _, x in steps.states()]).tolist() == states_of(LOG)


def states_of(log):
    return log[["x", "y"]].to_numpy().tolist()


def test_without_episodes_rows_follow_one_another():
    steps = LoggedTransitions(LOG[["x", "paid"]], "paid", batch_rows=2)
    states, _, next_states, terminal, _ = together(steps)
    assert states[:, 0].tolist() == LOG["x"].tolist()[:-1]
    assert next_states[:, 0].tolist() == LOG["x"].tolist()[1:]
    assert not terminal.any()


def test_columns_of_their_own_hold_the_next_states():
    log = LOG.drop(columns="game").assign(next_x=LOG["x"] + 9.0, next_y=0.0)
    log.loc[2, "next_x"] = np.nan  # nothing follows there
    steps = LoggedTransitions(log, "paid", "over", next_prefix="next_", batch_rows=3)
    states, _, next_states, terminal, _ = together(steps)
    assert len(states) == len(log)
    assert next_states[~terminal, 0].tolist() == (LOG["x"] + 9.0)[~LOG["over"]].tolist()


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"reward": "payed"}, "no column 'payed'.* Did you mean 'paid'"),
        ({}, {"episode": "match"}, "no column 'match'"),
        ({}, {"episode": None}, "column 'game' holds texts.*--drop"),
        ({}, {"next_prefix": "next_"}, "no column 'next_x'"),
        ({}, {"drop": ["x", "y"]}, "no column left for the states"),
        ({"x": [0.0, np.nan, 1.0, 1.0, 1.0, 1.0, 1.0]}, {}, "line .*'x' is missing"),
        ({"over": ["no", "no", "maybe", "no", "no", "yes", "no"]}, {}, "neither yes nor no"),
    ],
)
def test_logs_that_cannot_be_read(change, options, message):
    options = {"reward": "paid", "terminal": "over", "episode": "game", **options}
    with pytest.raises(StreamError, match=message):
        list(LoggedTransitions(LOG.assign(**change), **options))
