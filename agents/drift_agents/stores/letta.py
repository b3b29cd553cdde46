"""The archival memory of a Letta agent as a store of texts.

* `LettaStore` - the adapter
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from drift_agents.embedding.base import Embedding
from drift_agents.errors import ArgumentError, MissingDependencyError
from drift_agents.stores.base import Entry, Hit, Scalar, refuse_copy

PAGE = 100
"""Passages of one request of a list."""


class LettaStore:
    """Passages in the archival memory of an agent on a Letta server, through Letta's own client.

    The server embeds texts by the agent's configuration and keeps them. Its search returns no similarities: the hits
    get 1, 1/2, 1/3 and so on. A query of blanks finds nothing. A passage has tags and no other metadata: a tag is
    `key=value`, the value in JSON.

    Args:
        agent_id: the agent, which the server knows.
        base_url: of the server.
        embedding: not taken; the agent's configuration on the server names one.

    Raises:
        ArgumentError: if an embedding is given.
        MissingDependencyError: if `letta-client` is not installed.

    Example:
        >>> store = LettaStore("agent-1")  # doctest: +SKIP
        >>> entry = store.add("a red hat", {})  # doctest: +SKIP
    """

    def __init__(
        self, agent_id: str, base_url: str = "http://127.0.0.1:8283", embedding: Embedding | None = None
    ) -> None:
        if embedding is not None:
            raise ArgumentError(
                f"`embedding` should be that of the agent on the server, for the store 'letta'. Received {embedding!r}"
            )
        try:
            from letta_client import Letta, NotFoundError
        except ImportError as error:
            raise MissingDependencyError(
                '`letta-client` is not installed, run `pip install "drift-envs[letta]"`'
            ) from error
        self._agent, self._unknown = agent_id, NotFoundError
        self._client: Any = Letta(base_url=base_url)
        self._passages: Any = self._client.agents.passages

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with its metadata; returns the id of a new passage."""
        tags = [f"{key}={json.dumps(value)}" for key, value in metadata.items()]
        return str(self._passages.create(self._agent, text=text, tags=tags)[0].id)

    def search(self, query: str, k: int) -> list[Hit]:
        """The `k` passages that are most similar to the query, the best first."""
        if not query.strip():
            return []  # the client leaves out an empty query, which the server requires
        found = self._passages.search(self._agent, query=query, top_k=k).results
        return [(one.id, one.content, 1.0 / (1 + place)) for place, one in enumerate(found)]

    def delete(self, entry: str) -> None:
        """Delete a passage; an unknown id is ignored."""
        try:
            self._passages.delete(entry, agent_id=self._agent)
        except self._unknown:
            return

    def entries(self) -> Iterator[Entry]:
        """All passages, oldest first."""
        options: dict[str, str] = {}
        while page := self._passages.list(self._agent, limit=PAGE, ascending=True, **options):
            for one in page:
                pairs = (tag.partition("=") for tag in one.tags or ())
                yield str(one.id), one.text, {key: json.loads(value) for key, equals, value in pairs if equals}
            options = {"after": str(page[-1].id)}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __getstate__(self) -> dict[str, Any]:
        """Refuse copies.

        Raises:
            MemoryStateError: always.
        """
        raise refuse_copy("letta")
