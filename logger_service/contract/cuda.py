"""All that is asked of CUDA, through a torch that whoever has such tensors has imported already."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def is_in_use() -> bool:
    """Whether there can be CUDA tensors."""
    return bool(sys.modules["torch"].cuda.is_initialized())


def refuse_capture(devices: Iterable[Any]) -> None:
    """Does nothing, unless a graph is being captured: then no value exists that could be copied.

    Args:
        devices: The CUDA devices that are about to be read.

    Raises:
        RuntimeError: The caller's current stream of one of them is captured.
    """
    torch: Any = sys.modules["torch"]
    for device in devices:
        with torch.cuda.device(device):
            if torch.cuda.is_current_stream_capturing():
                raise RuntimeError(
                    f"nothing was logged: a CUDA graph is being captured on {device}, and tensors have no values until "
                    "it is replayed; log them after the replay"
                )


def record_event(device: Any) -> Any:
    """Returns an event that comes when what the caller's current stream of the device has been given is done."""
    torch: Any = sys.modules["torch"]
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event


def pin(size: int) -> Any:
    """Returns so many bytes of host memory that a device writes to directly, as a tensor."""
    torch: Any = sys.modules["torch"]
    # The default device may be another one, and what is made in inference mode could be written to in no other.
    with torch.inference_mode(False):
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)
