"""`python -m fathom` becomes the program: same arguments, same process, same signals."""

import os
import sys

from fathom import program

os.execv(program(), ["fathom", *sys.argv[1:]])
