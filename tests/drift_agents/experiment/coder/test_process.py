"""Commands of agents: their limits, and the end of all that they start."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.coder.process import CommandEnd, run_command

from tests.processes import children_of, is_alive, wait_until

pytestmark = pytest.mark.integration

ENVIRONMENT = {"PATH": os.environ["PATH"], "KEY": "sesame-1234"}


def play(script: str, folder: Path, seconds: float = 20, most_output: int = 1000) -> tuple[CommandEnd, bytes]:
    """How a shell script ended, and its output."""
    output = io.BytesIO()
    limits = {"watched": [folder], "most_bytes": 2**22, "most_output": most_output}
    command = ["sh", "-c", script]
    end = run_command(command, folder, ENVIRONMENT, output, seconds, **limits, secrets=["sesame-1234"])
    return end, output.getvalue()


def test_a_command_gets_its_environment_and_an_empty_input(tmp_path: Path) -> None:
    end, output = play("cat; pwd; env | grep -c HOME; exit 3", tmp_path)
    assert output.decode().split() == [str(tmp_path), "0"]
    assert end.status == 3
    assert (end.stopped, end.left) == ("", 0)


@pytest.mark.parametrize("begin", ["", "setsid ", "nohup setsid ", "exec 1>&- 2>&-; setsid "])
def test_processes_left_behind_are_ended_wherever_they_went(tmp_path: Path, begin: str) -> None:
    end, _ = play(f"{begin}sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do :; done", tmp_path)
    assert end.left == 1
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_an_orphan_that_left_the_session_is_ended(tmp_path: Path) -> None:
    before = children_of(os.getpid())  # a browser of another test, perhaps
    play("(setsid sh -c 'echo $$ > pid; exec sleep 1000' &) ; while [ ! -s pid ]; do :; done", tmp_path)
    assert not is_alive(int((tmp_path / "pid").read_text()))
    assert not children_of(os.getpid(), but=before)  # it was collected too


def test_other_children_of_this_process_live_on_and_what_they_start_meanwhile(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    text = f"read go < {tmp_path}/go; sleep 1000 & echo $! > {tmp_path}/started; wait"
    with subprocess.Popen(["sh", "-c", text], start_new_session=True) as other:
        play("echo > go; while [ ! -s started ]; do :; done; sleep 1000 & true", tmp_path)
        assert is_alive(other.pid)
        assert is_alive(int((tmp_path / "started").read_text()))
        os.killpg(other.pid, signal.SIGKILL)


def test_a_command_that_hangs_and_ignores_signals_is_ended(tmp_path: Path) -> None:
    end, _ = play("trap '' TERM INT HUP; echo $$ > pid; while true; do sleep 1000; done", tmp_path, seconds=0.3)
    assert end.stopped == "did not end within 0.3 s"
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_command_that_fills_the_disk_is_ended(tmp_path: Path) -> None:
    end, _ = play("while true; do head -c 1000000 /dev/zero >> large; done", tmp_path)
    assert end.stopped == "wrote more than 4,194,304 bytes"
    assert (tmp_path / "large").stat().st_size < 2**32


def test_many_small_files_count_too(tmp_path: Path) -> None:
    end, _ = play("i=0; while true; do i=$((i+1)); : > file-$i; done", tmp_path)
    assert end.stopped == "wrote more than 4,194,304 bytes"


def test_endless_output_is_cut_and_does_not_outlast_the_limit(tmp_path: Path) -> None:
    end, output = play("yes", tmp_path, seconds=0.3, most_output=100)
    assert end.stopped.startswith("did not end")
    assert output == b"y\n" * 50 + b"\n[cut here]\n"


def test_binary_output_is_kept_as_it_is(tmp_path: Path) -> None:
    assert play(r"printf '\000\377\033[2J'", tmp_path)[1] == b"\x00\xff\x1b[2J"


def test_a_secret_is_stored_nowhere_also_where_it_comes_in_two_parts(tmp_path: Path) -> None:
    _, output = play('printf "a $KEY b "; printf sesame-; sleep 0.2; printf 1234; printf " c"', tmp_path)
    assert output == b"a *** b *** c"


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no-such-agent: cannot be started: No such file or directory"):
        run_command(["no-such-agent"], tmp_path, ENVIRONMENT, io.BytesIO(), 1)


def test_an_interruption_ends_the_command_with_all_its_descendants(tmp_path: Path) -> None:
    import signal
    import subprocess

    program = (
        "import io, pathlib, sys\n"
        "from drift_agents.experiment.coder.process import run_command\n"
        "from drift_agents.interruption import run_program\n"
        'script = \'trap "" TERM INT; (setsid sh -c "echo \\$\\$ > pid; exec sleep 1000" &); sleep 1000\'\n'
        "def main():\n"
        "    try:\n"
        "        run_command(['sh', '-c', script], pathlib.Path(sys.argv[1]), {'PATH': '/usr/bin:/bin'}, io.BytesIO(),"
        " 60)\n"
        "    except KeyboardInterrupt:\n"
        "        return 130\n"
        "run_program(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) as process:
        file = tmp_path / "pid"
        assert wait_until(lambda: file.exists() and file.read_text().strip())
        found = children_of(process.pid)
        assert len(found) >= 2
        process.send_signal(signal.SIGINT)
        process.wait(20)
    assert not [pid for pid in found if is_alive(pid)]
