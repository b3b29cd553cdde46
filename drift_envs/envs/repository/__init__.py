"""A small Python project whose conventions change while issues are solved in it.

The project is a pure function of plain data, and can be used without the environment:

>>> from drift_envs.envs.repository.checks import check
>>> from drift_envs.envs.repository.conventions import Conventions
>>> from drift_envs.envs.repository.issues import apply_change, right_change
>>> from drift_envs.envs.repository.lifetime import ProjectLifetime
>>> lifetime = ProjectLifetime(7)
>>> issue = lifetime.begin(12, Conventions())           # the next episode, with issue 12 of project 7
>>> project = lifetime.project                            # what a contributor finds, as project.files()
>>> change = right_change(project, issue)                # what the maintainers will merge
>>> check(apply_change(project.files(), change), project, issue).solved
True
>>> issue = lifetime.begin(13, Conventions(helper=1))    # issue 12 was merged; a convention has changed
>>> [commit.message for commit in lifetime.commits]
['Add the waste fee (#6)', 'Rename the function that enters results']

* `conventions` - the conventions as knobs, the words that stand for them, and what a text says of them
* `project` - the project's files under conventions, with rules for charges that its functions compute
* `issues` - issues in words, the right change of each, and what its checks call
* `checks` - runs a submission in a process of its own; the verdict and the log of continuous integration
* `sandbox` - the program that runs there; it imports nothing of this package
* `lifetime` - the project from episode to episode: what was merged, what the documents say, and commits
* `episode`, `env`, `oracle` - the environment `DriftRepository-v0`
"""
