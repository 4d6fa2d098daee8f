#!/usr/bin/env python3
"""As much of `nc` as Kubernetes' tests of pod networks use: what is typed goes out, what comes back is printed.

    nc [-u] [-w SECONDS] HOST PORT
"""

import socket
import sys
from collections.abc import Sequence


def main(words: Sequence[str]) -> int:
    by_udp, patience = "-u" in words, float(words[words.index("-w") + 1]) if "-w" in words else 5.0
    host, port = words[-2:]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if by_udp else socket.SOCK_STREAM) as sock:
        sock.settimeout(patience)
        sock.connect((host, int(port)))
        sock.sendall(sys.stdin.buffer.read())
        try:
            while answer := sock.recv(65536):
                sys.stdout.buffer.write(answer)
                sys.stdout.flush()
        except TimeoutError:
            pass        # so it ends: nobody says when all was said
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
