"""Ways of an agent to find out what it should not know; each returns what it found, or raises `OSError`.

A program with this file waits for the place of the evaluator's secrets, tries all of them, and prints what came out.
"""

import ctypes
import gc
import json
import os
import socket
import subprocess
import sys


def environment(facts):
    return dict(os.environ)


def argv_of_the_evaluator(facts):
    return open(f"/proc/{facts['pid']}/cmdline").read()


def environment_of_the_evaluator(facts):
    return open(f"/proc/{facts['pid']}/environ").read()


def memory_of_the_evaluator(facts):
    with open(f"/proc/{facts['pid']}/maps") as maps:
        first = maps.readline()
    with open(f"/proc/{facts['pid']}/mem", "rb") as memory:
        memory.seek(int(first.split("-")[0], 16))
        return facts["secret"] if memory.read(8) else ""


def tracing(facts):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, facts["pid"], 0, 0) != 0:  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno())
    os.waitpid(facts["pid"], 0x40000000)
    libc.ptrace(17, facts["pid"], 0, 0)
    return facts["secret"]


def signals(facts):
    os.kill(facts["pid"], 0)
    return facts["secret"]


def descriptors(facts):
    return "".join(os.pread(fd, 1000, 0).decode() for fd in range(3, 50) if is_open(fd))


def is_open(fd):
    try:
        os.pread(fd, 1, 0)
    except OSError:
        return False
    return True


def descriptors_of_the_evaluator(facts):
    folder = f"/proc/{facts['pid']}/fd"
    return "".join(open(os.path.join(folder, name)).read(1000) for name in facts["files"])


def files_of_the_run(facts):
    return open(os.path.join(facts["run"], "run.json")).read()


def listing(facts):
    return facts["secret"] if "run.json" in os.listdir(facts["run"]) else ""


def writing_to_the_run(facts):
    with open(os.path.join(facts["run"], "episodes.jsonl"), "a") as lines:
        lines.write("forged\n")
    return facts["secret"]


def notes_for_the_next_cell(facts):
    for folder in (facts["shared"], "/dev/shm"):
        try:
            open(os.path.join(folder, facts["token"]), "w").close()
        except OSError:
            continue
        return facts["secret"]
    raise OSError("none")


def network(facts):
    socket.create_connection(("127.0.0.1", facts["port"]), 5).close()
    return facts["secret"]


def datagrams(facts):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", facts["port"]))
        sender.send(b"notes")
        sender.send(b"notes")  # the first one's refusal arrives here
    return facts["secret"]


def outliving_child(facts):
    sleep = f"import time; time.sleep(600) # {facts['token']}"
    subprocess.Popen([sys.executable, "-I", "-S", "-c", sleep], start_new_session=True, close_fds=True)
    return ""


def garbage_collector(facts):
    return [type(one).__name__ for one in gc.get_objects() if hasattr(type(one), "oracle")]


def frames(facts):
    found, frame = [], sys._getframe()
    while frame is not None:
        found += map(repr, frame.f_locals.values())
        frame = frame.f_back
    return found[3:]  # behind what this function was given


CHEATS = [
    environment,
    argv_of_the_evaluator,
    environment_of_the_evaluator,
    memory_of_the_evaluator,
    tracing,
    signals,
    descriptors,
    descriptors_of_the_evaluator,
    files_of_the_run,
    listing,
    writing_to_the_run,
    notes_for_the_next_cell,
    network,
    datagrams,
    outliving_child,
]


def main():
    facts = json.loads(sys.stdin.readline())
    for cheat in CHEATS:
        try:
            found = cheat(facts)
        except OSError as error:
            found = repr(error)
        print(json.dumps({"cheat": cheat.__name__, "found": found}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
