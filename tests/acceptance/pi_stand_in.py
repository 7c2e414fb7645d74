"""Starts the scripted host with the arguments that Pi is given; those it does not know are left."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fakes.fake_host import main

parser = argparse.ArgumentParser()
parser.add_argument("--script", required=True)
parser.add_argument("--session-dir", required=True)
known, _ = parser.parse_known_args()
sys.argv[1:] = ["--script", known.script, "--session-dir", known.session_dir]
main()
