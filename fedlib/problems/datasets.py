"""Readers of torch's Datasets and DataLoaders: all samples of one client as one batch."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from numbers import Number
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
)

from fedlib import checks

MOST_SAMPLES = 10_000_000  # a sampler that gives more positions has no end
READ = "read it in a loop to see why"

Source = Dataset[Any] | DataLoader[Any]


def read_all(caller: str, label: str, source: Source) -> Any:
    """All samples of a Dataset or a DataLoader as one batch, in the order of the Dataset.

    A DataLoader's sampler says which samples these are: a sample that it gives twice counts twice,
    one that it leaves out does not count. Streams are read to their end. Raises ValueError that
    names the client if it has no samples, or if they cannot be read or put together.
    """
    if not isinstance(source, DataLoader):
        samples = read_samples(caller, label, source)
        return put_together(caller, label, default_collate, samples)
    streams = isinstance(source.dataset, IterableDataset)
    iterates_itself = type(source).__iter__ is not DataLoader.__iter__
    if streams or iterates_itself or source.batch_sampler is None:
        return joined_batches(caller, label, source)
    positions = positions_of(caller, label, source)
    samples = read_samples(caller, label, source.dataset, positions)
    return put_together(caller, label, source.collate_fn, samples)


def read_samples(
    caller: str,
    label: str,
    dataset: Dataset[Any],
    positions: Sequence[Any] | None = None,
) -> list[Any]:
    """The samples of a Dataset at some positions, by default at all."""
    try:
        if positions is None:
            positions = all_positions(dataset)
        if positions is None:
            return list(iter(dataset))  # a stream, or up to an IndexError
        return [dataset[position] for position in positions]
    except Exception as error:
        raise failed(caller, label, "give its samples", error, READ) from error


def all_positions(dataset: Dataset[Any]) -> Sequence[int] | None:
    """The numbers of all samples, or None for a stream and for a Dataset without a length."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        return None
    try:
        return range(len(dataset))
    except (NotImplementedError, TypeError):
        return None


def positions_of(caller: str, label: str, loader: DataLoader[Any]) -> Sequence[Any]:
    """The positions of a loader's samples in its Dataset, in rising order.

    A sampler that draws its positions draws them now, once.
    """
    if takes_everything(loader):
        return range(len(loader.dataset))  # type: ignore[arg-type]
    assert loader.batch_sampler is not None
    positions = []
    for batch in islice(loader.batch_sampler, MOST_SAMPLES):
        positions.extend(batch)
        fits = len(positions) < MOST_SAMPLES
        checks.require(fits, caller, f"the sampler of {label}", "come to an end", len(positions))
    try:
        return sorted(positions)
    except TypeError:  # positions of several types, in a Dataset that is a mapping
        return positions


def takes_everything(loader: DataLoader[Any]) -> bool:
    """Whether a loader gives every sample of its Dataset once, in any order."""
    batches = loader.batch_sampler
    if type(batches) is not BatchSampler or batches.drop_last:
        return False
    sampler = batches.sampler
    if type(sampler) is SequentialSampler:
        return True
    if type(sampler) is not RandomSampler or sampler.replacement:
        return False
    return sampler.num_samples == len(loader.dataset)  # type: ignore[arg-type]


def joined_batches(caller: str, label: str, loader: DataLoader[Any]) -> Any:
    """What a loader yields as one batch: batches one after another, or samples stacked."""
    try:
        batches = list(loader)
    except Exception as error:
        raise failed(caller, label, "give its batches", error, READ) from error
    if batches and loader.batch_sampler is None and is_sample(batches[0]):
        return put_together(caller, label, default_collate, batches)
    return put_together(caller, label, concatenated, batches)


def is_sample(item: Any) -> bool:
    """Whether an item without batching is a single sample: one of its entries is a plain number."""
    if isinstance(item, Mapping):
        item = [*item.values()]
    if not isinstance(item, (tuple, list)):
        return False
    return any(is_number(entry) for entry in item)


def is_number(entry: Any) -> bool:
    """Whether an entry of a sample is a number, a text, or an array or tensor without axes."""
    axes = getattr(entry, "ndim", 1)
    return isinstance(entry, (Number, str)) or axes == 0


def concatenated(batches: Sequence[Any]) -> Any:
    """Batches of one form, one after another: their tensors are concatenated."""
    example = batches[0]
    if isinstance(example, Mapping):
        return {key: concatenated([batch[key] for batch in batches]) for key in example}
    if isinstance(example, (tuple, list)):
        return [concatenated(entries) for entries in zip(*batches, strict=True)]
    return torch.cat([torch.as_tensor(batch) for batch in batches])


def put_together(
    caller: str,
    label: str,
    collate: Callable[[list[Any]], Any],
    samples: list[Any],
) -> Any:
    """One batch of all samples; the error names the client and says what to do."""
    checks.require(samples, caller, label, "have rows", 0)
    try:
        return collate(samples)
    except Exception as error:
        remedy = "pad or convert the samples, in the Dataset or by a DataLoader's collate_fn"
        raise failed(caller, label, "have samples that can be stacked", error, remedy) from error


def failed(caller: str, label: str, rule: str, error: Exception, remedy: str) -> ValueError:
    """The error that says what a client's data must do, and why they did not."""
    text = str(error).strip() or type(error).__name__
    line, _, _ = text.partition("\n")
    reason = line.rstrip(".")
    return ValueError(f"{caller}: {label} must {rule}, but failed: {reason}; {remedy}.")
