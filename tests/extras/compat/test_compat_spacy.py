"""Nouns by spaCy itself. Its models are downloads outside of the package index: a small one is made here."""

from __future__ import annotations

import re

import pytest
import spacy

from webshop_server.compat import WebAgentTextEnv
from webshop_server.compat.goal import load_tagger
from webshop_server.errors import ArgumentError


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that tags `cord` as a noun and `JBL` as a name."""
    language = spacy.blank("en")
    ruler = language.add_pipe("attribute_ruler")
    ruler.add([[{"LOWER": "cord"}]], {"POS": "NOUN"})
    ruler.add([[{"TEXT": "JBL"}]], {"POS": "PROPN"})
    ruler.add([[{"LOWER": "long"}]], {"POS": "ADJ"})
    path = tmp_path_factory.mktemp("model") / "small"
    language.to_disk(path)
    return str(path)


def test_nouns_and_names_count_each_time(model):
    assert load_tagger(model)("Long Cord for JBL, Cord") == ("cord", "jbl", "cord")


def test_a_model_that_is_not_installed_is_refused():
    with pytest.raises(ArgumentError, match=re.escape("`model` should be an installed model of spaCy")):
        load_tagger("no_such_model")


def test_the_environment_takes_the_rule_or_the_model(model, monkeypatch):
    monkeypatch.setattr("webshop_server.compat.server.MODEL", model)
    env = WebAgentTextEnv("text", num_products=100, nouns="spacy")
    assert env.server.shop.nouns("JBL cord") == ("jbl", "cord")
