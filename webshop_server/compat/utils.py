"""The original's `web_agent_site.utils`."""

from __future__ import annotations

import bisect
import hashlib
import logging
import random
from collections.abc import Sequence
from os.path import join
from pathlib import Path

BASE_DIR = str(Path(__file__).resolve().parent)
DEBUG_PROD_SIZE: int | None = None

DEFAULT_FILE_PATH: str | None = None
"""The catalogue of environments that name none; `None` generates one."""

DEFAULT_ATTR_PATH = join(BASE_DIR, "items_ins_v2.json")
DEFAULT_REVIEW_PATH = join(BASE_DIR, "reviews.json")
HUMAN_ATTR_PATH = join(BASE_DIR, "items_human_ins.json")
FEAT_CONV = join(BASE_DIR, "feat_conv.pt")
FEAT_IDS = join(BASE_DIR, "feat_ids.pt")


def random_idx(cum_weights: Sequence[float]) -> int:
    """A place drawn from the global generator of `random`, as the original does.

    Args:
        cum_weights: cumulated weights, from 0.

    Example:
        >>> random.seed(24)
        >>> random_idx([0, 1, 1, 1]) in (1, 2)
        True
    """
    place = bisect.bisect(cum_weights, random.uniform(0, cum_weights[-1]))
    return min(place, len(cum_weights) - 2)


def setup_logger(session_id: str, user_log_dir: Path) -> logging.Logger:
    """A logger that writes its messages into a file of its own.

    Args:
        session_id: the name of the logger, and of the file without its ending.
        user_log_dir: the folder of the file.
    """
    logger = logging.getLogger(session_id)
    handler = logging.FileHandler(user_log_dir / f"{session_id}.jsonl", mode="w")
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    return logger


def generate_mturk_code(session_id: str) -> str:
    """A code for a session, which the original showed to workers.

    Example:
        >>> generate_mturk_code("ABC")
        '3C01BDBB26'
    """
    return hashlib.sha1(session_id.encode(), usedforsecurity=False).hexdigest()[:10].upper()
