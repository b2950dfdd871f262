"""Histograms of tensors on devices: the device bins, and one small copy brings the moments, another one the counts."""

from __future__ import annotations

import sys
from typing import Any

from logger_service.contract import cuda, tensors
from logger_service.contract.binning import RULES, Moments, Rule, Wanted, edges_for, histogram_bins
from logger_service.v1 import records_pb2


def bin_tensor(tensor: Any, wanted: Wanted) -> records_pb2.HistogramBins:
    """Bins a tensor that is not in host memory, and that `tensors.check` has passed.

    Raises:
        RuntimeError: It is on a CUDA device, and a CUDA graph is being captured, or the device failed.
    """
    torch: Any = sys.modules["torch"]
    if tensor.is_cuda:
        cuda.refuse_capture([tensor.device])
    with torch.no_grad():
        # Apple's devices have no doubles.
        dtype = torch.float32 if tensor.device.type == "mps" else torch.float64
        are_integers = not tensor.dtype.is_floating_point
        values = tensors.dense(tensor.detach()).reshape(-1).to(dtype)
        if not are_integers:
            others = [values.isnan().sum(), (values == torch.inf).sum(), (values == -torch.inf).sum()]
            values = values.masked_select(values.isfinite())
        else:
            others = [values.new_zeros(())] * 3
        rule = RULES[wanted] if isinstance(wanted, str) else None
        moments = _moments(values, others, are_integers, rule)
        edges = edges_for(moments, wanted)
        bounds = values.new_empty(len(edges)).copy_(torch.from_numpy(edges))
        # How many edges are at or below each value: 0 before the first bin, all of them from the last edge on.
        below = torch.bincount(torch.bucketize(values, bounds, right=True), minlength=len(edges) + 1)
        last = (values == bounds.select(0, -1)).sum()
        counts = torch.cat([below.narrow(0, 1, len(edges) - 1), last.reshape(1)]).cpu().tolist()
    counts[-2] += counts[-1]  # The last bin has its right edge.
    return histogram_bins(moments, edges, counts[:-1])


def _moments(values: Any, others: list[Any], are_integers: bool, rule: Rule | None) -> Moments:
    torch: Any = sys.modules["torch"]
    count = values.numel()
    if not count:
        none_of, positive_ones, negative_ones = map(int, torch.stack(others).cpu().tolist())
        return Moments(none_of, positive_ones, negative_ones)
    measures = [*others, values.min(), values.max(), values.sum(), values.dot(values)]
    deviation = values.std(correction=0)
    measures.append(deviation)
    measures.append((((values - values.mean()) / deviation) ** 3).mean() if rule and rule.needs_skewness else deviation)
    measures.append(_quartile_range(values) if rule and rule.needs_quartiles else deviation)
    nan, positive, negative, least, greatest, total, squares, deviation, skewness, quartile_range = (
        torch.stack([measure.to(values.dtype) for measure in measures]).cpu().tolist()
    )
    return Moments(
        int(nan),
        int(positive),
        int(negative),
        count=count,
        min=least,
        max=greatest,
        sum=total,
        sum_squares=squares,
        deviation=deviation,
        skewness=skewness,
        quartile_range=quartile_range,
        are_integers=are_integers,
    )


def _quartile_range(values: Any) -> Any:
    """Returns the distance of the quartiles, by linear interpolation as NumPy has it."""
    ordered = values.sort().values
    at = (values.numel() - 1) / 4

    def quantile(position: float) -> Any:
        index = int(position)
        part = position - index
        after = min(index + 1, values.numel() - 1)
        below, above = ordered.select(0, index), ordered.select(0, after)
        return below + (above - below) * part

    return quantile(3 * at) - quantile(at)
