"""`get_logger` and `generate_exp_name`, as TorchRL has them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from logger_service.contract.dispatch import DIRECT
from logger_service.contract.logger import Logger

_NOT_SERVED_YET = ("tensorboard", "wandb", "mlflow", "trackio")


def generate_exp_name(model_name: str, experiment_name: str) -> str:
    """Returns a name for a run that is new each time: `model_experiment_1f3b5c7d_26_01_31-12_00_00`."""
    now = datetime.now().strftime("%y_%m_%d-%H_%M_%S")
    return f"{model_name}_{experiment_name}_{uuid.uuid4().hex[:8]}_{now}"


def get_logger(
    logger_type: str | None,
    logger_name: str,
    experiment_name: str,
    *,
    state_dict: Mapping[str, Any] | None = None,
    service_backend: str = DIRECT,
    service_backend_options: Mapping[str, Any] | None = None,
    use_ray_service: bool = False,
    ray_actor_options: Mapping[str, Any] | None = None,
    wandb_kwargs: Mapping[str, Any] | None = None,
    mlflow_kwargs: Mapping[str, Any] | None = None,
    trackio_kwargs: Mapping[str, Any] | None = None,
) -> Logger | None:
    """Returns a logger of the given type.

    Args:
        logger_type: `csv`; empty or None: no logger.
        logger_name: The directory that a direct logger writes to. Not used under a service backend, whose server says
            where files go.
        experiment_name: The name of the run.
        state_dict: Not served yet.
        service_backend: `direct`, or `grpc`.
        service_backend_options: For `grpc`: `target` and what else `GrpcLogger` takes.
        use_ray_service: Not served yet.
        ray_actor_options: Not served yet.
        wandb_kwargs: For the type `wandb`; any other type ignores it.
        mlflow_kwargs: For the type `mlflow`; any other type ignores it.
        trackio_kwargs: For the type `trackio`; any other type ignores it.

    Returns:
        The logger, or None if there is to be none.

    Raises:
        NotImplementedError: The type, or one of the arguments that say so above, is not served (yet).
        ValueError, TypeError: An argument is not what it must be; the message names it.
    """
    del wandb_kwargs, mlflow_kwargs, trackio_kwargs  # Of types that are not served yet.
    if logger_type is None or logger_type == "":
        return None
    if logger_type in _NOT_SERVED_YET:
        raise NotImplementedError(f"logger_type {logger_type!r} is not served yet; there is 'csv'")
    if logger_type != "csv":
        raise NotImplementedError(f"there is no logger_type {logger_type!r}; there is 'csv'")
    for name, value in (
        ("state_dict", state_dict),
        ("use_ray_service", use_ray_service or None),
        ("ray_actor_options", ray_actor_options),
    ):
        if value is not None:
            raise NotImplementedError(f"{name} is not served yet")
    from logger_service.backends import CSVLogger

    make: Callable[..., Logger] = CSVLogger
    place = {"log_dir": logger_name} if service_backend == DIRECT else {}
    return make(
        exp_name=experiment_name,
        service_backend=service_backend,
        service_backend_options=service_backend_options,
        **place,
    )
