"""What each configuration key is for, in a sentence or two: the texts that DescribeConfigs sends on request.

The tables have one key a line, then its text; an indented line goes on with the text before. They stand apart
from the definitions so that nobody who does not ask has them in memory: `documentation.py` loads them.
"""
