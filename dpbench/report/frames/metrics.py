"""The rows of one metric, and metrics as multiples of those of a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dpbench.config.reports import OTHER_METRICS


def metric_rows(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of one metric, or of a quantity that every trial has.

    That is "seconds", the time of a release and of a model on it, "peak_mb", the memory of their worker, and
    "spent_epsilon", the epsilon of the ledger of a private release.
    """
    if metric not in OTHER_METRICS:
        return frame[frame["metric"] == metric]
    rows = frame.drop_duplicates("trial")
    if metric == "seconds":
        seconds = rows["release_seconds"] + rows["model_seconds"]
        return rows.assign(metric=metric, value=seconds.where(rows["status"] == "done"), unit="s", direction="lower")
    if metric == "peak_mb":
        peak = rows["peak_mb"].where(rows["status"] == "done")
        return rows.assign(metric=metric, value=peak, unit="MB", direction="lower")
    private: pd.DataFrame = rows[np.isfinite(rows["epsilon"])]
    return private.assign(metric=metric, value=private["spent_epsilon"], unit="", direction="lower")


def as_multiples(frame: pd.DataFrame, of: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """The frame with each metric that `of` names divided by that of a reference on the same split.

    `of`: metric -> non-private references, "mechanism/model". The reference of a data set is the one with the best
    mean. Rows of repetitions that the reference lacks are left out. Means of such ratios are paired: they can be
    compared even if one method has fewer repetitions.
    """
    for metric, methods in of.items():
        rows = frame["metric"] == metric
        named = (frame["mechanism"] + "/" + frame["model"]).isin(list(methods))
        references = frame[rows & named & (frame["epsilon"] == np.inf) & (frame["status"] == "done")]
        values = references.groupby(["dataset", "mechanism", "model", "repetition"])["value"].mean().unstack()
        means = values.mean(axis=1).dropna().groupby("dataset")
        best = means.idxmax() if (frame.loc[rows, "direction"] == "higher").any() else means.idxmin()
        own = values.loc[best].droplevel(["mechanism", "model"]).stack()
        divisor = own.reindex(pd.MultiIndex.from_frame(frame[["dataset", "repetition"]])).to_numpy()
        value = (frame["value"] / divisor).where(rows, frame["value"])
        frame = frame.assign(value=value, unit=frame["unit"].mask(rows, ""))[~rows | np.isfinite(divisor)]
    return frame
