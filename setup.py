"""The packages: those of three folders, of which `find:` in `setup.cfg` can search only one."""

from setuptools import find_packages, setup

if __name__ == "__main__":
    ours = find_packages(include=["drift_envs*", "webshop_server*"])
    setup(packages=["drift_schedules", *ours, *find_packages("agents")])
