"""Lifetimes of drift-envs as an environment of verifiers, by the name `drift-lifetimes`."""

from drift_envs.integrations.verifiers import ChatHarness, LifetimeEnv, LifetimeTaskset

__all__ = ["ChatHarness", "LifetimeEnv", "LifetimeTaskset"]
